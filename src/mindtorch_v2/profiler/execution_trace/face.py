"""`ExecutionTraceObserver`: writes every op with its inputs and outputs, in PyTorch's execution trace format."""

from __future__ import annotations

import atexit
import os
import tempfile
import time
import warnings
import weakref
from abc import ABC, abstractmethod
from typing import ClassVar

from mtprof.files import write_atomically

from .tap import ExecutionTraceTap, clock
from .text import TraceText

ENABLE = "ENABLE_PYTORCH_EXECUTION_TRACE"
ENABLE_EXTRAS = "ENABLE_PYTORCH_EXECUTION_TRACE_EXTRAS"
SAVE_RANGE = "ENABLE_PYTORCH_EXECUTION_TRACE_SAVE_INTEGRAL_TENSOR_RANGE"
SAVE_DATA = "ENABLE_PYTORCH_EXECUTION_TRACE_SAVE_INTEGRAL_TENSOR_DATA"


class _ITraceObserver(ABC):
    """The interface of an object that a profiler starts and stops together with its recording."""

    @abstractmethod
    def start(self) -> None:
        """The recording starts."""

    @abstractmethod
    def stop(self) -> None:
        """The recording stops."""

    @abstractmethod
    def cleanup(self) -> None:
        """The profiler is done: write the file."""


