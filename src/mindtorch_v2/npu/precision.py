"""`torch.npu.matmul` and `torch.npu.conv`: whether products of float32 may be computed in HF32."""

from __future__ import annotations

from .._backends.npu.settings import Switches


class _Matmul:
    """Matrix products."""

    @property
    def allow_hf32(self) -> bool:
        """Whether they may."""
        return Switches.matmul_hf32

    @allow_hf32.setter
    def allow_hf32(self, value: bool) -> None:
        Switches.matmul_hf32 = bool(value)


class _Convolution:
    """Convolutions."""

    @property
    def allow_hf32(self) -> bool:
        """Whether they may."""
        return Switches.convolution_hf32

    @allow_hf32.setter
    def allow_hf32(self, value: bool) -> None:
        Switches.convolution_hf32 = bool(value)


matmul, conv = _Matmul(), _Convolution()
