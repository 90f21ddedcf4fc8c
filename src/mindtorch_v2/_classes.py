"""`torch.classes`: classes that compiled libraries register. None can be loaded here, so there are none."""

from __future__ import annotations

from types import ModuleType
from typing import Any


class _ClassNamespace(ModuleType):
    """The classes of one library."""

    def __getattr__(self, attr: str) -> Any:
        raise RuntimeError(f"Class {self.__name__.rpartition('.')[2]}.{attr} not registered!")


class _Classes(ModuleType):
    """Namespaces exist as soon as they are asked for."""

    __file__ = "_classes.py"
    loaded_libraries: frozenset[str] = frozenset()

    def __getattr__(self, name: str) -> _ClassNamespace:
        if name.startswith("__"):
            raise AttributeError(name)
        found = _ClassNamespace(f"torch.classes.{name}")
        setattr(self, name, found)
        return found

    def load_library(self, path: str) -> None:
        """Load a compiled library, which cannot be done."""
        raise OSError(f"torch.classes.load_library({path!r}): libraries of compiled classes need PyTorch's C++ side, "
                      "which this runtime does not have")


classes = _Classes("torch.classes")
classes.__path__ = []  # programs set it to stop tools that watch files
