"""The owner of each call's code, and what a recording of calls shows of it.

This package's own calls are not part of the user's program; a library's calls are only if the user made them. Public
functions of this package are shown where the user calls them: as built-in functions if they are built-in in PyTorch,
such as `torch.ones`, otherwise as Python functions, such as `Optimizer.step`.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from opcode import opmap
from types import BuiltinFunctionType, CodeType, FrameType, MethodDescriptorType, ModuleType
from typing import Any

import ml_dtypes
import numpy as np

import mtprof

from .call_sites import called_name, is_public, tells_of_a_step

_TRACES = os.path.dirname(os.path.abspath(mtprof.__file__))
PACKAGES = tuple(path + os.sep for path in (
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), _TRACES))
_PACKAGE_NAMES = (__name__.partition(".")[0], mtprof.__name__)
GENERATED = "<mindtorch_v2 "  # the beginning of file names of compiled ops
_COMPILED_OP = GENERATED + "op "

USERS, OWN, LIBRARY, STAND_IN = 0, 1, 2, 3  # also in _native/recorder/calls.h

EXIT = -2  # instead of an instruction; a frame that has not begun is at -1
BUILT_IN = -3  # a call of a built-in function
DELEGATES = -10  # minus the instruction at which a generator waits for the one entered next

# setuptools, where it is installed, asks the last one at every import.
_LIBRARIES = (*(os.path.join(os.path.dirname(package.__file__), "") for package in (np, ml_dtypes)),
              os.path.join(sysconfig.get_path("purelib"), "_distutils_hack", ""))
_STANDARD = (os.path.join(sysconfig.get_path("stdlib"), ""), "<frozen ", "<__array_function__ ")
_INSTALLED = os.sep + "site-packages" + os.sep  # a directory inside the standard library's
_WRITTEN_BY_DATACLASS = "<string>"  # also by named tuples; also the name of code from `python -c`
_LONGEST_WALK = 50

OpenCall = tuple[CodeType, int, int]  # code, line and identity of the frame


class Files(dict[str, int]):
    """Maps a file name to the owner of its code. The user's files are also in a set, which is faster to query."""

    def __init__(self) -> None:
        super().__init__()
        self.users: set[str] = set()

    def __missing__(self, file: str) -> int:
        if file.startswith((*PACKAGES, GENERATED)):
            found = STAND_IN if file.startswith(_COMPILED_OP) else OWN
        elif file == _WRITTEN_BY_DATACLASS or file.startswith(_LIBRARIES) or (
                file.startswith(_STANDARD) and _INSTALLED not in file):
            found = LIBRARY
        else:
            found = USERS
            self.users.add(file)
        self[file] = found
        return found


FILES = Files()


def classify(code: CodeType) -> int:
    """The owner of the code, and whether it stands for a function of PyTorch."""
    kind = FILES[code.co_filename]
    if kind != OWN:
        return kind
    return LIBRARY if tells_of_a_step(code) else STAND_IN if is_public(code) else OWN


def on_our_behalf(frame: FrameType) -> bool:
    """Whether this package called into a library. The answer is the same when the frame is left."""
    if frame.f_code.co_filename == _WRITTEN_BY_DATACLASS:
        module = str(frame.f_globals.get("__name__"))
        if not module.startswith("namedtuple_"):  # this name does not show who wrote the class
            return module.startswith(_PACKAGE_NAMES)
    caller = frame.f_back
    for _ in range(_LONGEST_WALK):
        if caller is None:
            return False
        kind = FILES[caller.f_code.co_filename]
        if kind != LIBRARY:
            return kind != USERS
        caller = caller.f_back
    return False


def is_shown(frame: FrameType) -> bool:
    """Whether a frame is part of the user's program."""
    kind = FILES[frame.f_code.co_filename]
    return kind == USERS or (kind == LIBRARY and not on_our_behalf(frame)) or tells_of_a_step(frame.f_code)


QUIET = (OWN, STAND_IN)  # code of this package
FURTHEST = 64  # how many frames are searched for the user's


