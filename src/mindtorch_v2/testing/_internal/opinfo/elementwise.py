"""Tensors for tests of elementwise ops: usual, small, large and extremal numbers, in many shapes and strides."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from ...._construct import tensor
from ...._dispatch.namespace import aten
from ...._dtype import bool_, dtype, finfo, float32
from ..._creation import make_tensor
from .inputs import XS, M, S, SampleInput, extremal

SHAPES = ((1024,), (2, 3, 5), (), (0,), (1, 0, 3), (1,), (7, 1))
STRIDED = (  # shape, strides, offset: gaps, broadcast dimensions, columns first
    ((5, 6, 2), (1, 1, 7), 2), ((5, 5, 2), (1, 1, 7), 2), ((9, 5), (0, 1), 0), ((4, 5, 6), (30, 1, 5), 0))


def _filtered(op: Any, one: Any) -> Any:
    """Without the numbers for which NumPy's answer is not the op's."""
    rule = getattr(op, "reference_numerics_filter", None)
    if rule is not None:
        one = aten.where(rule.condition(one), one.new_full((), rule.safe_val), one)
    return one


def _numbers(values: list[Any], kind: dtype, device: Any) -> Any:
    return tensor(values, dtype=kind, device=device)


def _small(kind: dtype) -> list[Any]:
    if kind is bool_:
        return [False, True]
    if not (kind.is_floating_point or kind.is_complex):
        return [value for value in (0, -1, 1, -55, 55, -127, 127, -128)
                if value >= 0 or kind.is_signed]
    real = [0.0, -0.0, 1e-3, -1e-3, 0.25, -0.25, 1.0, -1.0, 1.5707, -3.1415, 4.0, -7.5]
    return [complex(a, b) for a in real[::2] for b in real[1::2]] if kind.is_complex else real


def _large(kind: dtype) -> list[Any]:
    if not (kind.is_floating_point or kind.is_complex):
        return [value for value in (-1113, 1113, -10701, 10701) if kind.itemsize > 1 and (value >= 0 or kind.is_signed)]
    real = [501.0, -501.0, 1001.2, -1001.2, 13437.7, -13437.7]
    if finfo(kind).max > 1e20:
        real += [-4988429.2, 4988429.2, -1e20, 1e20]
    return [complex(a, b) for a in real[::2] for b in real[1::2]] if kind.is_complex else real


# -- one operand -------------------------------------------------------------------------------------------------------


def _unary_sample(op: Any, one: Any, requires_grad: bool) -> SampleInput:
    wanted = requires_grad and (one.is_floating_point() or one.is_complex())
    return SampleInput(one.detach().requires_grad_(wanted), kwargs=op.sample_kwargs(one.device, one.dtype, one)[0])


def _drawn(op: Any, shape: Any, device: Any, kind: dtype, **more: Any) -> Any:
    low, high = op.domain
    return _filtered(op, make_tensor(shape, device=device, dtype=kind, low=low, high=high, **more))


def _unary_values(op: Any, values: list[Any], device: Any, kind: dtype, requires_grad: bool) -> Iterator[SampleInput]:
    if values:
        yield _unary_sample(op, _filtered(op, _numbers(values, kind, device)), requires_grad)


def generate_elementwise_unary_tensors(op: Any, *, device: Any, dtype: dtype, requires_grad: bool = False,
                                       **kwargs: Any) -> Iterator[SampleInput]:
    """Numbers of the op's domain in many shapes."""
    for shape in SHAPES:
        yield _unary_sample(op, _drawn(op, shape, device, dtype), requires_grad)


def generate_elementwise_unary_small_value_tensors(op: Any, *, device: Any, dtype: dtype,
                                                   requires_grad: bool = False) -> Iterator[SampleInput]:
    """Numbers around zero."""
    yield from _unary_values(op, _small(dtype), device, dtype, requires_grad)


def generate_elementwise_unary_large_value_tensors(op: Any, *, device: Any, dtype: dtype,
                                                   requires_grad: bool = False) -> Iterator[SampleInput]:
    """Numbers far from zero."""
    yield from _unary_values(op, _large(dtype), device, dtype, requires_grad)


def generate_elementwise_unary_extremal_value_tensors(op: Any, *, device: Any, dtype: dtype,
                                                      requires_grad: bool = False) -> Iterator[SampleInput]:
    """Infinities and nan."""
    yield from _unary_values(op, extremal(dtype), device, dtype, requires_grad)


def generate_elementwise_unary_noncontiguous_tensors(op: Any, *, device: Any, dtype: dtype,
                                                     requires_grad: bool = False) -> Iterator[SampleInput]:
    """Every other element, columns, broadcast rows."""
    wide = _drawn(op, (4, 6), device, dtype)
    for one in (wide[:, ::2], wide.T, wide[:1].expand(3, 6), _drawn(op, (3, 4), device, dtype, noncontiguous=True)):
        yield _unary_sample(op, one, requires_grad)


