"""The Ascend libraries: where they are, opening them on first use, and finding functions in them.

`MINDTORCH_NPU` chooses: unset or `ascend` means the libraries of CANN, in the places of its environment variables;
`sim` the simulator of this package; `off` none. Nothing is opened before a program asks for a device.
"""

from __future__ import annotations

import ctypes
import glob
import os
import platform
import threading
from collections.abc import Iterator
from typing import Any

from .errors import AclError, MissingSymbol
from .signatures import OBJECTS, RETURNS, RUNTIME, TOOLS, TYPES, Prototype, functions, operators

CHOICES = ("ascend", "sim", "off")
ROOTS = ("/usr/local/Ascend/ascend-toolkit/latest", "/usr/local/Ascend/cann")
# Without these, a library cannot be opened on some installations, although they are not listed as its dependencies.
FIRST = ("libascend_protobuf.so*", "libplatform.so")


class Unavailable(RuntimeError):
    """The libraries do not exist, or cannot be used."""


class Library:
    """The functions of an installation, found by name."""

    def __init__(self, main: ctypes.CDLL, others: list[ctypes.CDLL], path: str, simulated: bool) -> None:
        self.path = path
        self.simulated = simulated
        self._main = main
        self._others = others
        self._lock = threading.Lock()
        self._found: dict[str, Any] = {}
        # If a tool is preloaded, its functions come before those of the library, which it calls itself.
        if "libmspti.so" in os.environ.get("LD_PRELOAD", ""):
            self._others = [ctypes.CDLL(None), main, *others]
        else:
            self._others = [main, *others]
        # Fail at once for a library of another version, instead of in the middle of a program.
        for prototype in functions(RUNTIME).values():
            self.raw(prototype.name)
        for prototype in functions(OBJECTS).values():
            self.raw(prototype.name)

    def raw(self, name: str) -> Any:
        """A function of the runtime or of parameter objects, which returns its status."""
        found = self._found.get(name)
        if found is None:
            prototype = functions(RUNTIME).get(name) or functions(OBJECTS).get(name) or functions(TOOLS)[name]
            found = self._find(prototype.name, prototype)
        return found

    def operator(self, name: str) -> tuple[Any, Any]:
        """Both functions of an operator."""
        prototype = operators()[name]
        planning = self._found.get(f"aclnn{name}GetWorkspaceSize")
        if planning is None:
            planning = self._find(f"aclnn{name}GetWorkspaceSize",
                                  Prototype(name, (*prototype.arguments, "p", "p"), ()))
        running = self._found.get(f"aclnn{name}")
        if running is None:
            running = self._find(f"aclnn{name}", Prototype(name, ("p", "u64", "p", "p"), ()))
        return planning, running

    def symbol(self, name: str, result: Any, *arguments: Any) -> Any:
        """A function that is in none of the tables."""
        for library in self._others:
            function = getattr(library, name, None)
            if function is not None:
                return ctypes.CFUNCTYPE(result, *arguments)(ctypes.cast(function, ctypes.c_void_p).value or 0)
        raise MissingSymbol(f"{name} is in none of the NPU libraries at {self.path}")

    def has(self, name: str) -> bool:
        """Whether a function is there."""
        return any(hasattr(library, name) for library in self._others)

    def _find(self, symbol: str, prototype: Prototype) -> Any:
        with self._lock:
            for library in self._others:
                function = getattr(library, symbol, None)
                if function is not None:
                    # An object of its own: the library's object is shared with everybody who names it.
                    made = ctypes.CFUNCTYPE(RETURNS.get(symbol, ctypes.c_int32),
                                            *[TYPES[word] for word in prototype.arguments])(
                        ctypes.cast(function, ctypes.c_void_p).value or 0)
                    self._found[symbol] = made
                    return made
        raise MissingSymbol(f"{symbol} is in none of the NPU libraries at {self.path}: they are of a version that this "
                            "runtime does not know")

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of the runtime; a status that is not success raises."""
        code = (WATCH[0] or _plainly)(name, self.raw(name), arguments)
        if code:
            raise self.error(name, code)

    def error(self, name: str, code: int) -> AclError:
        """The exception for a status, with what the library has reported to this thread since the last query."""
        detail = self.raw("aclGetRecentErrMsg")()
        text = detail.decode(errors="replace").strip() if detail else ""
        return AclError(name, code, text)


def _plainly(name: str, function: Any, arguments: tuple[Any, ...]) -> int:
    return function(*arguments)


# While a profiler records: a function that makes the calls and records them.
WATCH: list[Any] = [None]


# -- finding -----------------------------------------------------------------------------------------------------------


def choice() -> str:
    """Which libraries the environment asks for."""
    chosen = os.environ.get("MINDTORCH_NPU", "ascend").lower() or "ascend"
    if chosen not in CHOICES:
        raise Unavailable(f"MINDTORCH_NPU is {chosen!r}; it may be {', '.join(CHOICES)}")
    return chosen


def library() -> Library:
    """The libraries, opened; `Unavailable` says why there are none."""
    return _OPENED[0] or _open()


_OPENED: list[Library | None] = [None]
_FAILED: dict[str, str] = {}  # the reason, by the environment at that time


def _open() -> Library:
    chosen = choice()
    if chosen == "off":
        raise Unavailable("MINDTORCH_NPU=off")
    key = " ".join([chosen, *[os.environ.get(name, "") for name in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")]])
    if key in _FAILED:
        raise Unavailable(_FAILED[key])
    try:
        opened = _OPENED[0] = _simulator() if chosen == "sim" else _installed()
    except (Unavailable, MissingSymbol) as error:
        _FAILED[key] = str(error)
        raise Unavailable(str(error)) from None
    return opened


def _simulator() -> Library:
    from .sim.build import SimulatorBuildError
    from .sim.build import library as build

    try:
        path = str(build())
    except SimulatorBuildError as error:
        raise Unavailable(str(error)) from None
    try:
        opened = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise Unavailable(f"the NPU simulator at {path} cannot be opened: {error}") from None
    return Library(opened, [], path, simulated=True)


def folders() -> Iterator[str]:
    """The folders where libraries may be, from the environment that CANN sets."""
    roots = [os.environ.get("ASCEND_HOME_PATH"), os.environ.get("ASCEND_TOOLKIT_HOME"), *ROOTS]
    for root in dict.fromkeys(root for root in roots if root):
        for inner in ("lib64", f"{platform.machine()}-linux/lib64"):
            folder = os.path.join(root, inner)
            if os.path.isdir(folder):
                yield folder


def _installed() -> Library:
    found = list(folders())
    problems: list[str] = []
    for folder in found:
        if os.path.exists(os.path.join(folder, "libascendcl.so")):
            try:
                return _opened(folder)
            except OSError as error:
                problems.append(str(error))
    if not found or not problems:
        try:
            return _opened("")  # on the loader's own path
        except OSError as error:
            problems.append(str(error))
    where = ", ".join(found) or "ASCEND_HOME_PATH, ASCEND_TOOLKIT_HOME and /usr/local/Ascend have none"
    raise Unavailable(f"CANN's libraries cannot be opened ({where}): {'; '.join(problems)}")


def _opened(folder: str) -> Library:
    def open_one(name: str) -> ctypes.CDLL:
        return ctypes.CDLL(os.path.join(folder, name) if folder else name, mode=ctypes.RTLD_GLOBAL)

    try:
        main = open_one("libascendcl.so")
    except OSError:
        if not folder:
            raise
        for pattern in FIRST:
            for path in glob.glob(os.path.join(folder, pattern)):
                ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        main = open_one("libascendcl.so")
    others = [open_one("libnnopbase.so")]
    # Newer installations have the operators in several libraries, which must come before the old single one.
    parts = sorted(glob.glob(os.path.join(folder, "libopapi_*.so"))) if folder else []
    others += [ctypes.CDLL(part, mode=ctypes.RTLD_GLOBAL) for part in parts]
    for optional in ("libopapi.so", "libacl_rt.so", "libmspti.so"):
        try:
            others.append(open_one(optional))
        except OSError:
            if optional == "libopapi.so" and not parts:
                raise
    return Library(main, others, folder or "libascendcl.so", simulated=False)
