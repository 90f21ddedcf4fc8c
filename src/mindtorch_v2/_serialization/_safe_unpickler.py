"""Runs a pickle that may come from anywhere.

A pickle is a program for a small stack machine. Here the machine has only the instructions that data needs, its
globals come from a table and are never imported, and it calls nothing but the functions of that table. Instructions
that touch an object (append, set an item, set the state) insist on the exact type, so that a file cannot reach the
attributes of our functions and classes either.
"""

from __future__ import annotations

import _compat_pickle
import codecs
import collections
import pickle
import pickletools
import reprlib
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mindtorch_v2._serialization._rebuild import Rebuilder

__all__ = ["SafeUnpickler", "refusal"]

BLOCKED_MODULES = frozenset({"sys", "os", "posix", "nt"})
"""Not even the caller can allow what is in these."""

# Files of protocol 2 name the builtins as Python 2 did.
_MODULE_ALIASES = {"__builtin__": "builtins", "copy_reg": "copyreg", "torch.tensor": "torch._tensor"}


_BUILTIN_ALIASES = {old: new for (module, old), (_, new) in _compat_pickle.NAME_MAPPING.items()
                    if module == "__builtin__"}


def refusal(label: str, reason: object) -> pickle.UnpicklingError:
    """The error for a file that the safe unpickler does not run."""
    return pickle.UnpicklingError(
        f"Weights only load failed. File: {label}.\nWeightsUnpickler error: {reason}\n"
        "Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but it can result in "
        "arbitrary code execution. Do it only if you got the file from a trusted source."
    )


def _encode_latin1(text: Any = None, encoding: Any = None) -> bytes:
    """How protocol 2 spells bytes; any other codec would be looked up, and perhaps imported, by name."""
    if type(text) is not str or encoding != "latin1":
        raise pickle.UnpicklingError(f"_codecs.encode is allowed for latin1 only, not for {reprlib.repr(encoding)}")
    return text.encode("latin1")


def _make_bytes() -> bytes:
    """How protocol 2 spells bytes when there are none."""
    return b""


def _make_bytearray(data: Any = b"", encoding: Any = None) -> bytearray:
    """A bytearray of given bytes; a number would ask for that much memory."""
    if encoding is not None:
        data = _encode_latin1(data, "latin1" if encoding == "latin-1" else encoding)
    if type(data) is not bytes:
        raise pickle.UnpicklingError(f"a bytearray is made of bytes here, not of {type(data)}")
    return bytearray(data)


_PLAIN_GLOBALS: dict[tuple[str, str], tuple[Any, Callable[..., Any]]] = {
    ("collections", "OrderedDict"): (collections.OrderedDict, collections.OrderedDict),
    ("collections", "Counter"): (collections.Counter, collections.Counter),
    ("builtins", "set"): (set, set),
    ("builtins", "complex"): (complex, complex),
    ("builtins", "bytes"): (bytes, _make_bytes),
    ("builtins", "bytearray"): (bytearray, _make_bytearray),
    ("_codecs", "encode"): (codecs.encode, _encode_latin1),
}
"""Name -> what the name stands for, and what a call of it does."""

_MAPPINGS = (dict, collections.OrderedDict, collections.Counter)


