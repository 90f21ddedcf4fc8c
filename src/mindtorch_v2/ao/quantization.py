"""`torch.ao.quantization`: the layers that mark where a model would be quantized. Quantizing it raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from .._absent import refusing, refusing_class
from .._tensor import Tensor
from ..nn.modules.module import Module

__all__ = ["DeQuantStub", "FakeQuantizeBase", "ObserverBase", "QConfig", "QuantStub", "QuantWrapper", "convert",
           "default_observer", "default_per_channel_weight_observer", "default_weight_observer", "fuse_modules",
           "fuse_modules_qat", "get_default_qat_qconfig", "get_default_qconfig", "prepare", "prepare_qat", "quantize",
           "quantize_dynamic"]

_REASON = "torch.ao.quantization.{0}: this runtime has no quantized tensors"


def _refusing(name: str) -> Callable[..., NoReturn]:
    return refusing(name, NotImplementedError, _REASON)


def _refusing_class(name: str) -> type:
    return refusing_class(name, NotImplementedError, _REASON)


convert = _refusing("convert")
default_observer = _refusing("default_observer")
default_per_channel_weight_observer = _refusing("default_per_channel_weight_observer")
default_weight_observer = _refusing("default_weight_observer")
fuse_modules = _refusing("fuse_modules")
fuse_modules_qat = _refusing("fuse_modules_qat")
get_default_qat_qconfig = _refusing("get_default_qat_qconfig")
get_default_qconfig = _refusing("get_default_qconfig")
prepare = _refusing("prepare")
prepare_qat = _refusing("prepare_qat")
quantize = _refusing("quantize")
quantize_dynamic = _refusing("quantize_dynamic")
# No object is an instance of these, which is what libraries ask.
FakeQuantizeBase = _refusing_class("FakeQuantizeBase")
ObserverBase = _refusing_class("ObserverBase")
QConfig = _refusing_class("QConfig")


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
