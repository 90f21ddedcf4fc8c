"""The old tensor classes (`torch.FloatTensor`) and questions about types that go with them."""

from __future__ import annotations

from typing import Any

from ._construct import construct
from ._device import DeviceLike
from ._dtype import ALL_DTYPES, dtype
from ._tensor import Tensor, check_options, strided

NAMES = {"float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "int64": "Long",
         "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool"}


class LegacyType(type):
    """The type of the old tensor classes: calling one makes a plain tensor, isinstance looks at its dtype."""

    dtype: dtype
    where: str

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.device.type == cls.where and instance.dtype is cls.dtype

    def __call__(cls, *args: Any, device: DeviceLike = None, **unknown: Any) -> Tensor:
        check_options(cls.where, device, unknown)
        made = construct(cls.dtype, args)
        return made if cls.where == "cpu" else made.to(cls.where)


def types_of(where: str) -> dict[str, LegacyType]:
    """The old classes of a device, by their names."""
    package = "torch" if where == "cpu" else f"torch.{where}"
    return {f"{NAMES[kind.name]}Tensor": LegacyType(
        f"{NAMES[kind.name]}Tensor", (), {"dtype": kind, "where": where, "__module__": package,
                                          "layout": strided, "is_cuda": False, "is_sparse": False,
                                          "__doc__": f"Makes tensors of {kind}."})
            for kind in ALL_DTYPES if kind.name in NAMES}


TYPES: dict[str, LegacyType] = types_of("cpu")


def type_by_name(name: str) -> dtype:
    """The dtype of `"torch.FloatTensor"`."""
    found = TYPES.get(name.removeprefix("torch."))
    if found is None:
        raise ValueError(f"invalid type: '{name}'")
    return found.dtype


def typename(obj: Any, /) -> str:
    """The name of an object's type, or of a class; tensors give their old class's name."""
    if isinstance(obj, Tensor):
        where = "" if obj.is_cpu else f"{obj.device.type}."
        return f"torch.{where}{NAMES.get(obj.dtype.name, obj.dtype.name.capitalize().replace('Uint', 'UInt'))}Tensor"
    if obj is Tensor:
        return "torch.Tensor"
    named = hasattr(obj, "__qualname__") and hasattr(obj, "__module__")
    kind = obj if named else type(obj)
    module = (kind.__module__ or "").replace(__name__.rpartition(".")[0], "torch", 1)
    return kind.__qualname__ if module in ("builtins", "") else f"{module}.{kind.__qualname__}"


def numel(input: Tensor) -> int:
    """The number of elements."""
    if not isinstance(input, Tensor):
        raise TypeError(f"numel(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    return int(input._a.size)


def __getattr__(name: str) -> Any:
    if name in TYPES:
        return TYPES[name]
    if name == "_tensor_classes":
        return set(TYPES.values())
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