class ExecutionTraceObserver(_ITraceObserver):
    """Record ops, scopes and backward functions with their tensors, and write them as an execution trace.

    `unregister_callback()` writes the file; so do `cleanup()` and deleting the observer. Between `register_callback`
    and that, `start()` and `stop()` may be called any number of times. A process can have one registered observer at a
    time.

    >>> import json, os, tempfile
    >>> import mindtorch_v2 as torch
    >>> path = os.path.join(tempfile.mkdtemp(), "trace.json")
    >>> observer = torch.profiler.ExecutionTraceObserver().register_callback(path)
    >>> observer.start()
    >>> y = torch.ones(2, 3) * 2
    >>> observer.stop()
    >>> observer.unregister_callback()
    >>> with open(path) as file:
    ...     nodes = json.load(file)["nodes"]
    >>> next(node for node in nodes if node["name"] == "aten::mul")["inputs"]["shapes"]
    [[2, 3], []]
    """

    # Weak, so that deleting a registered observer writes its file.
    _registered_one: ClassVar[weakref.ref[ExecutionTraceObserver] | None] = None

    def __init__(self) -> None:
        self._registered = False
        self._execution_trace_running = False
        self.extra_resources_collection = False
        self.resources_dir: str = ""
        self.output_file_path: str = ""
        self._tap: ExecutionTraceTap | None = None
        self._start_ns = 0
        self._time = ""

    def __del__(self) -> None:
        self.unregister_callback()

    @staticmethod
    def build_execution_trace_obs_from_env() -> ExecutionTraceObserver | None:
        """A registered observer if the environment has `ENABLE_PYTORCH_EXECUTION_TRACE=1`, otherwise None.

        It writes to a new temporary file, whose name is `get_output_file_path()`. With
        `ENABLE_PYTORCH_EXECUTION_TRACE_EXTRAS=1` it also has a directory for further files.
        """
        if os.environ.get(ENABLE, "0") != "1":
            return None
        try:
            handle, path = tempfile.mkstemp(suffix=".et.json")
            os.close(handle)
        except OSError as error:
            warnings.warn(f"{ENABLE} asks for an execution trace, but no temporary file could be made for it: {error}",
                          stacklevel=2)
            return None
        observer = ExecutionTraceObserver().register_callback(path)
        observer.set_extra_resource_collection(os.environ.get(ENABLE_EXTRAS, "0") == "1")
        return observer

    # -- life cycle ------------------------------------------------------------------------------------------------

    def register_callback(self, output_file_path: str) -> ExecutionTraceObserver:
        """Choose the file; compressed if its name ends in `.gz`. Does nothing if already registered."""
        if self._registered:
            return self
        path = os.fsdecode(output_file_path)
        directory = os.path.dirname(path) or "."
        if not os.path.isdir(directory) or not os.access(directory, os.W_OK):
            warnings.warn(f"no execution trace is recorded: {path} cannot be written, because {directory} is not a "
                          "directory or not writable", stacklevel=2)
            return self
        known = ExecutionTraceObserver._registered_one
        other = None if known is None else known()
        if other is not None:
            warnings.warn("only one execution trace can be recorded at a time: unregister the observer that "
                          f"writes {other.output_file_path} first", stacklevel=2)
            return self
        self.output_file_path = path
        self._tap = ExecutionTraceTap(
            ranges=os.environ.get(SAVE_RANGE, "0") == "1",
            data_of=frozenset(filter(None, os.environ.get(SAVE_DATA, "").split(","))))
        self._start_ns = clock()
        self._time = time.strftime("%Y-%m-%d %H:%M:%S")
        self._registered = True
        ExecutionTraceObserver._registered_one = weakref.ref(self)
        return self

    def unregister_callback(self) -> None:
        """Stop and write the file. If writing fails, nothing is lost: remove the cause and call this again."""
        tap = self._tap
        if not self._registered or tap is None:
            return
        self.stop()
        if tap.pid == os.getpid():  # a forked child leaves the file to its parent
            times = (self._start_ns // 1_000_000, clock() // 1_000_000, self._time)
            write_atomically(self.output_file_path, TraceText(tap).chunks(*times))
            self._write_data(tap)
        self._registered = False
        self._tap = None
        ExecutionTraceObserver._registered_one = None

    def start(self) -> None:
        """Begin or continue recording; without a registered file nothing happens."""
        if self._registered and not self._execution_trace_running and self._tap is not None:
            self._execution_trace_running = True
            self._tap.start()

    def stop(self) -> None:
        """Pause recording."""
        if self._execution_trace_running and self._tap is not None:
            self._tap.stop()
            self._execution_trace_running = False

    def cleanup(self) -> None:
        """The same as `unregister_callback`, for profilers."""
        self.unregister_callback()

    # -- facts -----------------------------------------------------------------------------------------------------

    @property
    def is_registered(self) -> bool:
        """Whether a file was chosen but not yet written."""
        return self._registered

    def is_running(self) -> bool:
        """Whether ops are being recorded."""
        return self._execution_trace_running

    def get_output_file_path(self) -> str | None:
        """The file that was chosen last, or None."""
        return self.output_file_path or None

    # -- further files ---------------------------------------------------------------------------------------------

    def set_extra_resource_collection(self, val: bool) -> None:
        """Choose whether files that belong to the trace go to a directory beside it; call after registering."""
        self.extra_resources_collection = val
        if val:
            self.get_resources_dir(can_create=True)

    def get_resources_dir(self, can_create: bool = False) -> str | None:
        """The directory for further files; None if they are not collected or it does not exist."""
        if not self.extra_resources_collection:
            return None
        if not self.resources_dir:
            found = ExecutionTraceObserver.get_resources_dir_for_et_path(self.output_file_path, create_dir=can_create)
            self.resources_dir = found or ""
        return self.resources_dir or None

    @staticmethod
    def get_resources_dir_for_et_path(trace_path: str, create_dir: bool = False) -> str | None:
        """The directory for the further files of a trace: its name without suffix, plus `_resources`."""
        directory = f"{os.path.splitext(trace_path)[0]}_resources"
        if os.path.exists(directory):
            return directory
        if not create_dir:
            return None
        try:
            os.mkdir(directory)
        except OSError as error:
            warnings.warn(f"no directory for the further files of {trace_path}: {error}", stacklevel=2)
            return None
        return directory

    def _write_data(self, tap: ExecutionTraceTap) -> None:
        """Write the contents of the integer tensors that the environment asked for, as
        `nid_<node>_tid_<tensor>.dat`."""
        directory = self.get_resources_dir()
        if directory is not None:
            for (node, position), content in tap.data.items():
                write_atomically(os.path.join(directory, f"nid_{node}_tid_{position}.dat"), [content])


def _write_at_exit() -> None:
    """Finish an observer that is still registered, while files can still be written."""
    known = ExecutionTraceObserver._registered_one
    observer = None if known is None else known()
    if observer is not None:
        observer.unregister_callback()


atexit.register(_write_at_exit)

__all__ = ["ExecutionTraceObserver"]