def generate_elementwise_unary_arbitrarily_strided_tensors(op: Any, *, device: Any, dtype: dtype,
                                                           requires_grad: bool = False) -> Iterator[SampleInput]:
    """Strides of every kind."""
    for shape, strides, offset in STRIDED:
        yield _unary_sample(op, _drawn(op, (500,), device, dtype).as_strided(shape, strides, offset), requires_grad)


def sample_inputs_elementwise_unary(op_info: Any, device: Any, dtype: dtype, requires_grad: bool,
                                    op_kwargs: Any = None, **kwargs: Any) -> Iterator[SampleInput]:
    """A matrix, a number and nothing."""
    for shape in ((M, M), (), (0, 3)):
        made = _unary_sample(op_info, _drawn(op_info, shape, device, dtype), requires_grad)
        made.kwargs = {**made.kwargs, **(op_kwargs or {})}
        yield made


def reference_inputs_elementwise_unary(op: Any, device: Any, dtype: dtype, requires_grad: bool,
                                       **kwargs: Any) -> Iterator[SampleInput]:
    """All of the above."""
    yield from op.sample_inputs_func(op, device, dtype, requires_grad, **kwargs)
    for make in (generate_elementwise_unary_tensors, generate_elementwise_unary_small_value_tensors,
                 generate_elementwise_unary_noncontiguous_tensors,
                 generate_elementwise_unary_arbitrarily_strided_tensors):
        yield from make(op, device=device, dtype=dtype, requires_grad=requires_grad)
    if dtype is not bool_:
        yield from generate_elementwise_unary_large_value_tensors(op, device=device, dtype=dtype)
    if dtype.is_floating_point or (op.handles_complex_extremal_values and dtype.is_complex):
        yield from generate_elementwise_unary_extremal_value_tensors(op, device=device, dtype=dtype)


# -- two operands ------------------------------------------------------------------------------------------------------


def _pair(op: Any, left: Any, right: Any, requires_grad: bool, exclude_zero: bool = False) -> SampleInput:
    if exclude_zero:
        right = aten.where(right == 0, aten.ones_like(right), right)
    left, right = (one.detach().requires_grad_(requires_grad and (one.is_floating_point() or one.is_complex()))
                   for one in (left, right))
    return SampleInput(left, args=(right,), kwargs=dict(op.sample_kwargs(left.device, left.dtype, left)[0]))


def _both(op: Any, left: Any, right: Any, device: Any, kind: dtype, **more: Any) -> tuple[Any, Any]:
    return (make_tensor(left, device=device, dtype=kind, **{**op.lhs_make_tensor_kwargs, **more}),
            make_tensor(right, device=device, dtype=kind, **{**op.rhs_make_tensor_kwargs, **more}))


def generate_elementwise_binary_tensors(op: Any, *, device: Any, dtype: dtype, requires_grad: bool = False,
                                        exclude_zero: bool = False) -> Iterator[SampleInput]:
    """Pairs of one shape."""
    for shape in SHAPES:
        yield _pair(op, *_both(op, shape, shape, device, dtype), requires_grad, exclude_zero)


def generate_elementwise_binary_arbitrarily_strided_tensors(op: Any, *, device: Any, dtype: dtype,
                                                            requires_grad: bool = False, exclude_zero: bool = False
                                                            ) -> Iterator[SampleInput]:
    """Pairs with strides of every kind."""
    for shape, strides, offset in STRIDED:
        one, other = _both(op, (500,), shape, device, dtype)
        yield _pair(op, one.as_strided(shape, strides, offset), other, requires_grad, exclude_zero)


def _products(op: Any, values: list[Any], device: Any, kind: dtype, requires_grad: bool,
              exclude_zero: bool | None = None) -> Iterator[SampleInput]:
    if exclude_zero is None:
        exclude_zero = op.rhs_make_tensor_kwargs.get("exclude_zero", False)
    pairs = list(itertools.product(values, [value for value in values if value or not exclude_zero]))
    if pairs:
        left, right = (_numbers(list(side), kind, device) for side in zip(*pairs, strict=True))
        yield _pair(op, left, right, requires_grad, bool(exclude_zero))


def generate_elementwise_binary_small_value_tensors(op: Any, *, device: Any, dtype: dtype, requires_grad: bool = False,
                                                    exclude_zero: bool | None = None) -> Iterator[SampleInput]:
    """Pairs of numbers around zero."""
    yield from _products(op, _small(dtype), device, dtype, requires_grad, exclude_zero)


def generate_elementwise_binary_large_value_tensors(op: Any, *, device: Any, dtype: dtype,
                                                    requires_grad: bool = False) -> Iterator[SampleInput]:
    """Pairs of numbers far from zero."""
    yield from _products(op, _large(dtype), device, dtype, requires_grad)


