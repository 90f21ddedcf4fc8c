"""`torch.testing._internal.custom_op_db`: ops of a program's own, computed by NumPy, for tests that go through ops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..._construct import from_numpy
from ..._dispatch.namespace import aten
from ..._dtype import float32, float64
from ..._tensor import Tensor
from ...library import custom_op
from .._creation import make_tensor
from .opinfo.core import OpInfo, SampleInput

__all__ = ["custom_op_db", "numpy_cat", "numpy_cube", "numpy_mul", "numpy_mul_scalar", "numpy_nms", "numpy_nonzero",
           "numpy_sort", "numpy_split_copy", "numpy_split_copy_with_int", "numpy_take", "numpy_view_copy"]

# `custom_op` reads the annotations of these functions, which are strings in this file.
NAMESPACE = "_torch_testing"


def to_numpy(tensor: Tensor) -> np.ndarray:
    """The values of a tensor."""
    return tensor.detach().cpu().numpy()


def _made(array: Any, like: Tensor) -> Tensor:
    return aten.to(from_numpy(np.array(array)), like.device)


def _op(schema: str, function: Callable[..., Any], fake: Callable[..., Any], backward: Callable[..., Any] | None = None,
        setup: Callable[..., Any] | None = None) -> Any:
    """An op by its signature, with what it does without data, and its backward."""
    name, _, rest = schema.partition("(")
    made = custom_op(f"{NAMESPACE}::{name}", function, mutates_args=(), schema=f"({rest}")
    made.register_fake(fake)
    if backward is not None:
        made.register_autograd(backward, setup_context=setup)
    return made


def _saves(*places: int, results: Sequence[int] = (), plain: int | None = None) -> Callable[..., None]:
    """Keep some arguments and results for backward, and one that is no tensor."""
    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        outputs = output if isinstance(output, (tuple, list)) else (output,)
        ctx.save_for_backward(*[inputs[place] for place in places], *[outputs[place] for place in results])
        ctx.plain = None if plain is None else inputs[plain]

    return setup


def _cube(x: Tensor) -> tuple[Tensor, Tensor]:
    values = to_numpy(x)
    return _made(values ** 3, x), _made(3 * values ** 2, x)


def _cube_backward(ctx: Any, grad_out: Tensor, grad_slope: Tensor) -> Tensor:
    x, slope = ctx.saved_tensors
    return numpy_mul(grad_out, slope) + 6 * numpy_mul(grad_slope, x)


numpy_cube = _op("numpy_cube(Tensor x) -> (Tensor, Tensor)", _cube, lambda x: (x.clone(), x.clone()), _cube_backward,
                 _saves(0, results=(1,)))


def _mul_backward(ctx: Any, grad: Tensor) -> tuple[Any, Any]:
    x, y = ctx.saved_tensors
    return (grad * y if ctx.needs_input_grad[0] else None), (grad * x if ctx.needs_input_grad[1] else None)


numpy_mul = _op("numpy_mul(Tensor x, Tensor y) -> Tensor", lambda x, y: _made(to_numpy(x) * to_numpy(y), x),
                lambda x, y: (x * y).contiguous(), _mul_backward, _saves(0, 1))


def _scalar_setup(ctx: Any, inputs: Any, keyword_only_inputs: dict[str, Any], output: Any) -> None:
    ctx.scalar = keyword_only_inputs["scalar"]


numpy_mul_scalar = _op("numpy_mul_scalar(Tensor x, *, float scalar) -> Tensor",
                       lambda x, *, scalar: _made(to_numpy(x) * scalar, x),
                       lambda x, *, scalar: (x * scalar).contiguous(), lambda ctx, grad: grad * ctx.scalar,
                       _scalar_setup)


def _sort(x: Tensor, dim: int) -> tuple[Tensor, Tensor, Tensor]:
    values = to_numpy(x)
    order = np.argsort(values, axis=dim)
    return (_made(np.take_along_axis(values, order, axis=dim), x), _made(order, x),
            _made(np.argsort(order, axis=dim), x))


def _sort_backward(ctx: Any, grad: Tensor, _order: Any, _back: Any) -> tuple[Any, None]:
    order, back = ctx.saved_tensors
    return numpy_take(grad, back, order, ctx.plain), None


def _sort_setup(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.mark_non_differentiable(*output[1:])
    _saves(results=(1, 2), plain=1)(ctx, inputs, output)


def _take_backward(ctx: Any, grad: Tensor) -> tuple[Any, None, None, None]:
    order, back = ctx.saved_tensors
    return numpy_take(grad, back, order, ctx.plain), None, None, None


numpy_take = _op("numpy_take(Tensor x, Tensor ind, Tensor ind_inv, int dim) -> Tensor",
                 lambda x, ind, ind_inv, dim: _made(np.take_along_axis(to_numpy(x), to_numpy(ind), dim), x),
                 lambda x, ind, ind_inv, dim: (x * ind).to(x.dtype), _take_backward, _saves(1, 2, plain=3))
numpy_sort = _op("numpy_sort(Tensor x, int dim) -> (Tensor, Tensor, Tensor)", _sort,
                 lambda x, dim: (aten.empty_like(x), *(aten.empty_like(x).long() for _ in range(2))), _sort_backward,
                 _sort_setup)


def _nonzero(x: Tensor) -> Tensor:
    return _made(np.stack(np.nonzero(to_numpy(x)), axis=1), x)


def _no_size(*_: Any) -> Any:
    raise RuntimeError("the size of the result depends on the data")


numpy_nonzero = _op("numpy_nonzero(Tensor x) -> Tensor", _nonzero, _no_size)
numpy_view_copy: Any = _op("numpy_view_copy(Tensor x, SymInt[] shape) -> Tensor",
                      lambda x, shape: _made(np.copy(to_numpy(x).reshape(shape)), x),
                      lambda x, shape: x.clone().view(shape).clone(),
                      lambda ctx, grad: (numpy_view_copy(grad, ctx.shape), None),
                      lambda ctx, inputs, output: setattr(ctx, "shape", list(inputs[0].shape)))


def _cat_setup(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.dim, ctx.sizes = inputs[1], [x.shape[inputs[1]] for x in inputs[0]]


def _cat_backward(ctx: Any, grad: Tensor) -> tuple[Any, None]:
    ends = np.cumsum(ctx.sizes)[:-1].tolist()
    return list(numpy_split_copy(grad, ends, ctx.dim)), None


numpy_cat = _op("numpy_cat(Tensor[] xs, int dim) -> Tensor",
                lambda xs, dim: _made(np.concatenate([to_numpy(x) for x in xs], axis=dim), xs[0]),
                lambda xs, dim: aten.cat(xs, dim), _cat_backward, _cat_setup)


def _parts(x: Tensor, splits: Sequence[int], dim: int) -> list[Tensor]:
    return [_made(part, x) for part in np.split(to_numpy(x), list(splits), axis=dim)]


def _fake_parts(x: Tensor, splits: Sequence[int], dim: int) -> list[Tensor]:
    return [part.clone() for part in aten.tensor_split(x, list(splits), dim)]


def _split_setup(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.dim = inputs[2]


numpy_split_copy = _op("numpy_split_copy(Tensor x, SymInt[] splits, int dim) -> Tensor[]", _parts, _fake_parts,
                       lambda ctx, grads: (numpy_cat(grads, ctx.dim), None, None), _split_setup)
numpy_split_copy_with_int = _op(
    "numpy_split_copy_with_int(Tensor x, SymInt[] splits, int dim) -> (Tensor[], int)",
    lambda x, splits, dim: (_parts(x, splits, dim), len(splits)),
    lambda x, splits, dim: (_fake_parts(x, splits, dim), len(splits)),
    lambda ctx, grads, _: (numpy_cat(grads, ctx.dim), None, None), _split_setup)


def _nms(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """The boxes that overlap no better one by more than the threshold."""
    if boxes.device != scores.device:
        raise AssertionError(f"boxes.device {boxes.device} must be scores.device {scores.device}")
    left, top, right, bottom = to_numpy(boxes).T
    areas = (right - left + 1) * (bottom - top + 1)
    order, kept = to_numpy(scores).argsort()[::-1], []
    while order.size:
        best, others = order[0], order[1:]
        kept.append(best)
        width = np.minimum(right[best], right[others]) - np.maximum(left[best], left[others]) + 1
        height = np.minimum(bottom[best], bottom[others]) - np.maximum(top[best], top[others]) + 1
        shared = np.maximum(0.0, width) * np.maximum(0.0, height)
        order = others[shared / (areas[best] + areas[others] - shared) <= iou_threshold]
    return _made(np.array(kept, np.int64), boxes)


numpy_nms = _op("numpy_nms(Tensor boxes, Tensor scores, Scalar iou_threshold) -> Tensor", _nms, _no_size)


def _samples(*rows: Callable[[Callable[..., Tensor]], tuple[Any, ...]], **named: Any) -> Callable[..., Any]:
    """Samples whose tensors a function of the row makes."""
    def made(opinfo: Any, device: Any, dtype: Any, requires_grad: bool, **_: Any) -> Iterator[SampleInput]:
        def new(*shape: int, **options: Any) -> Tensor:
            return make_tensor(shape, **{"device": device, "dtype": dtype, "requires_grad": requires_grad, **options})

        for row in rows:
            first, *rest = row(new)
            yield SampleInput(first, args=tuple(rest), kwargs=dict(named))

    return made


def _take_row(new: Callable[..., Tensor]) -> tuple[Any, ...]:
    x = new(3, 5)
    order = aten.argsort(x.detach(), dim=0)
    return x, order, aten.argsort(order, dim=0), 0


def _boxes_row(new: Callable[..., Tensor]) -> tuple[Any, ...]:
    corner, size = (new(8, 2, low=0, high=20, requires_grad=False) for _ in range(2))
    return aten.cat([corner, corner + size], 1), new(8, low=0, high=1, requires_grad=False), 0.4


sample_inputs_numpy_nonzero = _samples(lambda new: (new(2, 3, low=0, high=2).detach().round(),))
sample_inputs_numpy_view_copy = _samples(lambda new: (new(2, 3, 4), [6, 4]))
sample_inputs_numpy_cat = _samples(lambda new: ([new(2, 3, 4), new(1, 3, 4)], 0))
sample_inputs_numpy_split_copy = _samples(lambda new: (new(2, 9), [1, 4], 1))
sample_inputs_numpy_nms = _samples(_boxes_row)


def _info(name: str, op: Any, samples: Callable[..., Any], autograd: bool = True) -> OpInfo:
    return OpInfo(f"Numpy{name}CustomOp", op=op._opoverload, sample_inputs_func=samples, dtypes=(float32, float64),
                  supports_autograd=autograd, supports_out=False)


custom_op_db: list[OpInfo] = [
    _info("Cube", numpy_cube, _samples(lambda new: (new(1, low=0.8, high=2),))),
    _info("Mul", numpy_mul, _samples(lambda new: (new(1, low=0.8, high=2), new(1, low=0.8, high=2)))),
    _info("MulScalar", numpy_mul_scalar, _samples(lambda new: (new(4, low=0.9, high=2),), scalar=3.14)),
    _info("Sort", numpy_sort, _samples(lambda new: (new(3, 5), 1))),
    _info("Take", numpy_take, _samples(_take_row)),
    _info("Nonzero", numpy_nonzero, sample_inputs_numpy_nonzero, False),
    _info("NMS", numpy_nms, sample_inputs_numpy_nms, False),
    _info("ViewCopy", numpy_view_copy, sample_inputs_numpy_view_copy),
    _info("Cat", numpy_cat, sample_inputs_numpy_cat),
    _info("SplitCopy", numpy_split_copy, sample_inputs_numpy_split_copy),
    _info("SplitCopyWithInt", numpy_split_copy_with_int, sample_inputs_numpy_split_copy),
]
