"""Matrix products: the kernels `mm`, `bmm`, `addmm`, … and the ops made of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from .._backends.cpu import matmul as kernels
from .._dispatch.dispatcher import write_results
from .._dispatch.namespace import aten
from .._dispatch.out_rules import NAMES
from .._dispatch.registry import choose, declare
from .._dispatch.state import THREAD
from .._shape import broadcast_shapes, numel
from .._tensor import Tensor
from .._warn import warn_once
from .formulas import conj, scaled

Shapes = list[tuple[int, ...]]


def _matrix_flops(shapes: Shapes) -> int:
    (rows, inner), (_, columns) = shapes[-2:]
    return 2 * rows * inner * columns


def _batch_flops(shapes: Shapes) -> int:
    (batch, rows, inner), (_, _, columns) = shapes[-2:]
    return 2 * batch * rows * inner * columns


def _right_gradient(grad: Tensor, left: Any, right_strides: Any, alpha: Any = 1) -> Any:
    """Gradient of a right factor, in that factor's memory order.

    The right factor is often a layer's transposed weight: this way the weight's own gradient, the transpose of this
    one, is row-major like the weight.
    """
    item, rows = left._a.dtype.itemsize, left._a.shape[1]
    if right_strides and right_strides[0] == item and right_strides[1] == rows * item:
        return scaled(aten.t(aten.mm(aten.t(grad), conj(left))), alpha)
    return scaled(aten.mm(conj(aten.t(left)), grad), alpha)


declare(
    "mm(Tensor self, Tensor mat2) -> Tensor", cpu=kernels.mm, flops=_matrix_flops,
    grad={
        "mat2": lambda grad, self, mat2_strides: _right_gradient(grad, self, mat2_strides),
        "self": lambda grad, mat2: aten.mm(grad, conj(aten.t(mat2))),
    },
)
declare("_int_mm(Tensor self, Tensor mat2) -> Tensor", cpu=kernels.int_mm, where="f")
declare(
    "bmm(Tensor self, Tensor mat2) -> Tensor", cpu=kernels.bmm, flops=_batch_flops,
    grad={
        "mat2": lambda grad, self: aten.bmm(conj(aten.transpose(self, 1, 2)), grad),
        "self": lambda grad, mat2: aten.bmm(grad, conj(aten.transpose(mat2, 1, 2))),
    },
)
declare(
    "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", cpu=kernels.addmm,
    inplace=True, flops=_matrix_flops,
    grad={
        "mat1": lambda grad, mat2, alpha: scaled(aten.mm(grad, conj(aten.t(mat2))), alpha),
        "mat2": lambda grad, mat1, mat2_strides, alpha: _right_gradient(grad, mat1, mat2_strides, alpha),
        "self": lambda grad, beta: scaled(grad, beta),
    },
)
declare(
    "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    cpu=kernels.baddbmm, inplace=True, flops=_batch_flops,
    grad={
        "batch1": lambda grad, batch2, alpha: scaled(aten.bmm(grad, conj(aten.transpose(batch2, 1, 2))), alpha),
        "batch2": lambda grad, batch1, alpha: scaled(aten.bmm(conj(aten.transpose(batch1, 1, 2)), grad), alpha),
        "self": lambda grad, beta: scaled(grad, beta),
    },
)


def _over_batch(grad: Tensor, batch_shape: Any) -> Tensor:
    return aten.expand(aten.unsqueeze(grad, 0), (batch_shape[0], *grad._a.shape))


declare(
    "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    cpu=kernels.addbmm, inplace=True,
    grad={
        "batch1": lambda grad, batch2, batch1_shape, alpha: scaled(
            aten.bmm(_over_batch(grad, batch1_shape), conj(aten.transpose(batch2, 1, 2))), alpha),
        "batch2": lambda grad, batch1, batch1_shape, alpha: scaled(
            aten.bmm(conj(aten.transpose(batch1, 1, 2)), _over_batch(grad, batch1_shape)), alpha),
        "self": lambda grad, beta: scaled(grad, beta),
    },
)
declare(
    "mv(Tensor self, Tensor vec) -> Tensor", cpu=kernels.mv,
    grad={
        "self": lambda grad, vec: aten.ger(grad, conj(vec)),
        "vec": lambda grad, self: aten.mv(conj(aten.t(self)), grad),
    },
)
declare(
    "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor", cpu=kernels.addmv,
    inplace=True,
    grad={
        "mat": lambda grad, vec, alpha: scaled(aten.ger(grad, conj(vec)), alpha),
        "self": lambda grad, beta: scaled(grad, beta),
        "vec": lambda grad, mat, alpha: scaled(aten.mv(conj(aten.t(mat)), grad), alpha),
    },
)
declare(
    "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", cpu=kernels.addr,
    inplace=True, promote="ternary",
    grad={
        "self": lambda grad, beta: scaled(grad, beta),
        "vec1": lambda grad, vec2, alpha: scaled(aten.mv(grad, conj(vec2)), alpha),
        "vec2": lambda grad, vec1, alpha: scaled(aten.mv(aten.t(grad), conj(vec1)), alpha),
    },
)
declare(
    "dot(Tensor self, Tensor tensor) -> Tensor", cpu=kernels.dot,
    grad={"self": lambda grad, tensor: grad * conj(tensor), "tensor": lambda grad, self: grad * conj(self)},
)
declare(
    "vdot(Tensor self, Tensor other) -> Tensor", cpu=kernels.vdot,
    grad={"other": lambda grad, self: grad * self, "self": lambda grad, other: conj(grad) * other},
)


def _outer(self: Tensor, vec2: Tensor) -> Tensor:
    for name, vector in (("self", self), ("vec2", vec2)):
        if vector.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {vector.ndim}-D")
    return aten.mul(aten.reshape(self, (self._a.shape[0], 1)), vec2)


declare("outer(Tensor self, Tensor vec2) -> Tensor", composite=_outer)
declare("ger(Tensor self, Tensor vec2) -> Tensor", composite=lambda self, vec2: aten.outer(self, vec2))


# -- matmul --------------------------------------------------------------------------------------------------------


def _should_fold(large: Tensor, small: Tensor) -> bool:
    """Whether a batch times one matrix is computed as one tall matrix: always if the matrix gets a gradient (the
    gradient is then one product too), else if no copy is needed."""
    if small.requires_grad:
        return True
    array = large._a
    if large.ndim == 2:
        return False
    if array.size == 0:
        return True
    return all(array.strides[i] == array.strides[i + 1] * array.shape[i + 1] for i in range(array.ndim - 2))


def _folded(large: Tensor, small: Tensor, swapped: bool) -> Tensor:
    """A batch times a matrix or vector; `swapped` if the operands were exchanged and transposed."""
    shape = large._a.shape
    flat = aten.reshape(large, (math.prod(shape[:-1]), shape[-1]))
    if small.ndim == 1:
        return aten._unsafe_view(aten.mv(flat, small), shape[:-1])
    made = aten._unsafe_view(aten.mm(flat, small), (*shape[:-1], small._a.shape[1]))
    return aten.contiguous(aten.transpose(made, -2, -1)) if swapped else made


def _batched(left: Tensor, right: Tensor) -> Tensor:
    first, second = left._a.shape, right._a.shape
    matrix_left = first[-2:] if len(first) > 1 else (1, first[0])
    matrix_right = second[-2:] if len(second) > 1 else (second[0], 1)
    batch = broadcast_shapes(first[:-2], second[:-2])
    count = numel(batch)
    if len(second) == 1:
        right = aten.unsqueeze(right, 1)
    a = aten.reshape(aten.expand(left, (*batch, *matrix_left)), (count, *matrix_left))
    b = aten.reshape(aten.expand(right, (*batch, *matrix_right)), (count, *matrix_right))
    shape = [*batch]
    if len(first) > 1:
        shape.append(matrix_left[0])
    if len(second) > 1:
        shape.append(matrix_right[1])
    return aten._unsafe_view(aten.bmm(a, b), shape)


def _matmul(self: Tensor, other: Tensor) -> Tensor:
    left, right = self._a.ndim, other._a.ndim
    if left == 2 == right:
        return aten.mm(self, other)
    if left == 0 or right == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {left}D and {right}D")
    if left == 1 == right:
        return aten.dot(self, other)
    if left == 2 and right == 1:
        return aten.mv(self, other)
    if left == 1 and right == 2:
        return aten.squeeze_(aten.mm(aten.unsqueeze(self, 0), other), 0)
    if left >= 3 and right <= 2:
        if _should_fold(self, other):
            return _folded(self, other, False)
    elif right >= 3 and left <= 2:
        large = aten.transpose(other, -2, -1)
        if _should_fold(large, self):
            return _folded(large, aten.t(self) if left == 2 else self, left == 2)
    return _batched(self, other)


declare("matmul(Tensor self, Tensor other) -> Tensor", composite=_matmul)


def _matmul_out(self: Tensor, other: Tensor, out: Tensor) -> Tensor:
    if (self.requires_grad or other.requires_grad) and THREAD.state.grad:
        raise RuntimeError("matmul(): functions with out=... arguments don't support automatic differentiation, "
                           "but one of the arguments requires grad.")
    return write_results("matmul", out, _matmul(self, other))


declare("matmul.out(Tensor self, Tensor other, *, Tensor out) -> Tensor", composite=_matmul_out, where="n")


@choose("matmul")
def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Product of matrices, vectors or batches of matrices, which broadcast."""
    return aten.matmul__default(input, other) if out is None else aten.matmul__out(input, other, out=out)


