"""Streams, on which work is queued and runs in order, and events, which mark points of them."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

from ..._device import device
from .errors import AclError
from .native import LAUNCH
from .runtime import PROCESS, THREAD, bind, current, wait

FAST = 3  # launch and synchronise quickly, as torch_npu does
SYNC, TIMED = 0x1, 0x8
COMPLETE = 0  # of a stream
REACHED = 1  # of an event


def index_of(where: Any) -> int:
    """The number of a device given as a number, a name, a device, or None for the current one."""
    if where is None:
        return current()
    if isinstance(where, bool) or not isinstance(where, (int, str, device)):
        raise TypeError(f"a device is a number, a string or a torch.device, not {type(where).__name__}")
    if isinstance(where, int):
        return current() if where < 0 else where
    found = device(where)
    if found.type != "npu":
        raise ValueError(f"Expected a npu device, but got: {found}")
    return current() if found.index is None else found.index


class Stream:
    """A queue of work on a device. Work of one stream runs in order; work of several may run at the same time."""

    __slots__ = ("__weakref__", "_owned", "device", "device_index", "npu_stream", "stream_id")

    def __init__(self, device: Any = None, priority: int = 0, **given: Any) -> None:
        self.device_index = index_of(device)
        self.device = DEVICE(self.device_index)
        self._owned = False
        library = bind(self.device_index)
        if "stream_ptr" in given:
            self.npu_stream = int(given["stream_ptr"])
        else:
            place = ctypes.c_void_p()
            library.call("aclrtCreateStreamWithConfig", ctypes.byref(place), _priority(priority), FAST)
            self.npu_stream, self._owned = place.value or 0, True
        number = ctypes.c_int32()
        library.call("aclrtStreamGetId", self.npu_stream, ctypes.byref(number))
        self.stream_id = number.value

    @property
    def device_type(self) -> int:
        """PyTorch's number of private devices."""
        return 20

    def wait_event(self, event: Event) -> None:
        """Let work queued from now on wait for an event."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Let work queued from now on wait for the work that another stream has queued."""
        self.wait_event(stream.record_event())

    def record_event(self, event: Event | None = None) -> Event:
        """Mark the current point of this stream's queue."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def query(self) -> bool:
        """Whether all that was queued is done."""
        status = ctypes.c_int32()
        bind(self.device_index).call("aclrtStreamQuery", self.npu_stream, ctypes.byref(status))
        return status.value == COMPLETE

    def synchronize(self) -> None:
        """Wait until all that was queued is done."""
        wait(self.device_index, "aclrtSynchronizeStream", self.npu_stream)

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.npu_stream)

    @property
    def priority(self) -> int:
        """0: the runtime knows no others."""
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.npu_stream == other.npu_stream and self.device == other.device

    def __hash__(self) -> int:
        return hash((self.npu_stream, self.device_index))

    def __enter__(self) -> Stream:
        CURRENT.entered.append((THREAD.current, CURRENT.streams.get(self.device_index)))
        set_stream(self)
        return self

    def __exit__(self, *exc: object) -> None:
        index, before = CURRENT.entered.pop()
        if before is None:
            CURRENT.streams.pop(self.device_index, None)
        else:
            CURRENT.streams[self.device_index] = before
        THREAD.current = index
        if LAUNCH is not None:
            LAUNCH.streams_changed()

    def __repr__(self) -> str:
        return f"<torch.npu.Stream device={self.device} npu_stream={self.npu_stream:#x}>"

    def __reduce__(self) -> Any:
        raise TypeError("a stream belongs to its process and cannot be pickled")

    def __del__(self, process: Any = PROCESS, bind: Any = bind, gone: Any = (AclError, RuntimeError)) -> None:
        # A stream ends with its last reference, except at the end of the process, when the reset of the device releases
        # it. Nothing here can report a status. The names are kept, because modules are emptied then.
        if getattr(self, "_owned", False) and not process.finished and not process.forked:
            try:
                bind(self.device_index).raw("aclrtDestroyStream")(self.npu_stream)
            except gone:
                return  # the device is gone, and the stream with it


class ExternalStream(Stream):
    """A stream that other code has made, by its address."""

    __slots__ = ()

    def __init__(self, stream_ptr: int, device: Any = None, **kwargs: Any) -> None:
        super().__init__(device, stream_ptr=stream_ptr)


class Event:
    """A point in a stream's queue, made when it is first recorded."""

    __slots__ = ("__weakref__", "_device", "_handle", "_timed")

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False,
                 external: bool = False) -> None:
        if interprocess:
            raise NotImplementedError("npu.Event(interprocess=True): events of several processes are not supported")
        self._timed = enable_timing
        self._handle = 0
        self._device: int | None = None

    def record(self, stream: Stream | None = None) -> None:
        """Mark the current point of a stream's queue, by default the current stream's."""
        stream = current_stream() if stream is None else stream
        library = bind(stream.device_index)
        if self._device is not None and self._device != stream.device_index:
            raise RuntimeError(f"Event device {self._device} does not match recording stream's device "
                               f"{stream.device_index}")
        if not self._handle:
            place = ctypes.c_void_p()
            library.call("aclrtCreateEventExWithFlag", ctypes.byref(place), TIMED | SYNC if self._timed else SYNC)
            self._handle, self._device = place.value or 0, stream.device_index
        library.call("aclrtRecordEvent", self._handle, stream.npu_stream)

    def wait(self, stream: Stream | None = None) -> None:
        """Let work that a stream, by default the current one, queues from now on wait for this event."""
        if self._handle:
            stream = current_stream() if stream is None else stream
            bind(stream.device_index).call("aclrtStreamWaitEvent", stream.npu_stream, self._handle)

    def query(self) -> bool:
        """Whether the stream has reached it; an event that was never recorded counts as reached."""
        if not self._handle:
            return True
        status = ctypes.c_int32()
        bind(self._device or 0).call("aclrtQueryEventStatus", self._handle, ctypes.byref(status))
        return status.value == REACHED

    def synchronize(self) -> None:
        """Wait until the stream has reached it."""
        if self._handle:
            wait(self._device or 0, "aclrtSynchronizeEvent", self._handle)

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to another, after waiting for both."""
        for event in (self, end_event):
            if not event._timed:
                raise ValueError("Both events must be created with argument 'enable_timing=True'.")
            if not event._handle:
                raise ValueError("Both events must be recorded before calculating elapsed time.")
        self.synchronize()
        end_event.synchronize()
        found = ctypes.c_float()
        bind(self._device or 0).call("aclrtEventElapsedTime", ctypes.byref(found), self._handle, end_event._handle)
        return found.value

    def recorded_time(self) -> int:
        """When the device reached it: microseconds on the device's clock."""
        if not self._handle:
            raise ValueError("The event has to be recorded before its time can be read.")
        self.synchronize()
        found = ctypes.c_uint64()
        bind(self._device or 0).call("aclrtEventGetTimestamp", self._handle, ctypes.byref(found))
        return found.value

    @property
    def device(self) -> device | None:
        """The device it was recorded on."""
        return None if self._device is None else DEVICE(self._device)

    @property
    def npu_event(self) -> int:
        """Its address, 0 before it was recorded."""
        return self._handle

    def ipc_handle(self) -> Any:
        """Events of several processes are not supported."""
        raise NotImplementedError("npu.Event.ipc_handle: events of several processes are not supported")

    @classmethod
    def from_ipc_handle(cls, device: Any, handle: Any) -> Any:
        """Events of several processes are not supported."""
        raise NotImplementedError("npu.Event.from_ipc_handle: events of several processes are not supported")

    def __repr__(self) -> str:
        return f"<torch.npu.Event {self._handle:#x}>" if self._handle else "<torch.npu.Event uninitialized>"

    def __reduce__(self) -> Any:
        raise TypeError("an event belongs to its process and cannot be pickled")

    def __del__(self, process: Any = PROCESS, bind: Any = bind, gone: Any = (AclError, RuntimeError)) -> None:
        if getattr(self, "_handle", 0) and not process.finished and not process.forked:
            try:
                bind(self._device or 0).raw("aclrtDestroyEvent")(self._handle)
            except gone:
                return  # the device is gone, and the event with it


