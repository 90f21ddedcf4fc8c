"""In-place and copying forms of views, and windows written into a copy."""

from __future__ import annotations

import pytest
from harness import check, check_error, data, ours, theirs

IN_PLACE = [("t_", ()), ("transpose_", (0, 1)), ("transpose_", (-1, 0)), ("unsqueeze_", (1,)), ("unsqueeze_", (-1,)),
            ("swapaxes_", (0, 1)), ("swapdims_", (1, 0)), ("as_strided_", ((2, 2), (1, 2))), ("squeeze_", ()),
            ("squeeze_", (0,)), ("squeeze_", ((0, 1),))]


@pytest.mark.parametrize(("name", "arguments"), IN_PLACE)
@pytest.mark.parametrize("shape", [(3, 4), (1, 4), (2, 1)])
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_in_place(name, arguments, shape, dtype):
    if name == "as_strided_" and shape != (3, 4):
        arguments = ((1, 2), (1, 1))

    def run(torch, x):
        y = x.clone()
        result = getattr(y, name)(*arguments)
        assert result is y
        return y, y.stride(), y._version

    check(run, data(*shape, dtype=dtype))


@pytest.mark.parametrize(("name", "arguments"), IN_PLACE[:4])
def test_in_place_on_a_view_and_under_a_view(name, arguments):
    def on_view(torch, x):
        y = x * 2
        view = y[1:]
        getattr(view, name)(*arguments)
        return view * view, y * 3

    def under_view(torch, x):
        y = x * 2
        row = y[0]
        getattr(y, name)(*arguments)
        return row * row, y * y

    check(on_view, data(3, 4), nodes=False)
    check(under_view, data(3, 4), nodes=False)


def test_in_place_then_written():
    def run(torch, x):
        y = x * 1
        y.t_()
        y[0] = 5
        y.mul_(y.detach().clone())
        return y

    check(run, data(3, 4))


def test_in_place_errors():
    for torch in (ours, theirs):
        leaf = torch.ones(2, 3, requires_grad=True)
        with pytest.raises(RuntimeError, match="leaf Variable"):
            leaf.t_()
        with torch.no_grad():
            leaf.t_()
        leaf.sum().backward()
        assert tuple(leaf.grad.shape) == (3, 2)
    check_error(lambda torch, x: x.t_(), data(2, 2, 2))
    check_error(lambda torch, x: x.transpose_(0, 3), data(2, 2))
    check_error(lambda torch, x: x.unsqueeze_(4), data(2, 2))
    check_error(lambda torch, x: x.as_strided_((9,), (1,)), data(2, 2))


COPIES = [("alias_copy", ()), ("as_strided_copy", ((2, 2), (1, 2), 1)), ("expand_copy", ((2, 3, 4),)),
          ("permute_copy", ((1, 0),)), ("select_copy", (0, 1)), ("slice_copy", (1, 0, 3, 2)), ("split_copy", (2, 1)),
          ("split_with_sizes_copy", ((1, 2), 0)), ("squeeze_copy", ()), ("squeeze_copy", (0,)),
          ("squeeze_copy", ((0, 1),)), ("t_copy", ()), ("transpose_copy", (0, 1)), ("unbind_copy", (1,)),
          ("unfold_copy", (1, 2, 1)), ("unsqueeze_copy", (0,)), ("view_copy", ((4, 3),)),
          ("unsafe_split_with_sizes", ((1, 3), 1))]


@pytest.mark.parametrize(("name", "arguments"), COPIES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_copies(name, arguments, dtype):
    check(lambda torch, x: getattr(torch, name)(x, *arguments), data(3, 4, dtype=dtype))
    x = ours.arange(12.0).reshape(3, 4)
    made = getattr(ours, name)(x, *arguments)
    first = made[0] if isinstance(made, tuple) else made
    first.fill_(100.0)
    assert x.max().item() == 11.0


def test_other_copies():
    check(lambda torch, x: torch.view_as_real_copy(x), data(3, dtype="complex64"))
    # (PyTorch cannot differentiate this one.)
    check(lambda torch, x: torch.view_as_complex_copy(x), data(3, 2), grad=False)
    check(lambda torch, x: torch.detach_copy(x), data(3, 2), grad=False)
    check_error(lambda torch, x: torch.view_copy(x, (5,)), data(3, 4))
    check_error(lambda torch, x: torch.t_copy(x), data(3, 4, 2))


@pytest.mark.parametrize(("size", "stride", "offset"), [((2, 2), (1, 2), None), ((3,), (4,), 1), ((), (), 5),
                                                       ((0,), (1,), None)])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_as_strided_scatter(size, stride, offset, dtype):
    check(lambda torch, x, s: torch.as_strided_scatter(x, s, size, stride, offset), data(3, 4, dtype=dtype),
          data(*size, dtype=dtype), grad=False)
    # PyTorch's gradient of `src` is right.
    check(lambda torch, x, s: x.detach().as_strided_scatter(s, size, stride, offset), data(3, 4, dtype=dtype),
          data(*size, dtype=dtype))


def test_as_strided_scatter_gradient():
    # PyTorch 2.13 gives `self` the gradient inside the window and zeros outside, the opposite of what flows there.
    x = ours.zeros(3, 4, requires_grad=True)
    ours.as_strided_scatter(x, ours.ones(2, 2), (2, 2), (1, 2)).sum().backward()
    assert x.grad.tolist() == [[0.0] * 4, [1.0] * 4, [1.0] * 4]


def test_as_strided_scatter_errors():
    check_error(lambda torch, x, s: torch.as_strided_scatter(x, s, (2, 3), (1, 2)), data(3, 4), data(2, 2))
    check_error(lambda torch, x, s: torch.as_strided_scatter(x, s, (20,), (1,)), data(3, 4), data(20))
