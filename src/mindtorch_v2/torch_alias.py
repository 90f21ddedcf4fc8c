"""Let `import torch` mean this package.

>>> from mindtorch_v2 import torch_alias
>>> torch_alias.in_use() in ("mindtorch_v2", "torch", None)
True

While enabled, `torch` and `torch.anything` resolve to the modules of this package: the same objects, not copies, so
`torch.nn is mindtorch_v2.nn`. The package itself says that its name is `torch`, which libraries compare. A PyTorch that
is imported already is never replaced, and one that is only installed is hidden only with `force=True`.

The directory `_as_torch` is the alias as files: a `torch.py` that leads here, and the metadata of a distribution named
`torch`, which `importlib.metadata` and pip read. While the alias is enabled the directory is on `sys.path` and in
`PYTHONPATH`, so the processes that the program starts have the alias too, by whatever means it starts them (unless they
ignore the environment, `python -I`). `mindtorch-v2-as-torch` installs the same files for good.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

PACKAGE = __name__.rpartition(".")[0]
ALIAS = "torch"
FILES = str(Path(__file__).with_name("_as_torch"))


# Outside names and the modules of this package that they mean, the most specific first.
ANSWERS = {"torch_npu.npu": f"{PACKAGE}.npu", "torch_npu": f"{PACKAGE}._torch_npu",
           "functorch": f"{PACKAGE}.func", ALIAS: PACKAGE}


# Modules of this package that say an outside name is theirs, since programs compare it or make names of it.
NAMED_OUTSIDE = {PACKAGE: ALIAS, f"{PACKAGE}.nn.modules": f"{ALIAS}.nn.modules"}

# Classes of `torch` itself, which are written in files of other names, and the modules whose classes keep their place.
# Programs tell by `type(x).__module__` whose tensor or layer they have.
CLASSES = ("Generator", "Size", "Tensor", "device", "dtype", "finfo", "iinfo", "memory_format")
MODULES_OF_CLASSES = (f"{PACKAGE}.nn.modules.", f"{PACKAGE}.nn.parameter", f"{PACKAGE}.optim")
# Modules whose functions say that they are of the outside module.
MODULES_OF_FUNCTIONS = (PACKAGE, f"{PACKAGE}.autograd", f"{PACKAGE}.nn.functional")
_OWN_NAMES: dict[Any, str] = {}
_SEARCHED: set[str] = set()


def give_names(outside: bool) -> None:
    """Let those that are loaded say their outside names, or their own again."""
    for own, name in NAMED_OUTSIDE.items():
        if own in sys.modules:
            sys.modules[own].__name__ = name if outside else own
    if not outside:
        for kind, own in _OWN_NAMES.items():
            _set_module(kind, own)
        _OWN_NAMES.clear()
        _SEARCHED.clear()
        return
    for name in CLASSES:
        if name in vars(sys.modules[PACKAGE]):
            _name_class(vars(sys.modules[PACKAGE])[name], ALIAS)
    for own in [name for name in MODULES_OF_FUNCTIONS if name in sys.modules and name not in _SEARCHED]:
        _SEARCHED.add(own)
        for name, function in list(vars(sys.modules[own]).items()):
            if isinstance(function, FunctionType) and not name.startswith("_") and (
                    function.__module__ == own or (
                        own != f"{PACKAGE}.nn.functional" and function.__module__.startswith(f"{PACKAGE}._"))):
                _name_function(function, ALIAS + own[len(PACKAGE):])
    for own in [name for name in sys.modules if name.startswith(MODULES_OF_CLASSES) and name not in _SEARCHED]:
        _SEARCHED.add(own)
        for kind in vars(sys.modules[own]).values():
            if isinstance(kind, type) and kind.__module__.startswith(MODULES_OF_CLASSES):
                _name_class(kind, ALIAS + kind.__module__[len(PACKAGE):])


def _name_function(function: FunctionType, outside: str) -> None:
    _OWN_NAMES[function] = function.__module__
    function.__module__ = outside


def _set_module(named: Any, module: str) -> None:
    line = vars(named).get("__firstlineno__")
    named.__module__ = module
    if line is not None:  # from Python 3.13 on a class forgets where it begins when its module is set
        named.__firstlineno__ = line


def _name_class(kind: type, outside: str) -> None:
    own = kind.__module__
    if own != outside:
        _OWN_NAMES[kind] = own
        _set_module(kind, outside)
        if own in sys.modules and outside != ALIAS:
            # `inspect` looks a class up in its module, which nobody may have imported under this name.
            sys.modules.setdefault(outside, sys.modules[own])


def _is_alias(name: str) -> bool:
    return name.partition(".")[0] in ANSWERS


def _own(name: str) -> str:
    """The module of this package that an outside name leads to."""
    outside = next(one for one in ANSWERS if f"{name}.".startswith(f"{one}."))
    return ANSWERS[outside] + name[len(outside):]


class _AliasLoader(Loader):
    """Answers with a module that has been imported under its own name."""

    def __init__(self, target: str) -> None:
        self.target = self.outside = target
        self.kept: dict[str, Any] = {}

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module of this package."""
        module = importlib.import_module(self.target)
        self.outside = spec.name
        # The import system is about to write the alias's spec and name into the module; it keeps its own.
        self.kept = {name: value for name, value in vars(module).items()
                     if name in ("__spec__", "__name__", "__loader__", "__package__", "__path__", "__file__")}
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run: the module is complete."""
        vars(module).update(self.kept)
        give_names(outside=True)
        self.spare_hidden(module)

    def spare_hidden(self, module: ModuleType) -> None:
        """Make submodules known that functions of their name hide (`autograd.gradcheck`).

        Importing such a submodule under its outside name would put it in the function's place.
        """
        for own, loaded in list(sys.modules.items()):
            parent, _, child = own.rpartition(".")
            if parent == self.target and vars(module).get(child, loaded) is not loaded:
                sys.modules[f"{self.outside}.{child}"] = loaded

    def get_code(self, fullname: str) -> Any:
        """The module's code, for `python -m torch.distributed.run`."""
        spec = importlib.util.find_spec(self.target)
        return None if spec is None or spec.loader is None else spec.loader.get_code(self.target)  # type: ignore[attr-defined]


