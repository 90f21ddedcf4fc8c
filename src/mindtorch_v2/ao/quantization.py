"""`torch.ao.quantization`: the layers that mark where a model would be quantized. Quantizing it raises."""

from __future__ import annotations

from typing import Any

from .._absent import refusing
from .._tensor import Tensor
from ..nn.modules.module import Module

__all__ = ["DeQuantStub", "QuantStub", "QuantWrapper", "convert", "fuse_modules", "fuse_modules_qat",
           "get_default_qat_qconfig", "get_default_qconfig", "prepare", "prepare_qat", "quantize", "quantize_dynamic"]

_REASON = "torch.ao.quantization.{0}: this runtime has no quantized tensors"
convert = refusing("convert", NotImplementedError, _REASON.format("convert"))
fuse_modules = refusing("fuse_modules", NotImplementedError, _REASON.format("fuse_modules"))
fuse_modules_qat = refusing("fuse_modules_qat", NotImplementedError, _REASON.format("fuse_modules_qat"))
get_default_qat_qconfig = refusing("get_default_qat_qconfig", NotImplementedError,
                                   _REASON.format("get_default_qat_qconfig"))
get_default_qconfig = refusing("get_default_qconfig", NotImplementedError, _REASON.format("get_default_qconfig"))
prepare = refusing("prepare", NotImplementedError, _REASON.format("prepare"))
prepare_qat = refusing("prepare_qat", NotImplementedError, _REASON.format("prepare_qat"))
quantize = refusing("quantize", NotImplementedError, _REASON.format("quantize"))
quantize_dynamic = refusing("quantize_dynamic", NotImplementedError, _REASON.format("quantize_dynamic"))


class _Stub(Module):
    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        """The input: until a model is converted, these layers do nothing."""
        return x


class QuantStub(_Stub):
    """Where a converted model would quantize its input."""


class DeQuantStub(_Stub):
    """Where a converted model would dequantize its output."""


class QuantWrapper(Module):
    """A module between the two stubs."""

    def __init__(self, module: Module) -> None:
        super().__init__()
        self.quant = QuantStub(getattr(module, "qconfig", None))
        self.dequant = DeQuantStub(getattr(module, "qconfig", None))
        self.add_module("module", module)
        self.train(module.training)

    def forward(self, X: Tensor) -> Tensor:
        """The module's output."""
        return self.dequant(self.module(self.quant(X)))
