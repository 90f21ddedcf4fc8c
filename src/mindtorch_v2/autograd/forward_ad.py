"""`torch.autograd.forward_ad`: not available, as this runtime differentiates in reverse only."""

from __future__ import annotations

from .._absent import refusing, refusing_class

__all__ = ["dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]

_REASON = ("torch.autograd.forward_ad.{0}: this runtime has no forward-mode differentiation; "
           "torch.autograd.functional.jvp computes the same products by differentiating twice")
dual_level = refusing_class("dual_level", NotImplementedError, _REASON.format("dual_level"))
enter_dual_level = refusing("enter_dual_level", NotImplementedError, _REASON.format("enter_dual_level"))
exit_dual_level = refusing("exit_dual_level", NotImplementedError, _REASON.format("exit_dual_level"))
make_dual = refusing("make_dual", NotImplementedError, _REASON.format("make_dual"))
unpack_dual = refusing("unpack_dual", NotImplementedError, _REASON.format("unpack_dual"))
