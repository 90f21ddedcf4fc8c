"""Element types that can be named and compared, but that no tensor here can have."""

from __future__ import annotations

from typing import Any, NoReturn

from ._dtype import COMPLEX, FLOAT, FLOAT8, INTEGER, dtype

REASON = "tensors of torch.{} are not supported: this runtime has the dtype as a name only"


class NamedDtype(dtype):
    """A dtype without arrays: every use of it for a tensor raises."""

    __slots__ = ("__refused__",)

    def __init__(self, name: str, itemsize: int, category: int, is_signed: bool | None) -> None:
        self.name = name
        self.category = category
        self.itemsize = itemsize
        self.is_floating_point = category == FLOAT
        self.is_complex = category == COMPLEX
        self.aliases = ()
        self.__refused__ = REASON.format(name)
        if is_signed is not None:
            self.is_signed = is_signed

    @property
    def np(self) -> NoReturn:
        """There is none."""
        raise NotImplementedError(self.__refused__)

    def __getattr__(self, attribute: str) -> Any:
        if attribute == "is_signed":
            raise RuntimeError(f"{self!r} has no sign")
        raise AttributeError(f"'torch.dtype' object has no attribute '{attribute}'")

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return named_dtype, (self.name,)


def _all() -> dict[str, NamedDtype]:
    found = [NamedDtype("complex32", 4, COMPLEX, True), NamedDtype("float4_e2m1fn_x2", 1, FLOAT, True),
             NamedDtype("bits16", 2, INTEGER, None), NamedDtype("qint32", 4, INTEGER, None)]
    present = [d.name for d in FLOAT8]  # the others, where ml_dtypes is too old for them
    found += [NamedDtype(name, 1, FLOAT, name != "float8_e8m0fnu") for name in (
        "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu") if name not in present]
    for bits in range(1, 8):
        found += [NamedDtype(f"int{bits}", 1, INTEGER, True), NamedDtype(f"uint{bits}", 1, INTEGER, False)]
    found += [NamedDtype(name, 1, INTEGER, None) for name in (
        "bits1x8", "bits2x4", "bits4x2", "bits8", "qint8", "quint2x4", "quint4x2", "quint8")]
    return {kind.name: kind for kind in found}


NAMED = _all()
NAMED.update(bit=NAMED["uint1"], chalf=NAMED["complex32"])


def named_dtype(name: str) -> NamedDtype:
    """The dtype called `name`."""
    return NAMED[name]


class qscheme:
    """How a quantized tensor would be quantized; a name, since there are none."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.__refused__ = f"torch.{name} belongs to quantized tensors, which this runtime does not have"

    def __repr__(self) -> str:
        return f"torch.{self.name}"


SCHEMES = {name: qscheme(name) for name in (
    "per_channel_affine", "per_channel_affine_float_qparams", "per_channel_symmetric", "per_tensor_affine",
    "per_tensor_symmetric")}


def __getattr__(name: str) -> Any:
    if name in NAMED:
        return NAMED[name]
    if name in SCHEMES:
        return SCHEMES[name]
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