def _linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    if bias is None:
        return aten.matmul__default(input, aten.t(weight))
    shape = input._a.shape
    if len(shape) == 2:
        return aten.addmm(bias, input, aten.t(weight))
    if input._a.flags.c_contiguous and len(bias._a.shape) == 1 and shape:
        flat = aten.view(input, (math.prod(shape[:-1]), shape[-1]))
        made = aten.addmm(bias, flat, aten.t(weight))
        return aten.view(made, (*shape[:-1], made._a.shape[1]))
    return aten.add_(aten.matmul__default(input, aten.t(weight)), bias)


declare("linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", composite=_linear, where="n")


def _matrix_power(self: Tensor, n: int) -> Tensor:
    if self.ndim < 2:
        raise RuntimeError("linalg.matrix_power: The input tensor A must have at least 2 dimensions.")
    if self._a.shape[-1] != self._a.shape[-2]:
        raise RuntimeError("linalg.matrix_power: A must be batches of square matrices, but they are "
                           f"{' by '.join(map(str, self._a.shape[-2:]))} matrices")
    if n == 1:
        return aten.clone(self)
    if n < 0:
        self, n = aten.linalg_inv(self), -n
    if n == 0:
        return aten.copy_(aten.clone(self), aten.eye(self._a.shape[-1], dtype=self.dtype, device=self.device))
    result: Any = None
    power: Any = self
    while n:
        if n & 1:
            result = power if result is None else aten.matmul(result, power)
        n >>= 1
        if n:
            power = aten.matmul(power, power)
    return result


