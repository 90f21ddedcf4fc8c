"""`infer_schema`: an op's signature from a function's annotations."""

from __future__ import annotations

import collections.abc
import inspect
import typing
from collections.abc import Callable, Iterable
from types import GenericAlias
from typing import Any

from .. import types
from .._device import device
from .._dtype import dtype
from .._tensor import Tensor

UNKNOWN = "unknown"


def _kinds_of(base: Any, name: str, lists: bool, lists_of_optional: bool, optional_lists: bool) -> dict[Any, str]:
    def sequences(item: Any) -> tuple[Any, ...]:
        return (typing.Sequence[item], typing.List[item],  # noqa: UP006
                GenericAlias(collections.abc.Sequence, (item,)), GenericAlias(list, (item,)))

    kinds: dict[Any, str] = {base: name, typing.Optional[base]: f"{name}?"}  # noqa: UP045
    if lists:
        kinds |= dict.fromkeys(sequences(base), f"{name}[]")
    if lists_of_optional:
        kinds |= dict.fromkeys(sequences(typing.Optional[base]), f"{name}?[]")  # noqa: UP045
    if optional_lists:
        kinds |= {typing.Optional[one]: f"{name}[]?" for one in sequences(base)}  # noqa: UP045
    return kinds


PARAMETERS: dict[Any, str] = {
    **_kinds_of(Tensor, "Tensor", True, True, False), **_kinds_of(int, "SymInt", True, False, True),
    **_kinds_of(float, "float", True, False, True), **_kinds_of(bool, "bool", True, False, True),
    **_kinds_of(str, "str", False, False, False), **_kinds_of(types.Number, "Scalar", True, False, False),
    **_kinds_of(dtype, "ScalarType", False, False, False), **_kinds_of(device, "Device", False, False, False),
}
RETURNS: dict[Any, str] = {Tensor: "Tensor", typing.List[Tensor]: "Tensor[]", list[Tensor]: "Tensor[]",  # noqa: UP006
                           int: "SymInt", float: "float", bool: "bool", types.Number: "Scalar"}


class _Inference:
    """The annotations of one function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.globals: dict[str, Any] = getattr(function, "__globals__", {})
        self.signature = inspect.signature(function)

    def problem(self, what: str) -> ValueError:
        """What cannot be turned into a signature."""
        return ValueError(f"infer_schema(func): {what} Got func with signature {self.signature})")

    def resolved(self, annotation: Any) -> Any:
        """An annotation whose parts may be text."""
        if isinstance(annotation, str):
            try:
                return eval(annotation, self.globals)
            except NameError as error:
                raise self.problem(
                    f"Unsupported type annotation {annotation}. It is not a type. ({error}). An annotation "
                    "that is text, as all are after 'from __future__ import annotations', is looked up in the "
                    "function's module.") from None
            except Exception as error:
                raise self.problem(f"Unsupported type annotation {annotation}. It is not a type. "
                                   f"({type(error).__name__}: {error})") from None
        origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is not None and any(isinstance(part, str) for part in parts):
            return GenericAlias(origin, tuple(map(self.resolved, parts)))
        return annotation

    def parameter(self, name: str, annotation: Any) -> str:
        """An argument's type in a signature."""
        if annotation is inspect.Parameter.empty:
            raise self.problem(f"Parameter {name} must have a type annotation.")
        kind = self.resolved(annotation)
        try:
            return PARAMETERS[kind]
        except (KeyError, TypeError):
            valid = f"The valid types are: {PARAMETERS.keys()}."
        if typing.get_origin(kind) is tuple:
            parts = [part for part in typing.get_args(kind) if part is not Ellipsis]
            items = list[parts[0]] if len(set(parts)) == 1 else None  # type: ignore[valid-type]
            example = f"For example, {items}.\n\n" if items in PARAMETERS else "\n\n"
            raise self.problem(f"Parameter {name} has unsupported type {annotation}. We do not support Tuple inputs in "
                               f"schema. As a workaround, please try to use List instead. {example}{valid}")
        raise self.problem(f"Parameter {name} has unsupported type {annotation}. {valid}")

    def default(self, name: str, value: Any) -> str:
        """A default in a signature."""
        if value is None or isinstance(value, (int, float, bool)):
            return str(value)
        if isinstance(value, (str, device)):
            return f'"{value}"'
        if isinstance(value, dtype):
            return value.name
        raise self.problem(f"Parameter {name} has an unsupported default value type {type(value)}.")

    def result(self) -> str:
        """The result's type in a signature."""
        kind = self.resolved(self.signature.return_annotation)
        if kind is None:
            return "()"
        if kind is inspect.Parameter.empty:
            raise self.problem("No return type annotation was provided. Please add one.")
        several = typing.get_origin(kind) is tuple
        parts = typing.get_args(kind) if several else (kind,)
        try:
            names = [RETURNS[part] for part in parts]
        except (KeyError, TypeError):
            raise self.problem(f"Return has unsupported type {kind}. The valid types are: {RETURNS}.") from None
        if not several:
            return names[0]
        return f"(({names[0]}))" if len(names) == 1 else f"({', '.join(names)})"


