"""`torch.library`: ops of a program's own belong to PyTorch's C++ dispatcher, which is not here."""

from __future__ import annotations

from ._absent import refusing, refusing_class

__all__ = ["CustomOpDef", "Library", "custom_op", "define", "fallthrough_kernel", "get_ctx", "impl", "impl_abstract",
           "infer_schema", "opcheck", "register_autocast", "register_autograd", "register_fake", "register_kernel",
           "register_torch_dispatch", "register_vmap", "triton_op", "wrap_triton"]

_REASON = ("torch.library.{0}: ops are registered with PyTorch's C++ dispatcher, which this runtime does not have; "
           "write the operation as a function, or with torch.autograd.Function")
CustomOpDef = refusing_class("CustomOpDef", NotImplementedError, _REASON.format("CustomOpDef"))
Library = refusing_class("Library", NotImplementedError, _REASON.format("Library"))
custom_op = refusing("custom_op", NotImplementedError, _REASON.format("custom_op"))
define = refusing("define", NotImplementedError, _REASON.format("define"))
fallthrough_kernel = refusing("fallthrough_kernel", NotImplementedError, _REASON.format("fallthrough_kernel"))
get_ctx = refusing("get_ctx", NotImplementedError, _REASON.format("get_ctx"))
impl = refusing("impl", NotImplementedError, _REASON.format("impl"))
impl_abstract = refusing("impl_abstract", NotImplementedError, _REASON.format("impl_abstract"))
infer_schema = refusing("infer_schema", NotImplementedError, _REASON.format("infer_schema"))
opcheck = refusing("opcheck", NotImplementedError, _REASON.format("opcheck"))
register_autocast = refusing("register_autocast", NotImplementedError, _REASON.format("register_autocast"))
register_autograd = refusing("register_autograd", NotImplementedError, _REASON.format("register_autograd"))
register_fake = refusing("register_fake", NotImplementedError, _REASON.format("register_fake"))
register_kernel = refusing("register_kernel", NotImplementedError, _REASON.format("register_kernel"))
register_torch_dispatch = refusing("register_torch_dispatch", NotImplementedError,
                                   _REASON.format("register_torch_dispatch"))
register_vmap = refusing("register_vmap", NotImplementedError, _REASON.format("register_vmap"))
triton_op = refusing("triton_op", NotImplementedError, _REASON.format("triton_op"))
wrap_triton = refusing("wrap_triton", NotImplementedError, _REASON.format("wrap_triton"))
_scoped_library = refusing("_scoped_library", NotImplementedError, _REASON.format("_scoped_library"))