def _priority(value: int) -> int:
    """Programs request high priority with negative numbers; the runtime's numbers are not negative."""
    return max(0, min(7, int(value)))


_DEVICES: dict[int, device] = {}


def DEVICE(index: int) -> device:
    """`npu:<index>`, one object for all."""
    found = _DEVICES.get(index)
    if found is None:
        found = _DEVICES.setdefault(index, device("npu", index))
    return found


class _Current(threading.local):
    def __init__(self) -> None:
        self.streams: dict[int, Stream] = {}
        self.entered: list[tuple[int, Stream | None]] = []


CURRENT = _Current()
DEFAULTS: dict[int, Stream] = {}
_LOCK = threading.Lock()


def default_stream(where: Any = None) -> Stream:
    """The stream of a device's work unless another is chosen."""
    index = index_of(where)
    found = DEFAULTS.get(index)
    if found is None:
        with _LOCK:
            if index not in DEFAULTS:
                DEFAULTS[index] = Stream(DEVICE(index))
        found = DEFAULTS[index]
    return found


def current_stream(where: Any = None) -> Stream:
    """The stream that this thread's work is queued on."""
    index = index_of(where)
    return CURRENT.streams.get(index) or default_stream(index)


def stream_of(index: int) -> Stream:
    """`current_stream` of a device by its number."""
    return CURRENT.streams.get(index) or DEFAULTS.get(index) or default_stream(index)


def set_stream(stream: Stream) -> None:
    """Queue this thread's work on a stream, and make its device the current one."""
    bind(stream.device_index)
    THREAD.current = stream.device_index
    CURRENT.streams[stream.device_index] = stream
    if LAUNCH is not None:
        LAUNCH.streams_changed()


def _forget_streams() -> None:
    """Release streams at the end of the process; the device's reset releases those that threads still have."""
    for stream in DEFAULTS.values():
        stream.synchronize()


PROCESS.at_end.append(_forget_streams)
