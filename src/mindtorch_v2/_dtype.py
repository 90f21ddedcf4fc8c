"""Element types: one object per dtype, its NumPy twin, and the promotion lattice."""

from __future__ import annotations

from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

BOOL, INTEGER, FLOAT, COMPLEX = range(4)


class dtype:
    """An element type, such as `float32`. There is one object per type; compare with `is` or `==`.

    >>> import mindtorch_v2 as torch
    >>> torch.float16.itemsize, torch.float16.is_floating_point
    (2, True)
    """

    __slots__ = ("aliases", "category", "is_complex", "is_floating_point", "is_signed", "itemsize", "name", "np")

    def __init__(self, name: str, numpy_type: Any, category: int, aliases: tuple[str, ...] = ()) -> None:
        self.name = name
        self.np = np.dtype(numpy_type)
        self.category = category
        self.itemsize = self.np.itemsize
        self.is_floating_point = category == FLOAT
        self.is_complex = category == COMPLEX
        self.is_signed = (category >= FLOAT or name.startswith("int")) and name != "float8_e8m0fnu"
        self.aliases = aliases

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return dtype_from_name, (self.name,)

    def to_real(self) -> dtype:
        """The type of the real part: `complex64` gives `float32`, real types give themselves."""
        return {complex64: float32, complex128: float64}.get(self, self)

    def to_complex(self) -> dtype:
        """The complex type whose parts have this precision."""
        if not (self.is_floating_point or self.is_complex):
            raise RuntimeError(f"Unknown Complex ScalarType for {cpp_name(self.name)}")
        return complex128 if self in (float64, complex128) else complex64


float16 = dtype("float16", np.float16, FLOAT, ("half",))
bfloat16 = dtype("bfloat16", ml_dtypes.bfloat16, FLOAT)
float32 = dtype("float32", np.float32, FLOAT, ("float",))
float64 = dtype("float64", np.float64, FLOAT, ("double",))
int8 = dtype("int8", np.int8, INTEGER)
int16 = dtype("int16", np.int16, INTEGER, ("short",))
int32 = dtype("int32", np.int32, INTEGER, ("int",))
int64 = dtype("int64", np.int64, INTEGER, ("long",))
uint8 = dtype("uint8", np.uint8, INTEGER)
uint16 = dtype("uint16", np.uint16, INTEGER)
uint32 = dtype("uint32", np.uint32, INTEGER)
uint64 = dtype("uint64", np.uint64, INTEGER)
DType: TypeAlias = dtype  # for parameters that are themselves called dtype

bool_ = dtype("bool", np.bool_, BOOL)
complex64 = dtype("complex64", np.complex64, COMPLEX, ("cfloat",))
complex128 = dtype("complex128", np.complex128, COMPLEX, ("cdouble",))

ALL_DTYPES = (float16, bfloat16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64, bool_,
              complex64, complex128)
