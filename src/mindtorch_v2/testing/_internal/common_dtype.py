"""`torch.testing._internal.common_dtype`: sets of element types that tests run over.

Each set is a tuple that can be called, because tests write both `dtypes(*floating_types())` and
`floating_types_and(torch.half)`.
"""

from __future__ import annotations

from typing import Any

from ..._dtype import ALL_DTYPES, FLOAT8, dtype

_BY_NAME = {kind.name: kind for kind in (*ALL_DTYPES, *FLOAT8)}


def _named(*names: str) -> tuple[dtype, ...]:
    return tuple(_BY_NAME[name] for name in names)


class _Types(tuple[dtype, ...]):
    """Element types, with more of them on demand; all must be element types."""

    def __new__(cls, *kinds: Any) -> _Types:
        for kind in kinds:
            if not isinstance(kind, dtype):
                raise RuntimeError(f"an element type is expected, got {kind!r}")
        return super().__new__(cls, kinds)

    def __call__(self) -> _Types:
        return self

    def __add__(self, other: Any) -> _Types:
        return _Types(*self, *other)

    def __radd__(self, other: Any) -> _Types:
        return _Types(*other, *self)


_dispatch_dtypes = _Types  # under the name that tests import


def _validate_dtypes(*kinds: Any) -> tuple[Any, ...]:
    return tuple(_Types(*kinds))


_FLOATING = _named("float32", "float64")
_INTEGRAL = _named("uint8", "int8", "int16", "int32", "int64")
_COMPLEX = _named("complex64", "complex128")
_HALVES = _named("float16", "bfloat16")
_FLOAT8 = _named("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")

empty_types = _Types()
floating_types = _Types(*_FLOATING)
floating_types_and_half = floating_types + _named("float16")
integral_types = _Types(*_INTEGRAL)
complex_types = _Types(*_COMPLEX)
double_types = _Types(*_named("float64", "complex128"))
float8_types = _Types(*_FLOAT8)
floating_and_complex_types = floating_types + _COMPLEX
all_types = floating_types + _INTEGRAL
all_types_and_half = all_types + _named("float16")
all_types_and_complex = all_types + _COMPLEX
_ALL_MPS = _Types(*_named("float32", "float16", "int64", "int32", "int16", "int8", "uint8"))


def all_mps_types() -> _Types:
    """What Apple's devices compute."""
    return _ALL_MPS


def custom_types(*dtypes: dtype) -> _Types:
    """Just these."""
    return _Types(*dtypes)


def floating_types_and(*dtypes: dtype) -> _Types:
    """Real floating types and these."""
    return floating_types + dtypes


def floating_and_complex_types_and(*dtypes: dtype) -> _Types:
    """Floating types, complex ones and these."""
    return floating_and_complex_types + dtypes


def integral_types_and(*dtypes: dtype) -> _Types:
    """Integers and these."""
    return integral_types + dtypes


def complex_types_and(*dtypes: dtype) -> _Types:
    """Complex types and these."""
    return complex_types + dtypes


def float8_types_and(*dtypes: dtype) -> _Types:
    """Types of 8 bits and these."""
    return float8_types + dtypes


def all_types_and(*dtypes: dtype) -> _Types:
    """Real types and these."""
    return all_types + dtypes


def all_mps_types_and(*dtypes: dtype) -> _Types:
    """Apple's types and these."""
    return _ALL_MPS + dtypes


def all_types_and_complex_and(*dtypes: dtype) -> _Types:
    """All usual types and these."""
    return all_types_and_complex + dtypes


def all_types_complex_float8_and(*dtypes: dtype) -> _Types:
    """All usual types, those of 8 bits and these."""
    return all_types_and_complex + _FLOAT8 + dtypes


def get_all_dtypes(include_half: bool = True, include_bfloat16: bool = True, include_bool: bool = True,
                   include_complex: bool = True, include_complex32: bool = False,
                   include_qint: bool = False) -> list[dtype]:
    """The types, without those that are not asked for. Quantized types and complex halves are not here."""
    if include_complex32 or include_qint:
        raise NotImplementedError("get_all_dtypes: complex32 and quantized types are not supported")
    return [*get_all_int_dtypes(), *get_all_fp_dtypes(include_half, include_bfloat16),
            *(_named("bool") if include_bool else ()), *(get_all_complex_dtypes() if include_complex else ())]


def get_all_math_dtypes(device: str) -> list[dtype]:
    """The types that can be computed with on a device."""
    return [*get_all_int_dtypes(), *get_all_fp_dtypes(include_half=device.startswith("cuda"), include_bfloat16=False),
            *get_all_complex_dtypes()]


def get_all_complex_dtypes(include_complex32: bool = False) -> list[dtype]:
    """Complex types."""
    if include_complex32:
        raise NotImplementedError("get_all_complex_dtypes: complex32 is not supported")
    return list(_COMPLEX)


def get_all_int_dtypes() -> list[dtype]:
    """Integers."""
    return list(_INTEGRAL)


def get_all_fp_dtypes(include_half: bool = True, include_bfloat16: bool = True) -> list[dtype]:
    """Floating types."""
    return [*_FLOATING, *(_named("float16") if include_half else ()), *(_named("bfloat16") if include_bfloat16 else ())]


def get_all_qint_dtypes() -> list[dtype]:
    """Quantized types: there are none."""
    return []


def highest_precision_float(device: str) -> dtype:
    """The widest float of a device."""
    return _FLOATING[0] if device == "mps" else _FLOATING[1]


def highest_precision_complex(device: str) -> dtype:
    """The widest complex type of a device."""
    return _COMPLEX[0] if device == "mps" else _COMPLEX[1]


float_to_corresponding_complex_type_map = dict(zip(_named("float32", "float64"), _COMPLEX, strict=True))
