"""Properties of indexing: it agrees with NumPy wherever PyTorch does, views write through, copies do not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mindtorch_v2 as torch
from length import examples

SETTINGS = settings(max_examples=examples(150), deadline=None)
shapes = st.lists(st.integers(0, 4), min_size=1, max_size=4).map(tuple)


def numbered(shape):
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)


@st.composite
def basic(draw):
    """A shape and an index of integers, slices, None and at most one ellipsis."""
    shape = draw(shapes)
    parts = []
    dims = draw(st.integers(0, len(shape)))
    ellipsis_at = draw(st.integers(0, dims)) if draw(st.booleans()) else None
    for position in range(dims):
        if position == ellipsis_at:
            parts.append(Ellipsis)
        # After an ellipsis the remaining parts count from the end.
        dim = position if ellipsis_at is None or position < ellipsis_at else len(shape) - dims + position
        extent = shape[dim]
        if draw(st.booleans()) and extent:
            parts.append(draw(st.integers(-extent, extent - 1)))
        else:
            bound = st.one_of(st.none(), st.integers(-6, 6))
            parts.append(slice(draw(bound), draw(bound), draw(st.one_of(st.none(), st.integers(1, 3)))))
        if draw(st.integers(0, 4)) == 0:
            parts.append(None)
    return shape, tuple(parts)


@st.composite
def advanced(draw):
    """A shape and an index of slices, index arrays of one broadcast shape, and possibly one mask."""
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple))
    common = draw(st.sampled_from([(3,), (2, 2), (1,), (0,), (2, 1, 2)]))
    parts = []
    some = False
    for extent in shape[:draw(st.integers(1, len(shape)))]:
        if draw(st.booleans()):
            some = True
            size = int(np.prod(common))
            chosen = draw(st.lists(st.integers(-extent, extent - 1), min_size=size, max_size=size))
            parts.append(np.array(chosen, np.int64).reshape(common))
        else:
            start = draw(st.integers(0, extent))
            parts.append(slice(start, draw(st.one_of(st.none(), st.integers(start, extent)))))
    if not some:
        mask = draw(st.lists(st.booleans(), min_size=shape[0], max_size=shape[0]))
        parts[0] = np.array(mask)
    return shape, tuple(parts)


def ours(parts):
    return tuple(torch.tensor(part) if isinstance(part, np.ndarray) else part for part in parts)


@SETTINGS
@given(basic())
def test_basic_index_is_a_view_like_numpys(case):
    shape, parts = case
    array = numbered(shape)
    x = torch.tensor(array)
    found, wanted = x[parts], array[(*parts, Ellipsis) if Ellipsis not in parts else parts]
    np.testing.assert_array_equal(found.numpy(), wanted)
    assert found.shape == wanted.shape
    if wanted.size:
        assert np.shares_memory(found.numpy(), x.numpy())
        found.mul_(-1)
        wanted *= -1
        np.testing.assert_array_equal(x.numpy(), array)


@SETTINGS
@given(basic(), st.booleans())
def test_basic_assignment(case, with_tensor):
    shape, parts = case
    array = numbered(shape)
    x = torch.tensor(array)
    extent = array[parts].shape
    value = -numbered(extent) if with_tensor else -7.0
    array[parts] = value
    before = x._version
    x[parts] = torch.tensor(value) if with_tensor else value
    np.testing.assert_array_equal(x.numpy(), array)
    assert x._version > before


@SETTINGS
@given(advanced())
def test_advanced_index_is_a_copy_like_numpys(case):
    shape, parts = case
    array = numbered(shape)
    x = torch.tensor(array)
    found, wanted = x[ours(parts)], array[parts]
    assert found.shape == wanted.shape
    np.testing.assert_array_equal(found.numpy(), wanted)
    assert found.is_contiguous()
    assert not np.shares_memory(found.numpy(), x.numpy())


@SETTINGS
@given(advanced(), st.booleans())
def test_advanced_assignment(case, with_tensor):
    shape, parts = case
    array = numbered(shape)
    x = torch.tensor(array)
    # One value for all: which of several values stays at a repeated position is not defined.
    value = -numbered(array[parts].shape) * 0 - 5 if with_tensor else -5.0
    array[parts] = value
    x[ours(parts)] = torch.tensor(value) if with_tensor else value
    np.testing.assert_array_equal(x.numpy(), array)


@SETTINGS
@given(advanced())
def test_gradient_of_an_index_adds_at_the_positions(case):
    shape, parts = case
    array = numbered(shape)
    x = torch.tensor(array, requires_grad=True)
    found = x[ours(parts)]
    weight = numbered(found.shape)
    found.backward(torch.tensor(weight))
    wanted = np.zeros_like(array)
    np.add.at(wanted, parts, weight)
    np.testing.assert_allclose(x.grad.numpy(), wanted, rtol=1e-6)


@SETTINGS
@given(advanced())
def test_gradients_of_an_assignment_split_between_target_and_value(case):
    shape, parts = case
    array = numbered(shape)
    x = torch.tensor(array, requires_grad=True)
    value = torch.tensor(2.0, requires_grad=True)
    changed = x * 1
    changed[ours(parts)] = value * torch.ones(())
    changed.sum().backward()
    untouched = np.ones_like(array)
    untouched[parts] = 0
    np.testing.assert_array_equal(x.grad.numpy(), untouched)
    assert value.grad.item() == array[parts].size


@SETTINGS
@given(shapes.filter(lambda shape: 0 not in shape), st.data())
def test_gather_undoes_what_scatter_wrote(shape, draws):
    dim = draws.draw(st.integers(0, len(shape) - 1))
    order = np.argsort(np.random.default_rng(draws.draw(st.integers(0, 99))).random(shape), dim)
    index, source = torch.tensor(order), torch.tensor(numbered(shape))
    written = torch.zeros(shape).scatter(dim, index, source)
    np.testing.assert_array_equal(written.gather(dim, index).numpy(), source.numpy())
    np.testing.assert_array_equal(source.gather(dim, index).numpy(), np.take_along_axis(source.numpy(), order, dim))


@SETTINGS
@given(shapes.filter(lambda shape: 0 not in shape), st.data())
def test_cat_undoes_split(shape, draws):
    dim = draws.draw(st.integers(-len(shape), len(shape) - 1))
    size = draws.draw(st.integers(1, 4))
    x = torch.tensor(numbered(shape))
    np.testing.assert_array_equal(torch.cat(torch.split(x, size, dim), dim).numpy(), x.numpy())
    np.testing.assert_array_equal(torch.stack(torch.unbind(x, dim), dim).numpy(), x.numpy())


@pytest.mark.parametrize("number", [4, -5])
def test_out_of_bounds(number):
    x = torch.zeros(4, 4)
    with pytest.raises(IndexError, match=f"index {number} is out of bounds for dimension 0 with size 4"):
        x[number]
    with pytest.raises(IndexError, match=f"index {number} is out of bounds for dimension 1 with size 4"):
        x[:, number] = 1