class SafeUnpickler:
    """Loads one pickle; ``allowed`` adds globals that the caller trusts, by module and name."""

    def __init__(self, data: bytes, rebuilder: Rebuilder, allowed: Mapping[tuple[str, str], Any]) -> None:
        self._data = data
        self._rebuilder = rebuilder
        self._allowed = dict(allowed)
        self._trusted_ids = {id(value) for value in self._allowed.values()}
        self._plain_calls = {id(value): call for value, call in _PLAIN_GLOBALS.values()}
        self._rebuild_calls = {id(function): function for function in rebuilder.functions}
        self._stack: list[Any] = []
        self._marked: list[list[Any]] = []
        self._memo: dict[int, Any] = {}

    def load(self) -> Any:
        """Run the pickle and return the object it leaves; UnpicklingError if it is damaged or not allowed."""
        for name, argument in self._instructions():
            if name == "STOP":
                return self._pop()
            constant = _CONSTANTS.get(name)
            if constant is not None:
                self._stack.append(constant(argument))
                continue
            _action(name)(self, argument)
        raise pickle.UnpicklingError("pickle exhausted before seeing STOP")

    def refused(self) -> list[str]:
        """The names that running the pickle would refuse, each once; nothing is run."""
        found: dict[str, None] = {}
        for name, argument in self._instructions():
            if name != "STOP" and name not in _CONSTANTS:
                _action(name)
            if name != "GLOBAL":
                continue
            known = _current_name(argument)
            try:
                self._look_up(*known)
            except KeyError:
                found[".".join(known)] = None
        return list(found)

    def _instructions(self) -> Iterator[tuple[str, Any]]:
        """The decoded instructions; pickletools reads them without running anything."""
        stream = pickletools.genops(self._data)
        while True:
            try:
                opcode, argument, _ = next(stream)
            except StopIteration:
                return
            except ValueError as error:
                raise pickle.UnpicklingError(f"the pickle is damaged: {error}") from error
            yield opcode.name, argument

    def _pop(self) -> Any:
        if not self._stack:
            raise pickle.UnpicklingError("the pickle is damaged: it takes a value where there is none")
        return self._stack.pop()

    def _top(self) -> Any:
        value = self._pop()
        self._stack.append(value)
        return value

    def _pop_to_mark(self) -> list[Any]:
        if not self._marked:
            raise pickle.UnpicklingError("the pickle is damaged: it looks for a mark where there is none")
        items, self._stack = self._stack, self._marked.pop()
        return items

    def _is_trusted_instance(self, value: Any) -> bool:
        return id(type(value)) in self._trusted_ids

    def mark(self, _: Any) -> None:
        """Begin a group of values."""
        self._marked.append(self._stack)
        self._stack = []

    def put(self, index: int) -> None:
        """Remember the top value."""
        self._memo[index] = self._top()

    def get(self, index: int) -> None:
        """Recall a value."""
        if index not in self._memo:
            raise pickle.UnpicklingError(f"the pickle is damaged: it recalls value {index}, which it never stored")
        self._stack.append(self._memo[index])

    def tuple_of_group(self, _: Any) -> None:
        """A tuple of all since the mark."""
        items = self._pop_to_mark()
        self._stack.append(tuple(items))

    def short_tuple(self, length: int) -> None:
        """A tuple of the last one, two or three values."""
        items = [self._pop() for _ in range(length)]
        self._stack.append(tuple(reversed(items)))

    def append(self, _: Any) -> None:
        """One value to a list."""
        self._extend([self._pop()])

    def appends(self, _: Any) -> None:
        """A group of values to a list."""
        self._extend(self._pop_to_mark())

    def _extend(self, items: list[Any]) -> None:
        target = self._top()
        if type(target) is not list:
            raise pickle.UnpicklingError(f"Can only append to lists, but got {type(target)}")
        target.extend(items)

    def set_item(self, _: Any) -> None:
        """One key and value to a dictionary."""
        value, key = self._pop(), self._pop()
        self._update([key, value])

    def set_items(self, _: Any) -> None:
        """A group of keys and values to a dictionary."""
        self._update(self._pop_to_mark())

    def _update(self, items: list[Any]) -> None:
        target = self._top()
        is_trusted = isinstance(target, dict) and self._is_trusted_instance(target)
        if type(target) not in _MAPPINGS and not is_trusted:
            raise pickle.UnpicklingError(
                f"Can only SETITEMS for dict, collections.OrderedDict, collections.Counter, but got {type(target)}"
            )
        if len(items) % 2:
            raise pickle.UnpicklingError("the pickle is damaged: a key without a value")
        for key, value in zip(items[::2], items[1::2], strict=True):
            try:
                target[key] = value
            except TypeError as error:
                raise pickle.UnpicklingError(f"the pickle is damaged: {error}") from error

    def find_global(self, argument: str) -> None:
        """Look a name up in the tables."""
        module, name = _current_name(argument)
        if module in BLOCKED_MODULES:
            raise pickle.UnpicklingError(
                f"Trying to load unsupported GLOBAL {module}.{name} whose module {module} is blocked."
            )
        try:
            self._stack.append(self._look_up(module, name))
        except KeyError:
            shown = name if module == "builtins" else f"{module}.{name}"
            raise pickle.UnpicklingError(
                f"Unsupported global: GLOBAL {shown} was not an allowed global by default. Please use "
                f"`torch.serialization.add_safe_globals([{shown}])` or the "
                f"`torch.serialization.safe_globals([{shown}])` context manager to allowlist this global "
                "if you trust this class/function."
            ) from None

    def _look_up(self, module: str, name: str) -> Any:
        """What a name stands for; KeyError if it is not allowed."""
        if module in BLOCKED_MODULES:
            raise KeyError(name)
        if (module, name) in _PLAIN_GLOBALS:
            return _PLAIN_GLOBALS[module, name][0]
        if (module, name) in self._allowed:
            return self._allowed[module, name]
        return self._rebuilder.find(module, name)

    def call(self, _: Any) -> None:
        """Call a function of the tables."""
        arguments, function = self._pop(), self._pop()
        if type(arguments) is not tuple:
            raise pickle.UnpicklingError(f"the pickle is damaged: arguments that are no tuple but {type(arguments)}")
        if id(function) in self._trusted_ids:
            self._stack.append(function(*arguments))
        elif id(function) in self._rebuild_calls:
            self._stack.append(self._rebuilder.call(function, arguments))
        elif id(function) in self._plain_calls:
            try:
                self._stack.append(self._plain_calls[id(function)](*arguments))
            except (TypeError, ValueError, OverflowError) as error:
                message = f"{reprlib.repr(function)} cannot be called as the pickle does: {error}"
                raise pickle.UnpicklingError(message) from error
        else:
            raise pickle.UnpicklingError(f"Trying to call reduce for unrecognized function {reprlib.repr(function)}")

    def new_object(self, _: Any) -> None:
        """Make an instance of a class that the caller trusts, without initialising it."""
        arguments, cls = self._pop(), self._pop()
        if id(cls) not in self._trusted_ids or not isinstance(cls, type) or type(arguments) is not tuple:
            raise pickle.UnpicklingError(
                "Can only create new object for nn.Parameter or classes allowlisted via `add_safe_globals` but got "
                f"{reprlib.repr(cls)}"
            )
        self._stack.append(cls.__new__(cls, *arguments))

    def set_state(self, _: Any) -> None:
        """Give an ordered dictionary its attributes, or an instance of a trusted class its state."""
        state, target = self._pop(), self._top()
        if type(target) is collections.OrderedDict and type(state) is dict:
            vars(target).update(state)
        elif self._is_trusted_instance(target):
            _restore_state(target, state)
        else:
            raise pickle.UnpicklingError(
                f"Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, "
                f"but got {type(target)}"
            )

    def storage(self, _: Any) -> None:
        """Replace the id of a storage by the storage."""
        self._stack.append(self._rebuilder.persistent_load(self._pop()))


