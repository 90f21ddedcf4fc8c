"""Ops of PyTorch that this runtime lacks, but that libraries name without calling them.

A library says which ops its tensor class takes over with `{torch.ops.aten._pin_memory.default: …}`. Such an op exists
as an object, and raises when it is called.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NoReturn

_FORMS = "this runtime does the same with other ops, or not at all"
# Name -> why it is missing.
ABSENT = {
    "_efficient_attention_forward": "a kernel of CUDA devices",
    "_flash_attention_forward": "a kernel of CUDA devices",
    **dict.fromkeys(("_scaled_mm", "_scaled_mm_v2"), "products of float8 are not computed here"),
    "_assert_async": _FORMS, "_assert_scalar": _FORMS, "_assert_tensor_metadata": _FORMS,
    "_pin_memory": "pinned memory is the device's own; use Tensor.pin_memory",
    "_scaled_dot_product_cudnn_attention": "a kernel of CUDA devices",
    "_scaled_dot_product_cudnn_attention_backward": "a kernel of CUDA devices",
    "_scaled_dot_product_flash_attention": "a kernel of CUDA devices",
    "_scaled_dot_product_flash_attention_backward": "a kernel of CUDA devices",
    "_sparse_addmm": "use torch.sparse.addmm", "_sparse_mm_reduce_impl": "use torch.sparse.mm",
    "sym_constrain_range": "sizes are numbers here", "sym_constrain_range_for_size": "sizes are numbers here",
}
# Overloads of ops that exist here in other forms.
ABSENT_OVERLOADS = {"mm": ("dtype", "dtype_out"), "sort": ("values", "values_stable"), "to": ("other", "device"),
                    "topk": ("values",)}


class AbsentOp:
    """An op, or one overload of it, that says why it cannot be called."""

    def __init__(self, name: str, overload: str = "") -> None:
        self._name, self._overload = name, overload
        self.__name__ = f"{name}.{overload}" if overload else name

    def __deepcopy__(self, memo: Any) -> AbsentOp:
        return self  # there is one of each

    def __getattr__(self, overload: str) -> AbsentOp:
        if overload.startswith("__") or self._overload:
            raise AttributeError(f"'{self.__name__}' has no attribute '{overload}'")
        return absent(self._name, overload)

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        reason = ABSENT.get(self._name, "this overload is not there; call the op by its name")
        raise NotImplementedError(f"aten::{self.__name__} is not part of this runtime: {reason}")

    def __repr__(self) -> str:
        kind = "OpOverload" if self._overload else "OpOverloadPacket"
        return f"<{kind}(op='aten.{self._name}'{f', overload={self._overload!r}' if self._overload else ''})>"


@cache
def absent(name: str, overload: str = "") -> AbsentOp:
    """One object for one name."""
    return AbsentOp(name, overload)


def look_up(name: str) -> AbsentOp | None:
    """The private op of this name, which `torch` itself has too; None if it is not one of these."""
    return absent(name) if name.startswith("_") and name in ABSENT else None
