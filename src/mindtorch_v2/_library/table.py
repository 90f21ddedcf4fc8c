"""Which ops a program has defined, by namespace, name and overload; `torch.ops` looks here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# Namespace -> name -> overload -> definition.
DEFINITIONS: dict[str, dict[str, dict[str, Any]]] = {}
# Kernels that were registered before their op was defined: qualified name -> dispatch key -> kernel.
PENDING: dict[str, dict[str, Callable[..., Any]]] = {}
# Called with the namespace and name of a packet that has changed.
FORGET: list[Callable[[str, str], None]] = []


def parse_qualname(qualname: str) -> tuple[str, str]:
    """Namespace and name."""
    parts = qualname.split("::")
    if len(parts) != 2:
        raise ValueError(f'Expected `qualname` to be of the form "namespace::name", but got {qualname}. '
                         "An op has a namespace and a name, as mine::scale")
    return parts[0], parts[1]


def find(qualname: str) -> Any:
    """A definition by `ns::name` or `ns::name.overload`, or None."""
    namespace, name = parse_qualname(qualname)
    name, _, overload = name.partition(".")
    return DEFINITIONS.get(namespace, {}).get(name, {}).get(overload.replace("default", ""))


def lookup(qualname: str) -> Any:
    """A definition; an error if there is none."""
    found = find(qualname)
    if found is None:
        namespace, name = parse_qualname(qualname)
        raise AttributeError(f"'_OpNamespace' '{namespace}' object has no attribute '{name.partition('.')[0]}'")
    return found


def add(definition: Any) -> None:
    """Add a definition, with the kernels that were waiting for it."""
    overloads = DEFINITIONS.setdefault(definition.namespace, {}).setdefault(definition.name, {})
    overloads[definition.overload] = definition
    definition.kernels.update(PENDING.pop(definition.qualname, {}))
    _changed(definition)


def remove(definition: Any) -> None:
    """Take a definition away, unless another has replaced it."""
    names: dict[str, dict[str, Any]] = DEFINITIONS.get(definition.namespace, {})
    overloads: dict[str, Any] = names.get(definition.name, {})
    found: Any = overloads.get(definition.overload)
    if found is not definition:
        return
    del overloads[definition.overload]
    if not overloads:
        del names[definition.name]
    _changed(definition)


def _changed(definition: Any) -> None:
    for forget in FORGET:
        forget(definition.namespace, definition.name)