def _current_name(argument: str) -> tuple[str, str]:
    """Module and name of a global as they are called now."""
    module, _, name = argument.partition(" ")
    module = _MODULE_ALIASES.get(module, module)
    return module, _BUILTIN_ALIASES.get(name, name) if module == "builtins" else name


def _action(name: str) -> Callable[[SafeUnpickler, Any], None]:
    """What an instruction does; UnpicklingError for one that data does not need."""
    run = _ACTIONS.get(name)
    if run is None:
        raise pickle.UnpicklingError(
            f"Unsupported operand {ord(_CODES[name])} ({name}). If it is a checkpoint, file an issue with the "
            f"following so that we can make `weights_only=True` compatible with your use case: operand {name}")
    return run


def _restore_state(target: Any, state: Any) -> None:
    set_state = getattr(target, "__setstate__", None)
    if set_state is not None:
        set_state(state)
        return
    attributes, slots = state if type(state) is tuple and len(state) == 2 else (state, None)
    if attributes:
        vars(target).update(attributes)
    for name, value in (slots or {}).items():
        setattr(target, name, value)


def _byte_string(text: str) -> str:
    """Python 2's str, which pickletools shows as latin1."""
    try:
        return text.encode("latin1").decode("utf-8")
    except UnicodeDecodeError as error:
        raise pickle.UnpicklingError(f"a byte string that is not UTF-8: {error}") from error


def _itself(argument: Any) -> Any:
    return argument


_CODES = {opcode.name: opcode.code for opcode in pickletools.opcodes}

def _warn_of_protocol(protocol: int) -> None:
    if protocol != 2:
        warnings.warn(f"Detected pickle protocol {protocol} in the checkpoint, which was not the default pickle "
                      "protocol used by `torch.load` (2), the one that is sure to load with weights_only=True.",
                      stacklevel=2)


_CONSTANTS: dict[str, Callable[[Any], Any]] = {
    "NONE": lambda _: None,
    "NEWTRUE": lambda _: True,
    "NEWFALSE": lambda _: False,
    "EMPTY_TUPLE": lambda _: (),
    "EMPTY_LIST": lambda _: [],
    "EMPTY_DICT": lambda _: {},
    "EMPTY_SET": lambda _: set(),
    "SHORT_BINSTRING": _byte_string,
    **dict.fromkeys(("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE"), _itself),
}
"""Instructions that push a value. These and the next are all that PyTorch's own safe unpickler knows."""

_ACTIONS: dict[str, Callable[[SafeUnpickler, Any], None]] = {
    "PROTO": lambda machine, protocol: _warn_of_protocol(protocol),
    "MARK": SafeUnpickler.mark,
    "BINPUT": SafeUnpickler.put,
    "LONG_BINPUT": SafeUnpickler.put,
    "BINGET": SafeUnpickler.get,
    "LONG_BINGET": SafeUnpickler.get,
    "TUPLE": SafeUnpickler.tuple_of_group,
    "TUPLE1": lambda machine, _: machine.short_tuple(1),
    "TUPLE2": lambda machine, _: machine.short_tuple(2),
    "TUPLE3": lambda machine, _: machine.short_tuple(3),
    "APPEND": SafeUnpickler.append,
    "APPENDS": SafeUnpickler.appends,
    "SETITEM": SafeUnpickler.set_item,
    "SETITEMS": SafeUnpickler.set_items,
    "GLOBAL": SafeUnpickler.find_global,
    "REDUCE": SafeUnpickler.call,
    "NEWOBJ": SafeUnpickler.new_object,
    "BUILD": SafeUnpickler.set_state,
    "BINPERSID": SafeUnpickler.storage,
}
"""Instructions that do something."""
