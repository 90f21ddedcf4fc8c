"""`torch.backends.cpu`: what the processor can do for this runtime's own kernels."""

from __future__ import annotations

from .._backends.cpu import providers

_WORDS = {"avx512": "AVX512", "avx2": "AVX2"}


def get_cpu_capability() -> str:
    """The instructions that the C kernels use: "AVX512", "AVX2", or "DEFAULT" for plain ones and without the kernels.

    torchvision asks for it to decide how it resizes bytes.
    """
    return _WORDS.get(providers.native.level(), "DEFAULT") if providers.native is not None else "DEFAULT"
