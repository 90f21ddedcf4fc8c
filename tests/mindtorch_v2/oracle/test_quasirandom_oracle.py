"""Points of Sobol sequences, beside PyTorch's."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("scipy", reason="the direction numbers are SciPy's")

import mindtorch_v2 as ours  # noqa: E402


def engines(*arguments):
    return [each.quasirandom.SobolEngine(*arguments) for each in (ours, torch)]


@pytest.mark.parametrize("arguments", [(1,), (3,), (5, True, 7), (40, True, 1)], ids=str)
def test_points_are_equal(arguments):
    mine, theirs = engines(*arguments)
    assert repr(mine) == repr(theirs)
    for n in (1, 1, 2, 5, 8):
        assert mine.draw(n).tolist() == theirs.draw(n).tolist()
    assert mine.fast_forward(3).draw(2).tolist() == theirs.fast_forward(3).draw(2).tolist()
    assert mine.reset().fast_forward(4).draw(3).tolist() == theirs.reset().fast_forward(4).draw(3).tolist()
    assert mine.reset().draw_base2(4).tolist() == theirs.reset().draw_base2(4).tolist()
    for engine in (mine, theirs):
        with pytest.raises(ValueError, match="require n to be a power of 2"):
            engine.draw_base2(5)


def test_scrambling_draws_from_the_default_generator():
    ours.manual_seed(3)
    torch.manual_seed(3)
    mine, theirs = engines(4, True)
    assert mine.draw(5).tolist() == theirs.draw(5).tolist()


@pytest.mark.parametrize("dimension", [0, 21202])
def test_dimensions_out_of_range(dimension):
    for each in (ours, torch):
        with pytest.raises(ValueError, match="Supported range of dimensionality"):
            each.quasirandom.SobolEngine(dimension)