def infer_schema(prototype_function: Callable[..., Any], /, *, mutates_args: str | Iterable[str],
                 op_name: str | None = None, tags: Any = ()) -> str:
    """The signature that a function's annotations describe.

    >>> import mindtorch_v2 as torch
    >>> def scaled(x: torch.Tensor, by: float = 2.0) -> torch.Tensor: ...
    >>> torch.library.infer_schema(scaled, mutates_args=(), op_name="scaled")
    'scaled(Tensor x, float by=2.0) -> Tensor'
    """
    inference = _Inference(prototype_function)
    if isinstance(mutates_args, str) and mutates_args != UNKNOWN:
        raise ValueError("mutates_args must either be a sequence of the names of the arguments that are mutated or the "
                         "string 'unknown'. ")
    changed = None if isinstance(mutates_args, str) else set(mutates_args)
    parts: list[str] = []
    for number, (name, parameter) in enumerate(inference.signature.parameters.items()):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise inference.problem("We do not support positional-only args, varargs, or varkwargs.")
        if parameter.kind == parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        kind = inference.parameter(name, parameter.annotation)
        is_tensor = kind.startswith("Tensor")
        if changed is not None and name in changed and not is_tensor:
            raise inference.problem(f"Parameter {name} is in mutable_args but only Tensors or collections of Tensors "
                                    "can be mutated")
        if is_tensor and (changed is None or name in changed):
            kind = kind.replace("Tensor", f"Tensor(a{number}!)", 1)
        default = "" if parameter.default is parameter.empty else f"={inference.default(name, parameter.default)}"
        parts.append(f"{kind} {name}{default}")
    unknown = set() if changed is None else changed - set(inference.signature.parameters)
    if unknown:
        raise inference.problem(f"{unknown} in mutates_args were not found in the custom op's signature: it holds "
                                "names of arguments, or is 'unknown'.")
    return f"{op_name or ''}({', '.join(parts)}) -> {inference.result()}"


def tuple_to_list(tuple_type: Any) -> Any:
    """The list type that stands in a signature for a tuple type.

    >>> tuple_to_list(tuple[int, int]), tuple_to_list(tuple)
    (list[int], <class 'list'>)
    """
    parts = typing.get_args(tuple_type)
    if tuple_type in (tuple, typing.Tuple) or parts in ((), ((),)):  # noqa: UP006
        return list
    if len(parts) == 1:
        return GenericAlias(list, parts)
    if len(parts) == 2 and parts[1] is Ellipsis:
        return GenericAlias(list, parts[:1])
    return GenericAlias(list, (typing.Union[tuple(parts)],))  # noqa: UP007
