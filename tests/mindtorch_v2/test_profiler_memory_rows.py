"""Memory of rows: what was allocated during the recording, in the right row, and nothing older."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2.profiler import profile


def usage(run):
    """Total and own memory of each row's calls together, and its calls."""
    run()
    with profile(profile_memory=True) as prof:
        kept = run()
    del kept
    return {row.key: (row.cpu_memory_usage, row.self_cpu_memory_usage, row.count) for row in prof.key_averages()}


@pytest.mark.parametrize("dim", [0, -1])
def test_tensors_that_are_joined_were_there_before(dim):
    whole = torch.arange(5000)
    rows = usage(lambda: torch.stack([whole[:32], whole[1:33]], dim))
    assert rows["aten::stack"][:2] == (512, 0)
    assert rows["aten::cat"][0] == 512


def test_values_and_targets_of_an_assignment_were_there_before():
    target, values, index = torch.zeros(100), torch.ones(3), torch.tensor([1, 2, 3])

    def run():
        target[index] = values

    assert rows_of_put(usage(run)) == {"aten::index_put_": (0, 0, 1), "aten::_index_put_impl_": (0, 0, 1)}
    out_of_place = usage(lambda: target.index_put((index,), values))
    assert out_of_place["aten::index_put"][:2] == (400, 0)
    assert out_of_place["aten::clone"][0] == 400


def rows_of_put(rows):
    return {name: row for name, row in rows.items() if "index_put" in name}


def test_an_in_place_activation_takes_no_memory():
    x = torch.randn(50)
    for activation in (F.relu6, F.hardtanh, F.hardswish):
        rows = usage(lambda activation=activation: activation(x, inplace=True))
        assert all(total == own == 0 for total, own, _ in rows.values()), activation
        assert "aten::empty_like" not in rows


def test_a_softmax_of_masked_rows_is_corrected_in_place():
    scores = torch.randn(10, 20)
    scores[3] = -torch.inf
    rows = usage(lambda: torch._safe_softmax(scores, -1))
    assert rows["aten::_safe_softmax"][0] == 800
    assert rows["aten::where"] == (0, 0, 1)
    made = torch._safe_softmax(scores, -1)
    assert (made[3] == 0).all()
    torch.testing.assert_close(made.sum(-1)[:3], torch.ones(3))


def test_one_sample_of_many_is_taken_in_place():
    weights = torch.rand(10, 50)
    rows = usage(lambda: torch.multinomial(weights, 1))
    assert rows["aten::multinomial"][0] == 80
    assert rows["aten::div"] == (0, 0, 1)
    assert rows["aten::argmax"] == (0, 0, 1)


@pytest.mark.parametrize("name", ["max", "min", "prod"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64])
def test_one_number_of_all(name, dtype):
    x = torch.arange(1, 5).to(dtype)
    rows = usage(lambda: getattr(x, name)())
    assert rows[f"aten::{name}"][:2] == (dtype.itemsize, 0)
    assert rows["aten::empty"] == (dtype.itemsize, dtype.itemsize, 1)
    made = getattr(x, name)()
    assert made.dtype is dtype
    assert made.item() == {"max": 4, "min": 1, "prod": 24}[name]


def test_a_gradient_is_summed_in_the_node_of_its_expansion():
    x = torch.randn(1, 4, requires_grad=True)
    rows = usage(lambda: (x.expand(3, 4) * 2).sum().backward())
    assert rows["ExpandBackward0"][:2] == (16, 0)


def test_isnan_compares():
    x = torch.tensor([1.0, torch.nan])
    rows = usage(lambda: x.isnan())
    assert rows["aten::isnan"][:2] == (2, 0)
    assert rows["aten::ne"][:2] == (2, 2)
    assert x.isnan().tolist() == [False, True]