def generate_elementwise_binary_extremal_value_tensors(op: Any, *, device: Any, dtype: dtype,
                                                       requires_grad: bool = False) -> Iterator[SampleInput]:
    """Pairs with infinities and nan."""
    yield from _products(op, extremal(dtype), device, dtype, requires_grad)


def generate_elementwise_binary_broadcasting_tensors(op: Any, *, device: Any, dtype: dtype,
                                                     requires_grad: bool = False, exclude_zero: bool = False
                                                     ) -> Iterator[SampleInput]:
    """Pairs of shapes that broadcast."""
    for left, right in (((1,), ()), ((2,), ()), ((1,), (2,)), ((2, 1), (2,)), ((1, 2), (2, 1)), ((3, 2), (2,)),
                        ((1, 3, 2), (2,)), ((1, 3, 2), (3, 2)), ((3, 1, 2), (1, 3, 2)), ((2, 3, 2), ()),
                        ((3, 1, 2, 0), (1, 2, 0))):
        yield _pair(op, *_both(op, left, right, device, dtype), requires_grad, exclude_zero)


def generate_elementwise_binary_with_scalar_samples(op: Any, *, device: Any, dtype: dtype, requires_grad: bool = False
                                                    ) -> Iterator[SampleInput]:
    """A tensor with a number, a number with a tensor and two numbers, as far as the op takes them."""
    for shape in ((), (S,), (S, XS)):
        left, right = _both(op, shape, shape, device, dtype)
        number = right.flatten()[0].item() if right.numel() else 1
        if op.supports_rhs_python_scalar:
            yield SampleInput(left.requires_grad_(requires_grad), args=(number,))
        if op.supports_one_python_scalar:
            yield SampleInput(number, args=(right.requires_grad_(requires_grad),))
    if op.supports_two_python_scalars:
        left, right = _both(op, (), (), device, dtype)
        yield SampleInput(left.item(), args=(right.item(),))


def generate_elementwise_binary_with_scalar_and_type_promotion_samples(op: Any, *, device: Any, dtype: dtype,
                                                                       requires_grad: bool = False
                                                                       ) -> Iterator[SampleInput]:
    """Numbers that may change the result's dtype."""
    if op.name in ("eq", "ne", "gt", "ge", "lt", "le", "logical_and", "logical_or", "logical_xor"):
        numbers = [0, 1, 2, float("nan"), float("inf"), float("-inf")]
    elif op.supports_dtype(float32, "cpu"):
        numbers = [float("nan"), float("inf"), float("-inf"), 1.5, 2]
    else:
        numbers = [2]
    for number, shape in itertools.product(numbers, ((), (3,))):
        yield SampleInput(_both(op, shape, shape, device, dtype)[0].requires_grad_(requires_grad), args=(number,))


def generate_elementwise_binary_noncontiguous_tensors(op: Any, *, device: Any, dtype: dtype,
                                                      requires_grad: bool = False, exclude_zero: bool = False
                                                      ) -> Iterator[SampleInput]:
    """Pairs with gaps, columns and broadcast rows."""
    left, right = _both(op, (4, 6), (4, 6), device, dtype, noncontiguous=True)
    for one, other in ((left, right), (left.T, right.T), (left[:, ::2], right[:, ::2]),
                       (left[:1].expand(4, 6), right), (left, right[:, :1].expand(4, 6))):
        yield _pair(op, one, other, requires_grad, exclude_zero)


def sample_inputs_elementwise_binary(op: Any, device: Any, dtype: dtype, requires_grad: bool,
                                     **kwargs: Any) -> Iterator[SampleInput]:
    """Equal and broadcasting shapes."""
    exclude_zero = kwargs.get("exclude_zero", False)
    for left, right in (((), ()), ((S,), ()), ((S, 1), (S,)), ((3, S), (3, S)), ((0, 1, XS), (0, 5, XS))):
        made = _pair(op, *_both(op, left, right, device, dtype), requires_grad, exclude_zero)
        yield made.with_metadata(broadcasts_input=left != right and len(left) <= len(right))


def reference_inputs_elementwise_binary(op: Any, device: Any, dtype: dtype, requires_grad: bool,
                                        **kwargs: Any) -> Iterator[SampleInput]:
    """All of the above."""
    exclude_zero = kwargs.get("exclude_zero", False)
    yield from op.sample_inputs_func(op, device, dtype, requires_grad, **kwargs)
    for make in (generate_elementwise_binary_tensors, generate_elementwise_binary_small_value_tensors,
                 generate_elementwise_binary_broadcasting_tensors, generate_elementwise_binary_noncontiguous_tensors):
        yield from make(op, device=device, dtype=dtype, requires_grad=requires_grad, exclude_zero=exclude_zero)