declare("matrix_power(Tensor self, int n) -> Tensor", composite=_matrix_power)
declare("linalg_matrix_power(Tensor self, int n) -> Tensor",
        composite=lambda self, n: aten.matrix_power(self, n), where="n")


def _cheapest_order(extents: list[int], first: int, last: int, memory: dict[Any, Any]) -> tuple[int, int]:
    """Cost and last split of the product of matrices `first`…`last`; matrix i is extents[i] x extents[i + 1]."""
    if first == last:
        return 0, first
    key = (first, last)
    if key not in memory:
        memory[key] = min(
            (_cheapest_order(extents, first, cut, memory)[0] + _cheapest_order(extents, cut + 1, last, memory)[0]
             + extents[first] * extents[cut + 1] * extents[last + 1], cut)
            for cut in range(first, last)
        )
    return memory[key]


def _multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    if isinstance(tensors, Tensor):
        raise TypeError("linalg_multi_dot(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor")
    tensors = list(tensors)
    if len(tensors) < 2:
        raise RuntimeError("multi_dot(): expected at least 2 tensors but got " + str(len(tensors)))
    for place, tensor in (("first", tensors[0]), ("last", tensors[-1])):
        if tensor.ndim not in (1, 2):
            raise RuntimeError(f"multi_dot(): the {place} tensor must be 1D or 2D but got {tensor.ndim}D")
    for i, tensor in enumerate(tensors):
        if tensor.dtype is not tensors[0].dtype:
            first, other = (NAMES.get(one.dtype.name, one.dtype.name) for one in (tensors[0], tensor))
            raise RuntimeError(f"multi_dot(): all tensors must have be the same dtype but tensor 0 is {first} and "
                               f"tensor {i} {other}")
    row, column = tensors[0].ndim == 1, tensors[-1].ndim == 1
    if row:
        tensors[0] = aten.unsqueeze(tensors[0], 0)
    if column:
        tensors[-1] = aten.unsqueeze(tensors[-1], -1)
    for i, tensor in enumerate(tensors):
        if tensor.ndim != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D but got {tensor.ndim}D")
    for i, (left, right) in enumerate(pairwise(tensors)):
        if left._a.shape[1] != right._a.shape[0]:
            raise RuntimeError(f"multi_dot(): tensors {i} and {i + 1} with shapes {list(left._a.shape)} and "
                               f"{list(right._a.shape)} cannot be multiplied")
    extents = [t._a.shape[0] for t in tensors] + [tensors[-1]._a.shape[1]]
    shape = ([] if row else [extents[0]]) + ([] if column else [extents[-1]])
    return aten.view(_multiply(tensors, extents, 0, len(tensors) - 1, {}), shape)


def _multiply(tensors: list[Tensor], extents: list[int], first: int, last: int, memory: dict[Any, Any]) -> Tensor:
    if first == last:
        return tensors[first]
    cut = _cheapest_order(extents, first, last, memory)[1]
    return aten.mm(_multiply(tensors, extents, first, cut, memory), _multiply(tensors, extents, cut + 1, last, memory))


declare("linalg_multi_dot(Tensor[] tensors) -> Tensor", composite=_multi_dot, where="n")


declare("chain_matmul(Tensor[] matrices) -> Tensor", where="n",
        composite=lambda matrices: _multi_dot(matrices) if len(matrices) > 1 else matrices[0])


@choose("chain_matmul", where="f")
def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """Product of several matrices in the cheapest order."""
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    warn_once("torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use "
              "torch.linalg.multi_dot, which takes a list, instead.")
    for matrix in matrices:
        if matrix.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {matrix.ndim}, expected 2 instead.")
    made = aten.chain_matmul__default(list(matrices))
    return made if out is None else write_results("chain_matmul", out, made)
