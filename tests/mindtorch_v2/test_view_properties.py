"""Properties of views: they share memory, follow writes, agree with NumPy, and count versions together."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import mindtorch_v2 as torch
from length import examples

shapes = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


def numbered(shape):
    return torch.arange(int(np.prod(shape)), dtype=torch.float32).reshape(shape)


@st.composite
def view_chains(draw):
    """A shape and a few view steps that apply to it, as (name, function) pairs on tensors and arrays alike."""
    shape = draw(shapes)
    array = np.zeros(shape)
    steps = []
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["transpose", "select", "slice", "unsqueeze", "permute", "squeeze"]))
        if array.ndim == 0:
            kind = "unsqueeze"
        if kind == "transpose":
            a, b = draw(st.integers(0, array.ndim - 1)), draw(st.integers(0, array.ndim - 1))
            pair = (lambda t, a=a, b=b: t.transpose(a, b), lambda n, a=a, b=b: n.swapaxes(a, b))
        elif kind == "select":
            d = draw(st.integers(0, array.ndim - 1))
            i = draw(st.integers(-array.shape[d], array.shape[d] - 1))
            pair = (lambda t, d=d, i=i: t.select(d, i), lambda n, d=d, i=i: n[(slice(None),) * d + (i, ...)])
        elif kind == "slice":
            low, step = draw(st.integers(0, array.shape[0] - 1)), draw(st.integers(1, 3))
            pair = (lambda t, low=low, step=step: t[low::step],) * 2
        elif kind == "unsqueeze":
            d = draw(st.integers(0, array.ndim))
            pair = (lambda t, d=d: t.unsqueeze(d), lambda n, d=d: np.expand_dims(n, d))
        elif kind == "permute":
            order = draw(st.permutations(range(array.ndim)))
            pair = (lambda t, o=tuple(order): t.permute(o), lambda n, o=tuple(order): n.transpose(o))
        else:
            pair = (lambda t: t.squeeze(), lambda n: n.squeeze())
        array = pair[1](array)
        steps.append(pair)
    return shape, steps


@given(view_chains())
@settings(max_examples=examples(200), deadline=None)
def test_chains_agree_with_numpy_and_share_memory(case):
    shape, steps = case
    base = numbered(shape)
    array = base.numpy().copy()
    view, mirror = base, array
    for on_tensor, on_array in steps:
        view, mirror = on_tensor(view), on_array(mirror)
    assert view.shape == mirror.shape
    assert view.tolist() == mirror.tolist()
    assert view.untyped_storage().data_ptr() == base.untyped_storage().data_ptr()
    before = base._version
    view.add_(100)
    mirror += 100
    assert base.tolist() == array.tolist()
    assert base._version == view._version == before + 1


@given(shapes, st.data())
@settings(max_examples=examples(100), deadline=None)
def test_view_and_reshape_keep_order(shape, data):
    base = numbered(shape)
    count = base.numel()
    divisors = [d for d in range(1, count + 1) if count % d == 0]
    first = data.draw(st.sampled_from(divisors))
    flat = base.view(first, -1)
    assert flat.flatten().tolist() == base.flatten().tolist()
    assert flat.data_ptr() == base.data_ptr()
    turned = base.permute(tuple(reversed(range(base.ndim))))
    assert turned.reshape(-1).tolist() == base.numpy().transpose().reshape(-1).tolist()
    assert turned.contiguous().is_contiguous()


@given(view_chains())
@settings(max_examples=examples(60), deadline=None)
def test_gradient_of_a_view_is_where_it_looked(case):
    shape, steps = case
    base = numbered(shape).requires_grad_()
    view, mask = base * 1, np.zeros(shape)
    mirror = mask
    for on_tensor, on_array in steps:
        view, mirror = on_tensor(view), on_array(mirror)
    mirror += 1
    view.sum().backward()
    assert base.grad.tolist() == mask.tolist()


DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int8, torch.int16, torch.int32,
          torch.int64, torch.uint8, torch.bool, torch.complex64, torch.complex128]
dtypes = st.sampled_from(DTYPES)


@given(dtypes, dtypes, dtypes)
def test_promotion_is_a_join(a, b, c):
    join = torch.promote_types
    assert join(a, b) is join(b, a)
    assert join(a, a) is a
    assert join(join(a, b), a) is join(a, b)
    if {torch.float16, torch.bfloat16} <= {a, b, c} or torch.uint8 in (a, b, c):
        return  # PyTorch's table is not associative here either
    assert join(join(a, b), c) is join(a, join(b, c))


@given(dtypes, dtypes)
def test_results_have_the_promoted_type(a, b):
    x, y = torch.ones(2).to(a), torch.ones(2).to(b)
    assert (x * y).dtype is torch.promote_types(a, b)
    assert (x * y).dtype is torch.result_type(x, y)
    # A 0-d tensor of the same category does not widen.
    if a.is_floating_point and b.is_floating_point:
        assert (x * y[0]).dtype is a