def users_line(frame: FrameType | None) -> int:
    """The line that runs in the nearest frame of the user's, or of a library that the user called and we did not."""
    line = 0
    for _ in range(FURTHEST):
        if frame is None:
            break
        kind = FILES[frame.f_code.co_filename]
        if kind in QUIET:
            line = 0
        elif not line:
            line = frame.f_lineno or frame.f_code.co_firstlineno
        if kind == USERS:
            break
        frame = frame.f_back
    return line


def open_calls(frame: FrameType | None) -> list[OpenCall]:
    """The user's part of a stack, outermost first."""
    found = []
    while frame is not None:
        if is_shown(frame):
            found.append((frame.f_code, frame.f_lineno or frame.f_code.co_firstlineno, id(frame)))
        frame = frame.f_back
    return found[::-1]


# -- generators that wait for others -----------------------------------------------------------------------------------

GENERATORS = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR
_WAITING: dict[tuple[int, int], tuple[bool, CodeType]] = {}
_MANY_PLACES = 4096


def delegating(frame: FrameType) -> list[tuple[CodeType, int]]:
    """Generators that wait in a `yield from` or `await` for one that is entered: code and instruction, outermost first.

    An error thrown into a generator goes to the innermost one at once. The generators on the way are on the stack, but
    nothing reports that they are entered, or left when the innermost one is left.
    """
    found = []
    above = frame.f_back
    while above is not None and above.f_code.co_flags & GENERATORS and waits(above.f_code, above.f_lasti):
        if is_shown(above):
            found.append((above.f_code, above.f_lasti))
        above = above.f_back
    return found[::-1]


def waits(code: CodeType, instruction: int) -> bool:
    """Whether a frame at an instruction waits for another generator; a running frame calls or sends there."""
    known = _WAITING.get((id(code), instruction))
    if known is None:
        if len(_WAITING) >= _MANY_PLACES:
            _WAITING.clear()  # programs can make any number of codes
        # The code is kept, so that its identity stays unique.
        known = _WAITING[id(code), instruction] = _is_waiting(code.co_code, instruction), code
    return known[0]


def _is_waiting(instructions: bytes, at: int) -> bool:
    if at < 0 or at + 3 >= len(instructions):
        return False
    if sys.version_info < (3, 11):
        return instructions[at + 2] == opmap["YIELD_FROM"]  # it runs again when the other has yielded
    if sys.version_info < (3, 13):
        return instructions[at] == opmap["YIELD_VALUE"]
    return instructions[at] == opmap["RESUME"] and instructions[at + 1] & 3 >= 2  # the RESUME after a wait


# -- built-in functions ------------------------------------------------------------------------------------------------

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+>$")
_FUNCTIONS: dict[tuple[str, type | None], str] = {}


def function_name(function: Any, first: Any = None) -> str | None:
    """`<built-in method append of list object>`, or None if it is not a built-in function.

    `first` is the first argument of a method. PyTorch's names end with an address: that of the first object whose
    method was called. Here it is left out, so that recordings can be compared.
    """
    if type(function) is MethodDescriptorType:
        function = function.__get__(first)
    elif not isinstance(function, BuiltinFunctionType):
        return None
    owner = function.__self__
    key = (function.__name__, None if owner is None or isinstance(owner, ModuleType) else type(owner))
    found = _FUNCTIONS.get(key)
    if found is None:
        text = f"<built-in function {key[0]}>" if key[1] is None else _ADDRESS.sub(">", repr(function))
        found = _FUNCTIONS[key] = text
    return found


class CallBook:
    """What the C twin stores under addresses: names by place of call. Objects are kept, so identities stay unique."""

    def __init__(self) -> None:
        self.sites: dict[tuple[int, int, int], tuple[str | None, CodeType, CodeType]] = {}

    def site(self, caller: FrameType, instruction: int, code: CodeType) -> str | None:
        """The name of the built-in function that a function of this package stands for, if the user called it here."""
        above = caller.f_code
        key = (id(above), instruction, id(code))
        found = self.sites.get(key)
        if found is None:
            name = called_name(caller, instruction, code) if above.co_filename in FILES.users else None
            found = self.sites[key] = name, above, code
        return found[0]