# Eight bits: stored, copied and converted. Ops with other tensors need a conversion first.
FLOAT8 = tuple(dtype(name, getattr(ml_dtypes, name), FLOAT) for name in (
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu") if hasattr(ml_dtypes, name))
# PyTorch stores and converts these but promotes them only to real floating types.
WIDE_UNSIGNED = (uint16, uint32, uint64)
HALF_TYPES = (float16.np, bfloat16.np)

FROM_NUMPY: dict[np.dtype, dtype] = {d.np: d for d in (*ALL_DTYPES, *FLOAT8)}
_BY_NAME = {d.name: d for d in (*ALL_DTYPES, *FLOAT8)}


# PyTorch's C++ names, as its messages use them; those of the types with eight bits begin with a capital letter.
CPP_NAMES = {"float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "int64": "Long",
             "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool",
             "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64", "complex64": "ComplexFloat",
             "complex128": "ComplexDouble"}

# Python's types stand for the dtypes of their width: `torch.zeros(2, dtype=float)` is of float64.
PYTHON_DTYPES: dict[Any, dtype] = {float: float64, int: int64, bool: bool_, complex: complex128}


def as_dtype(kind: Any, function: str) -> dtype:
    """A dtype, or the one that a type of Python's stands for, or PyTorch's error of the function it was given to."""
    if isinstance(kind, dtype):
        return kind
    if isinstance(kind, type) and kind in PYTHON_DTYPES:
        return PYTHON_DTYPES[kind]
    raise TypeError(f"{function}(): argument 'dtype' must be torch.dtype, not {type(kind).__name__}")


def dtype_from_name(name: str) -> dtype:
    """The dtype called `name` ("float32")."""
    return _BY_NAME[name]


def dtype_of_array(array_dtype: np.dtype) -> dtype:
    """The dtype of a NumPy dtype, or PyTorch's TypeError for one without a counterpart."""
    found = FROM_NUMPY.get(array_dtype)
    if found is None:
        if not array_dtype.isnative:
            raise ValueError("given numpy array has byte order different from the native byte order. Conversion "
                             "between byte orders is currently not supported.")
        names = ("float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, "
                 "uint8, and bool")
        raise TypeError(
            f"can't convert np.ndarray of type {array_dtype.type.__module__}.{array_dtype.type.__name__}. "
            f"The only supported types are: {names}."
        )
    return found


# Signed integers by width; uint8 joins them one width up.
_INT_ORDER = {np.dtype(np.int8): 1, np.dtype(np.int16): 2, np.dtype(np.int32): 3, np.dtype(np.int64): 4}
_FLOAT_RANK = {float16: 1, bfloat16: 1, float32: 2, float64: 3}


def _promote(a: dtype, b: dtype) -> dtype:
    if a is b:
        return a
    low, high = (a, b) if a.category <= b.category else (b, a)
    if high.category == COMPLEX:
        return complex128 if float64 in (low, high) or complex128 in (low, high) else complex64
    if high.category == FLOAT:
        if low.category != FLOAT:
            return high
        if _FLOAT_RANK[low] == _FLOAT_RANK[high]:
            return float32  # float16 with bfloat16
        return max(low, high, key=_FLOAT_RANK.__getitem__)
    if low.category == BOOL:
        return high
    if uint8 in (low, high):
        other = high if low is uint8 else low
        return int16 if other is int8 else other
    return max(low, high, key=lambda d: _INT_ORDER[d.np])


def cpp_name(name: str) -> str:
    """PyTorch's C++ name of a dtype."""
    return CPP_NAMES.get(name, name.capitalize())


class _Promotion(dict[tuple[dtype, dtype], dtype]):
    """The result of every pair that has one."""

    def __missing__(self, pair: tuple[dtype, dtype]) -> dtype:
        first, second = (d.name for d in pair)
        if pair[0] in FLOAT8 or pair[1] in FLOAT8:
            raise RuntimeError("Promotion for Float8 Types is not supported, attempted to promote "
                               f"{cpp_name(first)} and {cpp_name(second)}")
        raise RuntimeError("Promotion for uint16, uint32, uint64 types is not supported, attempted to promote "
                           f"{first} and {second}")


def _has_promotion(a: dtype, b: dtype) -> bool:
    return a is b or not any(d in WIDE_UNSIGNED for d in (a, b)) or FLOAT in (a.category, b.category)


PROMOTION = _Promotion({(a, b): _promote(a, b) for a in ALL_DTYPES for b in ALL_DTYPES if _has_promotion(a, b)})
PROMOTION.update({(d, d): d for d in FLOAT8})


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest type both can be converted to.

    >>> import mindtorch_v2 as torch
    >>> torch.promote_types(torch.int32, torch.float16)
    torch.float16
    """
    try:
        return PROMOTION[type1, type2]
    except (AttributeError, KeyError):
        if type1 in PYTHON_DTYPES or type2 in PYTHON_DTYPES:
            return PROMOTION[PYTHON_DTYPES.get(type1, type1), PYTHON_DTYPES.get(type2, type2)]
        number = 1 if not isinstance(type1, dtype) else 2
        if isinstance((type1, type2)[number - 1], dtype):
            raise
        raise TypeError(f"promote_types(): argument 'type{number}' (position {number}) must be torch.dtype, not "
                        f"{type((type1, type2)[number - 1]).__name__}") from None


class DefaultDtype:
    """Holds the process-wide default floating type."""

    value = float32


def get_default_dtype() -> dtype:
    """The floating type that `torch.tensor(1.0)` gets."""
    return DefaultDtype.value


def set_default_dtype(d: dtype) -> None:
    """Set the floating type of new tensors made from Python floats."""
    if not isinstance(d, dtype):
        raise TypeError(f"invalid dtype object: only floating-point types are supported as the default type, got {d!r}")
    if d.category != FLOAT:
        raise TypeError("only floating-point types are supported as the default type")
    DefaultDtype.value = d


def default_complex() -> dtype:
    """The complex type that goes with the default floating type."""
    return DefaultDtype.value.to_complex()


class finfo:
    """Limits of a floating type.

    >>> import mindtorch_v2 as torch
    >>> torch.finfo(torch.float32).bits
    32
    """

    def __init__(self, type: Any = None) -> None:
        chosen = DefaultDtype.value if type is None else PYTHON_DTYPES.get(type, type)
        if not isinstance(chosen, dtype):
            raise TypeError("finfo(): argument 'type' (position 1) must be torch.dtype, not "
                            f"{chosen.__class__.__name__}")
        if not isinstance(chosen, dtype) or chosen.category < FLOAT:
            raise TypeError(
                f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle '{chosen!r}'"
            )
        real = chosen.to_real()
        info = ml_dtypes.finfo(real.np)
        self.dtype = real.name
        self.bits = int(info.bits)
        self.eps = float(info.eps)
        self.max = float(info.max)
        self.min = float(info.min)
        self.tiny = self.smallest_normal = float(info.tiny)
        self.resolution = 1.0 if real in FLOAT8 else 10.0 ** -int(info.precision)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        values = ", ".join(f"{name}={getattr(self, name):g}" for name in shown)
        return f"finfo({values}, dtype={self.dtype})"


class iinfo:
    """Limits of an integer type."""

    def __init__(self, type: Any) -> None:
        type = PYTHON_DTYPES.get(type, type)
        if type is bool_:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        if not isinstance(type, dtype) or type.category != INTEGER:
            raise TypeError(
                f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{type!r}'"
            )
        info = np.iinfo(type.np)
        self.dtype = type.name
        self.bits = info.bits
        self.max = int(info.max)
        self.min = int(info.min)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    __hash__ = None  # type: ignore[assignment]


def check_can_require_grad(kind: dtype) -> None:
    """Refuse a gradient of what has none."""
    if kind.category < FLOAT:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