class _AliasFinder(MetaPathFinder):
    """Finds `torch.x` where this package has `x`."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        """A spec that leads to the module of this package, None for other names."""
        if not _is_alias(fullname):
            return None
        own = _own(fullname)
        found = importlib.util.find_spec(own)
        if found is None:
            # Nobody else answers either: the search goes on in the directory of this package, not in a PyTorch's.
            return None
        spec = ModuleSpec(fullname, _AliasLoader(own), origin=found.origin)
        spec.submodule_search_locations = found.submodule_search_locations
        spec.has_location = found.has_location
        return spec


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
    sys.path.insert(1, FILES)  # the first entry is the program's directory
    os.environ["PYTHONPATH"] = os.pathsep.join([FILES, *_inherited_path()])
    return True


def answer_for_files() -> None:
    """Enable the alias on behalf of our `torch.py`, which Python has found on the path already."""
    if not is_enabled():
        sys.meta_path.insert(0, _FINDER)
    give_names(outside=True)


def _inherited_path() -> list[str]:
    """The entries of PYTHONPATH without ours."""
    return [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry and entry != FILES]


def disable() -> None:
    """Give the name back. Modules that were imported through it stay valid for those who hold them."""
    if is_enabled():
        sys.meta_path.remove(_FINDER)
    give_names(outside=False)
    if FILES in sys.path:
        sys.path.remove(FILES)
    if "PYTHONPATH" in os.environ:
        os.environ["PYTHONPATH"] = os.pathsep.join(_inherited_path())
        if not os.environ["PYTHONPATH"]:
            del os.environ["PYTHONPATH"]
    own = {id(module) for name, module in sys.modules.items() if name == PACKAGE or name.startswith(PACKAGE + ".")}
    for name in [name for name, module in sys.modules.items() if _is_alias(name) and id(module) in own]:
        del sys.modules[name]
