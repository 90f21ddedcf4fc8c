"""The process and the Ascend runtime: initialisation, the existing devices, the device of each thread, and the end."""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
from collections.abc import Callable

from .errors import AclError
from .library import Library, Unavailable, library
from .native import LAUNCH

REPEATED_INIT, NO_DEVICE = 100002, 207004


class ThreadDevice(threading.local):
    """The thread's device, for the runtime and for the program."""

    bound = -1  # the device set in the runtime
    current = 0  # the device that the program chose


THREAD = ThreadDevice()


class Process:
    """The state of the runtime in this process."""

    def __init__(self) -> None:
        self.initialized = False
        self.finished = False
        self.forked = False
        self.owns = False  # whether this module initialised the runtime, not somebody before it
        self.used: list[int] = []
        self.lock = threading.RLock()
        self.at_first_use: list[Callable[[], None]] = []
        self.at_end: list[Callable[[], None]] = []
        self.counted: int | None = None
        # Errors of a program's work that a profiler got because it waited first, by the device's number.
        self.unreported: dict[int, AclError] = {}


PROCESS = Process()
FORKED = ("Cannot re-initialize NPU in forked subprocess. To use NPU with multiprocessing, you must use the 'spawn' "
          "start method")


def unavailable_reason() -> str | None:
    """Why there is no NPU, or None if there is one."""
    try:
        library()
    except Unavailable as error:
        return str(error)
    try:
        found = device_count()
    except AclError as error:
        return str(error)
    return None if found else "the runtime finds no device" + _visible_hint()


def unusable_reason() -> str | None:
    """Why this process cannot use an NPU: there is none, or the process was forked from one that used it."""
    return unavailable_reason() or (FORKED if PROCESS.forked else None)


def _visible_hint() -> str:
    chosen = os.environ.get("ASCEND_RT_VISIBLE_DEVICES")
    return "" if chosen is None else f" (ASCEND_RT_VISIBLE_DEVICES={chosen!r})"


def device_count() -> int:
    """The number of devices that a program can use; makes no context, so that a process may fork afterwards."""
    if PROCESS.counted is not None:
        return PROCESS.counted
    try:
        opened = library()
    except Unavailable:
        return 0
    count = ctypes.c_uint32()
    try:
        opened.call("aclrtGetDeviceCount", ctypes.byref(count))
    except AclError as error:
        if error.code != NO_DEVICE:
            raise
        return 0
    found = visible(count.value, os.environ.get("ASCEND_RT_VISIBLE_DEVICES"))
    if PROCESS.initialized:
        PROCESS.counted = found
    return found


def visible(count: int, chosen: str | None) -> int:
    """The number of devices that `ASCEND_RT_VISIBLE_DEVICES` lets a process see.

    >>> visible(8, None), visible(8, "0,1"), visible(8, ""), visible(8, "1,0"), visible(2, "0,1,2")
    (8, 2, 0, 0, 2)
    """
    if chosen is None:
        return count
    text = ""
    for letter in chosen:
        if not letter.isdigit() and letter != ",":
            break
        text += letter
    numbers = [int(part) for part in text.split(",") if part]
    if not numbers or numbers != sorted(set(numbers)):
        return 0
    return sum(number < count for number in numbers)


def initialize() -> Library:
    """Start the runtime, once."""
    try:
        opened = library()
    except Unavailable as error:
        raise RuntimeError(f"No NPU is available: {error}") from None
    if PROCESS.forked:
        raise RuntimeError(FORKED)
    if PROCESS.initialized:
        return opened
    with PROCESS.lock:
        if not PROCESS.initialized:
            if not device_count():
                raise RuntimeError(f"No NPU is available: {unavailable_reason()}")
            code = opened.raw("aclInit")(None)
            if code not in (0, REPEATED_INIT):
                raise opened.error("aclInit", code)
            PROCESS.owns = code == 0
            PROCESS.initialized = True
            atexit.register(finish)
            for function in PROCESS.at_first_use:
                function()
            PROCESS.at_first_use.clear()
    return opened


def bind(index: int) -> Library:
    """Make a device the target of this thread's calls; returns the library to call."""
    if THREAD.bound == index:
        return library()
    opened = initialize()
    if PROCESS.finished:
        raise RuntimeError("the NPU runtime has been shut down")
    if not 0 <= index < device_count():
        raise RuntimeError(f"Invalid NPU device ordinal {index}: there {_are(device_count())}")
    opened.call("aclrtSetDevice", index)
    THREAD.bound = index
    if LAUNCH is not None:
        LAUNCH.bound(index)
    if index not in PROCESS.used:
        PROCESS.used.append(index)
    return opened


def wait(index: int, name: str, *arguments: object) -> None:
    """Call a function that waits for a device. An error that a profiler got instead of the program is raised."""
    bind(index).call(name, *arguments)
    if PROCESS.unreported:
        error = PROCESS.unreported.pop(index, None)
        if error is not None:
            raise error


def _are(count: int) -> str:
    return "is 1 device, number 0" if count == 1 else f"are {count} devices, from 0 to {count - 1}"


def current() -> int:
    """The thread's device as the program chose it."""
    return THREAD.current


def choose(index: int) -> None:
    """Let new tensors of this thread be on a device."""
    bind(index)
    THREAD.current = index


def reset(index: int) -> None:
    """Release a device; its contents are lost."""
    bind(index)
    library().call("aclrtResetDevice", index)
    THREAD.bound = -1
    if LAUNCH is not None:
        LAUNCH.bound(-1)
    if index in PROCESS.used:
        PROCESS.used.remove(index)


def finish() -> None:
    """Release everything at the end of the process."""
    if PROCESS.finished or PROCESS.forked or not PROCESS.initialized:
        return
    opened = library()
    for function in reversed(PROCESS.at_end):
        try:
            function()
        except AclError:
            continue  # the device is lost or was reset with its contents; waiters got the error
    PROCESS.finished = True
    for index in PROCESS.used:
        # Nobody is left to receive errors: the process ends.
        opened.raw("aclrtResetDevice")(index)
    if PROCESS.owns:
        opened.raw("aclFinalize")()


def _after_fork() -> None:
    """A child cannot use the parent's device: the driver's state does not survive."""
    PROCESS.lock = threading.RLock()
    if PROCESS.initialized:
        PROCESS.forked = True
        THREAD.bound = -1
        if LAUNCH is not None:
            LAUNCH.bound(-1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


_PEERS: dict[tuple[int, int], bool] = {}


def peers(here: int, there: int) -> bool:
    """Whether one device can copy from another's memory."""
    found = _PEERS.get((here, there))
    if found is None:
        opened = bind(here)
        can = ctypes.c_int32()
        opened.call("aclrtDeviceCanAccessPeer", ctypes.byref(can), here, there)
        if can.value:
            opened.call("aclrtDeviceEnablePeerAccess", there, 0)
        found = _PEERS[here, there] = bool(can.value)
    return found
