"""Let `import torch` mean this package.

>>> from mindtorch_v2 import torch_alias
>>> torch_alias.in_use() in ("mindtorch_v2", "torch", None)
True

While enabled, `torch` and `torch.anything` resolve to the modules of this package: the same objects, not copies, so
`torch.nn is mindtorch_v2.nn`. A PyTorch that is imported already is never replaced, and one that is only installed is
hidden only with `force=True`.

The alias belongs to this process, those it forks and those that a program run by `python -m mindtorch_v2` starts with
`multiprocessing`, by whatever method. After a call of `enable()` in a program of its own, processes of the `spawn` and
`forkserver` methods do not have it: they import the main program anew, and `import torch` there finds what is
installed, or nothing.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

PACKAGE = __name__.rpartition(".")[0]
ALIAS = "torch"


def _is_alias(name: str) -> bool:
    return name == ALIAS or name.startswith(ALIAS + ".")


class _AliasLoader(Loader):
    """Answers with a module that has been imported under its own name."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.kept: dict[str, Any] = {}

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module of this package."""
        module = importlib.import_module(self.target)
        # The import system is about to write the alias's spec and name into the module; it keeps its own.
        self.kept = {name: value for name, value in vars(module).items()
                     if name in ("__spec__", "__name__", "__loader__", "__package__", "__path__", "__file__")}
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run: the module is complete."""
        vars(module).update(self.kept)


class _AliasFinder(MetaPathFinder):
    """Finds `torch.x` where this package has `x`."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        """A spec that leads to the module of this package, None for other names."""
        if not _is_alias(fullname):
            return None
        own = PACKAGE + fullname[len(ALIAS):]
        found = importlib.util.find_spec(own)
        if found is None:
            # Said here, because a real PyTorch further down the path must not answer for a part of this one.
            raise ModuleNotFoundError(f"No module named '{fullname}': it is not part of {PACKAGE}, for which "
                                      f"'{ALIAS}' stands", name=fullname)
        return ModuleSpec(fullname, _AliasLoader(own), is_package=found.submodule_search_locations is not None)


_FINDER = _AliasFinder()


def _is_own(module: Any) -> bool:
    return module is sys.modules.get(PACKAGE)


def is_enabled() -> bool:
    """Whether `import torch` gives this package."""
    return _FINDER in sys.meta_path


def in_use() -> str | None:
    """What `torch` means right now: this package's name, "torch" for a real PyTorch, None if there is neither."""
    if is_enabled() or _is_own(sys.modules.get(ALIAS)):
        return PACKAGE
    if ALIAS in sys.modules or importlib.util.find_spec(ALIAS) is not None:
        return ALIAS
    return None


def describe() -> str:
    """A line for people: what `torch` means and where it is."""
    which = in_use()
    if which is None:
        return f"torch: not available (no PyTorch is installed, and {PACKAGE} does not stand in for it)"
    package = sys.modules[PACKAGE]
    if which == PACKAGE:
        return f"torch: {PACKAGE} {package.__version__} ({package.__file__})"
    loaded = sys.modules.get(ALIAS)
    spec = loaded.__spec__ if loaded is not None else importlib.util.find_spec(ALIAS)
    return f"torch: PyTorch ({spec.origin if spec is not None else 'unknown place'})"


def enable(force: bool = False) -> bool:
    """Make `import torch` mean this package; returns whether it does now.

    A PyTorch that is installed is left alone, and False returned, unless `force`. A PyTorch that is imported already
    cannot be replaced: the program would hold parts of both.
    """
    if is_enabled():
        return True
    loaded = sys.modules.get(ALIAS)
    if loaded is not None and not _is_own(loaded):
        raise RuntimeError(f"PyTorch is already imported (from {getattr(loaded, '__file__', 'an unknown place')}): "
                           f"{PACKAGE} cannot take its name any more. Call enable() before the first 'import torch'.")
    if not force and importlib.util.find_spec(ALIAS) is not None:
        return False
    sys.meta_path.insert(0, _FINDER)
    return True


def disable() -> None:
    """Give the name back. Modules that were imported through it stay valid for those who hold them."""
    if is_enabled():
        sys.meta_path.remove(_FINDER)
    own = {id(module) for name, module in sys.modules.items() if name == PACKAGE or name.startswith(PACKAGE + ".")}
    for name in [name for name, module in sys.modules.items() if _is_alias(name) and id(module) in own]:
        del sys.modules[name]
