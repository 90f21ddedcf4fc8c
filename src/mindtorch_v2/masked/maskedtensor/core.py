"""`MaskedTensor`: a tensor some of whose elements have no value.

It wraps two plain tensors. Autograd records above it, ops come to `__torch_dispatch__`; reductions are taken before
(`__torch_function__`), because their gradients need the mask.
"""

from __future__ import annotations

import warnings
from typing import Any

from ..._dispatch.overriding import DisableTorchFunctionSubclass
from ..._dtype import bool_, float16, float32, float64, int8, int16, int32, int64
from ..._tensor import Tensor, sparse_coo, sparse_csr, strided
from ...autograd import Function
from .printing import described
from .sparse import at_places

__all__ = ["MaskedTensor", "is_masked_tensor"]

_DTYPES = (float16, float32, float64, bool_, int8, int16, int32, int64)


def is_masked_tensor(obj: Any, /) -> bool:
    """Whether this is a tensor with a mask.

    >>> import mindtorch_v2 as torch
    >>> is_masked_tensor(torch.ones(2))
    False
    """
    return isinstance(obj, MaskedTensor)


def _tensors_match(a: Tensor, b: Tensor, exact: bool = True, rtol: float = 1e-05, atol: float = 1e-08) -> bool:
    """Whether two plain tensors have equal elements and the same layout."""
    if is_masked_tensor(a) or is_masked_tensor(b):
        raise ValueError("Neither a nor b can be a MaskedTensor.")
    if a.layout != b.layout:
        raise ValueError(f"a and b must have the same layout. Got {a.layout} and {b.layout}")
    if a.dtype != b.dtype:
        b = b.to(a.dtype)
    if a.layout != strided:
        a, b = a.to_dense(), b.to_dense()
    if exact:
        return a.shape == b.shape and bool((a == b).all())
    return a.allclose(b, rtol=rtol, atol=atol)


def _masks_match(a: Any, b: Any) -> bool:
    """Whether two tensors, if both are masked, have equal masks."""
    if is_masked_tensor(a) and is_masked_tensor(b):
        return _tensors_match(a.get_mask(), b.get_mask())
    return True


def _get_data(a: Any) -> Any:
    return a._masked_data if is_masked_tensor(a) else a


def _maybe_get_mask(a: Any) -> Any:
    return a._masked_mask if is_masked_tensor(a) else None


def _parts(values: Any, part: Any) -> Any:
    """Arguments with one part of each masked tensor in its place."""
    if isinstance(values, (list, tuple)):
        return type(values)(_parts(one, part) for one in values)
    if isinstance(values, dict):
        return {name: _parts(one, part) for name, one in values.items()}
    return part(values) if is_masked_tensor(values) else values


def _map_mt_args_kwargs(args: Any, kwargs: Any, map_fn: Any) -> tuple[Any, Any]:
    """The arguments of a call with a function of each masked tensor in its place."""
    return _parts(tuple(args), map_fn), _parts(dict(kwargs or {}), map_fn)


def _wrap_result(result_data: Any, result_mask: Any) -> Any:
    """Results of an op on data and on masks, as masked tensors."""
    if isinstance(result_data, (list, tuple)):
        return type(result_data)(map(_wrap_result, result_data, result_mask))
    return MaskedTensor(result_data, result_mask) if isinstance(result_data, Tensor) else result_data


class _Data(Function):
    """The data of a masked tensor; its gradient has the mask."""

    @staticmethod
    def forward(ctx: Any, masked: Any) -> Any:
        ctx.mask = masked._masked_mask
        return masked._masked_data.detach()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        if is_masked_tensor(grad):
            return grad
        dense = grad if grad.layout == strided else grad.to_dense()
        return MaskedTensor(dense if ctx.mask.layout == strided else at_places(dense, ctx.mask), ctx.mask)


class _Masked(Function):
    """Data with a mask; the data's gradient has none."""

    @staticmethod
    def forward(ctx: Any, data: Any, mask: Any) -> Any:
        return MaskedTensor(data.detach(), mask)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        if is_masked_tensor(grad):
            grad = (grad if grad.layout == strided else grad.to_dense()).to_tensor(0)
        return grad, None


