"""`torch.backends.cuda`: not there. The flags can be set and read back, since programs set them unasked."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from .._attention_backends import ALL, ALLOWED
from .._tensor import Tensor

_MATH, _FLASH, _EFFICIENT, _CUDNN = range(4)  # as `SDPBackend` has them


class _Reduction:
    """What `allow_fp16_bf16_reduction_math_sdp` was told."""

    allowed = False


class _Matmul:
    """Precision of matrix products on a device that does not exist."""

    allow_tf32 = False
    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True
    allow_fp16_accumulation = False
    fp32_precision = "none"


matmul: Any = _Matmul()


class _LinalgBackend(enum.Enum):
    """CUDA's libraries for linear algebra."""

    Default = 0
    Cusolver = 1
    Magma = 2


class _BlasBackend(enum.Enum):
    """CUDA's libraries for products of matrices."""

    Default = 0
    Cublas = 1
    Cublaslt = 2
    Ck = 3


_Library = TypeVar("_Library", bound=enum.Enum)


def _preferred(kinds: type[_Library], wanted: Any, only: _Library, others: dict[str, str]) -> _Library:
    """The one library that can be chosen, since no other is there."""
    name = getattr(wanted, "name", wanted)
    if name is not None and not isinstance(name, str):
        raise RuntimeError("Unknown input value type.")
    if name is not None and name.lower() not in ("default", only.name.lower()):
        if name.lower() not in others:
            raise RuntimeError(f"Unknown input value. Choose from: {', '.join(one.name.lower() for one in kinds)}.")
        library = others[name.lower()]
        raise RuntimeError(f"Cannot set preferred backend to {library} if PyTorch has not been compiled with "
                           f"{library}.")
    return only


def preferred_linalg_library(backend: Any = None) -> _LinalgBackend:
    """The default: CUDA is not there, so nothing can be preferred."""
    return _preferred(_LinalgBackend, backend, _LinalgBackend.Default, {"cusolver": "cuSOLVER", "magma": "MAGMA"})


def preferred_blas_library(backend: Any = None) -> _BlasBackend:
    """What PyTorch answers without CUDA; others cannot be preferred."""
    return _preferred(_BlasBackend, backend, _BlasBackend.Cublas,
                      {"cublaslt": "cuBLASLt", "hipblaslt": "cuBLASLt", "ck": "CK"})


def is_ck_sdpa_available() -> bool:
    """False."""
    return False


def is_built() -> bool:
    """False."""
    return False


def _enabled(number: int) -> bool:
    """Whether a way to compute attention is allowed."""
    return number in ALLOWED.numbers


def _enable(number: int, enabled: bool) -> None:
    """Allow a way to compute attention, or forbid it."""
    ALLOWED.numbers = tuple(one for one in ALL if (enabled if one == number else one in ALLOWED.numbers))


def flash_sdp_enabled() -> bool:
    """Whether attention may be computed in one go."""
    return _enabled(_FLASH)


def mem_efficient_sdp_enabled() -> bool:
    """Whether PyTorch's way to save memory is allowed; it is CUDA's."""
    return _enabled(_EFFICIENT)


def math_sdp_enabled() -> bool:
    """Whether attention may be computed step by step."""
    return _enabled(_MATH)


def cudnn_sdp_enabled() -> bool:
    """Whether cuDNN's way is allowed."""
    return _enabled(_CUDNN)


def enable_flash_sdp(enabled: bool) -> None:
    """Whether attention may be computed in one go."""
    _enable(_FLASH, enabled)


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Whether PyTorch's way to save memory is allowed."""
    _enable(_EFFICIENT, enabled)


def enable_math_sdp(enabled: bool) -> None:
    """Whether attention may be computed step by step."""
    _enable(_MATH, enabled)


def enable_cudnn_sdp(enabled: bool) -> None:
    """Whether cuDNN's way is allowed."""
    _enable(_CUDNN, enabled)


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Remembered only: sums of 16-bit numbers are kept in 32 bits here."""
    _Reduction.allowed = enabled


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """What was said last."""
    return _Reduction.allowed


def __getattr__(name: str) -> Any:
    """`SDPBackend` is known here too; its module is imported after this one."""
    if name == "SDPBackend":
        from ..nn.attention import SDPBackend

        return SDPBackend
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class SDPAParams:
    """What attention is called with, for the questions below."""

    __slots__ = ("attn_mask", "dropout", "enable_gqa", "is_causal", "key", "query", "value")

    def __init__(self, query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, dropout: float,
                 is_causal: bool, enable_gqa: bool) -> None:
        if not all(isinstance(one, Tensor) for one in (query, key, value)):
            raise TypeError("__init__(): incompatible constructor arguments: query, key and value must be tensors")
        self.query, self.key, self.value, self.attn_mask = query, key, value, attn_mask
        self.dropout, self.is_causal, self.enable_gqa = dropout, is_causal, enable_gqa


def can_use_flash_attention(params: Any, debug: bool = False) -> bool:
    """False: that kernel is CUDA's."""
    return False


can_use_efficient_attention = can_use_cudnn_attention = can_use_flash_attention


def is_flash_attention_available() -> bool:
    """False."""
    return False


@contextmanager
def sdp_kernel(enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True,
               enable_cudnn: bool = True) -> Iterator[None]:
    """A block with some of the ways to compute attention."""
    before = ALLOWED.numbers
    wanted = {_FLASH: enable_flash, _MATH: enable_math, _EFFICIENT: enable_mem_efficient, _CUDNN: enable_cudnn}
    ALLOWED.numbers = tuple(one for one in ALL if wanted.get(one, one in before))
    try:
        yield
    finally:
        ALLOWED.numbers = before
