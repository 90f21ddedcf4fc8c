"""Records calls of modules, and the names of the modules in their model."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..._dispatch.module_flag import Flag
from ..._dispatch.observer import event_id, hush, open_stretch
from ..locks import items_now
from ..options import Options
from .base import Source, Stretch

if TYPE_CHECKING:
    from ..recorder.running import Running

Module = Any  # nn is not imported here: a program without modules need not load it
MODULE_EVENT = event_id("nn.Module", "module")
# The second is their name while the package stands in for `torch`.
LAYERS = (__name__.partition(".")[0] + ".nn.modules.", "torch.nn.modules.")


@dataclass(frozen=True)
class ModuleName:
    """The names of a module in a trace."""

    label: str  # `Linear_0`, by class and order of first call
    path: str  # `blocks.0.attn` from the model that was called; the class for that model itself
    parent: int | None = None  # identity of the nearest called module around it
    parameters: int = 0  # elements of its own parameters, and of those of children that were never called


class ModuleLabels:
    """Numbers modules of a class in the order of their first call, over all parts of a recording."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[weakref.ref[Module], str]] = {}
        self.counts: Counter[str] = Counter()

    def of(self, module: Module) -> str:
        """`Linear_0`; the same for the same module."""
        found = self.known.get(id(module))
        if found is None or found[0]() is not module:
            name = type(module).__name__
            found = self.known[id(module)] = weakref.ref(module), f"{name}_{self.counts[name]}"
            self.counts[name] += 1
        return found[1]


class Modules(Source):
    """Reports calls to the threads' buffers and keeps the modules until their names are known."""

    name = "modules"
    tables = ("modules", "module_calls")
    cost = "one event per call of a module"

    def __init__(self, running: Running) -> None:
        super().__init__(running)
        self.called: dict[int, Module] = {}
        self.hushes = False  # whether calls are recorded; this package's own modules need not be

    def wanted(self, options: Options) -> bool:
        """If modules are requested, or stacks, whose trees show them."""
        return options.modules or options.stacks

    def start(self) -> None:
        """Begin to see calls."""
        Flag.watch = self.call
        Flag.raised = True

    def adapt(self, wishes: Sequence[Options]) -> None:
        """Hide this package's own calls while calls are recorded."""
        self.hushes = any(options.stacks for options in wishes)

    def stop(self) -> None:
        """Stop; the flag again says whether there are hooks."""
        Flag.watch = None
        Flag.raised = Flag.hooks
        self.called = {}

    def mark(self) -> None:
        """Nothing: events show what was called."""

    def take(self, mark: None, stretch: Stretch) -> dict[int, ModuleName]:
        """The names of all modules that were called so far, by identity. Other threads may be calling new ones."""
        return names_of(list(self.called.values()), stretch.labels)

    def call(self, module: Module, args: Any, kwargs: Any) -> Any:
        """Call a module and record it. The module is kept; otherwise another could get its identity."""
        quiet = hush() if self.hushes else None
        try:
            identity = id(module)
            if identity not in self.called:
                self.called[identity] = module
                running = self.all
                if running is not None:
                    running.first_call(module)
            if quiet is not None and not runs_own_code_alone(module):
                quiet.resume()
            run = module._call_impl if Flag.hooks else module.forward
            stretch = open_stretch(identity, -1)
            try:
                return run(*args, **kwargs)
            finally:
                stretch.end(MODULE_EVENT)
        finally:
            if quiet is not None:
                quiet.resume()


def runs_own_code_alone(module: Module) -> bool:
    """Whether a call of this module runs only this package's code: it is one of its layers, unchanged and without
    parts."""
    return (type(module).__module__.startswith(LAYERS) and not module._modules and not Flag.hooks
            and not module._may_run_user_code and "forward" not in module.__dict__)


def names_of(called: Iterable[Module], labels: ModuleLabels) -> dict[int, ModuleName]:
    """The names of modules that were called, by identity.

    A path starts at a called module that is not part of another called one. If two models have a module of the same
    path, the paths of both models begin with the model's label.
    """
    modules = list(called)
    inside: set[int] = set()
    trees: dict[int, list[tuple[str, int]]] = {}
    for module in modules:
        if id(module) not in inside:
            tree = trees[id(module)] = [(path, id(part)) for path, part in parts_of(module)]
            inside.update(identity for path, identity in tree if path)
    roots = [module for module in modules if id(module) not in inside]
    if not roots and modules:
        roots = modules[:1]  # modules that contain each other
    wanted = {id(module) for module in modules}
    around, own = _places(roots, wanted)
    paths: dict[int, tuple[Module, str]] = {}
    for root in roots:
        for path, identity in trees[id(root)]:
            if identity in wanted:
                paths.setdefault(identity, (root, path or type(root).__name__))
    owners: dict[str, set[int]] = {}
    for root, path in paths.values():
        owners.setdefault(path, set()).add(id(root))
    shared = {root for found in owners.values() if len(found) > 1 for root in found}
    result = {}
    for module in modules:
        root, path = paths.get(id(module), (module, type(module).__name__))
        if id(root) in shared:
            path = labels.of(root) if root is module else f"{labels.of(root)}.{path}"
        result[id(module)] = ModuleName(labels.of(module), path, around.get(id(module)), own[id(module)])
    return result


def parts_of(root: Module) -> Iterator[tuple[str, Module]]:
    """The result of `named_modules`, even if a class changed that or its hash. Other threads may add modules."""
    seen: set[int] = set()
    waiting = [("", root)]
    while waiting:
        path, part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield path, part
        below = [(f"{path}.{name}" if path else name, one) for name, one in items_now(part._modules)
                 if one is not None]
        waiting += reversed(below)


def _places(roots: Iterable[Module], wanted: set[int]) -> tuple[dict[int, int | None], Counter[int]]:
    """For each wanted module, the nearest wanted one around it, and the number of elements of its own parameters."""
    around: dict[int, int | None] = {}
    own: Counter[int] = Counter()
    counted: set[int] = set()
    for root in roots:
        nearest: dict[str, int | None] = {}
        for path, part in parts_of(root):
            above = nearest.get(path.rpartition(".")[0]) if path else None
            here = nearest[path] = id(part) if id(part) in wanted else above
            if here == id(part):
                around.setdefault(here, above)
            for parameter in list(part._parameters.values()):
                if parameter is not None and here is not None and id(parameter) not in counted:
                    counted.add(id(parameter))
                    own[here] += parameter.numel()
    return around, own