class MaskedTensor(Tensor):
    """Data, and a mask of the same shape that says which of its elements have a value.

    >>> import warnings, mindtorch_v2 as torch
    >>> warnings.simplefilter("ignore")
    >>> torch.masked.masked_tensor(torch.tensor([1.0, 2.0]), torch.tensor([True, False]))
    MaskedTensor(
      [  1.0000,       --]
    )
    """

    _masked_data: Any
    _masked_mask: Any

    @staticmethod
    def __new__(cls: Any, data: Any, mask: Any, requires_grad: bool = False) -> Any:
        for name, one in (("data", data), ("mask", mask)):
            if is_masked_tensor(one) or not isinstance(one, Tensor):
                raise TypeError(f"{name} must be a Tensor")
        warnings.warn("MaskedTensor is a prototype in PyTorch: what it does may change", UserWarning, stacklevel=2)
        if data.requires_grad:
            warnings.warn("It is not recommended to create a MaskedTensor with a tensor that requires_grad; "
                          "data.detach().clone() avoids this", UserWarning, stacklevel=2)
        return Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, data.size(), dtype=data.dtype, device=data.device, requires_grad=requires_grad,
            **({"strides": data.stride()} if data.layout == strided else {}))

    def __init__(self, data: Any, mask: Any, requires_grad: bool = False) -> None:
        data, mask = _preprocessed(data, mask)
        _validate(data, mask)
        self._set_data_mask(data, mask)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return MaskedTensor, (self._masked_data, self._masked_mask, self.requires_grad)

    @staticmethod
    def _from_values(data: Any, mask: Any) -> Any:
        """Data with a mask, with an edge to the data in the graph."""
        return _Masked.apply(data, mask)

    def _set_data_mask(self, data: Any, mask: Any) -> None:
        self._masked_data, self._masked_mask = data.detach() if data.requires_grad else data, mask

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return described(self.get_data().detach(), self.get_mask())

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Take the functions whose gradient needs the mask; the others go on to dispatch."""
        from .functions import taken
        kwargs = kwargs or {}
        function = taken(func)
        if function is not None:
            return function(*args, **kwargs)
        if not all(issubclass(cls, one) for one in types):
            return NotImplemented
        with DisableTorchFunctionSubclass():
            return func(*args, **kwargs)

    @classmethod
    def unary(cls, fn: Any, data: Any, mask: Any) -> Any:
        """A function of the data, with the mask."""
        return MaskedTensor(fn(data), mask)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """What an op does to masked tensors; NotImplemented where that is not defined."""
        from .functions import dispatched
        function = dispatched(func.overloadpacket)
        if function is None:
            name = func.overloadpacket.__name__
            warnings.warn(f"{name} is not implemented in __torch_dispatch__ for MaskedTensor. It would need a meaning "
                          "for the elements that the mask leaves out", UserWarning, stacklevel=2)
            return NotImplemented
        return function(func, *args, **(kwargs or {}))

    def __lt__(self, other: Any) -> Any:
        if is_masked_tensor(other):
            other = _get_data(other)
        return MaskedTensor(self.get_data() < other, self.get_mask())

    def to_tensor(self, value: Any) -> Tensor:
        """A plain tensor with this value where the mask leaves elements out."""
        return self.get_data().masked_fill(~self.get_mask(), value)

    def get_data(self) -> Tensor:
        """The plain data, also of the elements that the mask leaves out."""
        return _Data.apply(self)

    def get_mask(self) -> Tensor:
        """The mask."""
        return self._masked_mask

    def is_sparse_coo(self) -> bool:
        """Whether the data is sparse with coordinates."""
        return self.layout == sparse_coo

    def is_sparse_csr(self) -> bool:  # type: ignore[override]
        """Whether the data is sparse with compressed rows."""
        return self.layout == sparse_csr

    @property
    def layout(self) -> Any:
        """The layout of the data."""
        return self._masked_data.layout

    @property
    def is_sparse(self) -> bool:
        """Whether the data is sparse."""
        return self.is_sparse_coo() or self.is_sparse_csr()


def _preprocessed(data: Any, mask: Any) -> tuple[Any, Any]:
    """Data and mask as they are kept: sparse data has the elements of its mask and no others."""
    if data.layout != mask.layout:
        raise TypeError("data and mask must have the same layout.")
    if data.layout == sparse_coo:
        data, mask = data.coalesce(), mask.coalesce()
    if data.layout != strided and data._nnz() != mask._nnz():
        data = at_places(data.to_dense(), mask)
    return data.clone(), mask.clone()


def _validate(data: Any, mask: Any) -> None:
    if data.layout not in (strided, sparse_coo, sparse_csr):
        raise TypeError(f"data layout of {data.layout} is not supported.")
    if data.layout == sparse_coo and not _tensors_match(data.indices(), mask.indices()):
        raise ValueError("data and mask are both sparse COO tensors but do not have the same indices.")
    if data.layout == sparse_csr and not (_tensors_match(data.crow_indices(), mask.crow_indices())
                                          and _tensors_match(data.col_indices(), mask.col_indices())):
        raise ValueError("data and mask are both sparse CSR tensors but do not share the same indices.")
    if mask.dtype != bool_:
        raise TypeError("mask must have dtype bool.")
    if data.dtype not in _DTYPES:
        raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
    if data.dim() != mask.dim():
        raise ValueError("data.dim() must equal mask.dim()")
    if data.size() != mask.size():
        raise ValueError("data.size() must equal mask.size()")
