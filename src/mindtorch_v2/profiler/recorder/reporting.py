"""A child process's part in a recording of its parent: record when told to, and send home what was recorded."""

from __future__ import annotations

import pickle
import threading
import traceback
from typing import Any

from ..._dispatch.observer import HOOK
from .assemble import assemble
from .processes import LAST, MORE, PIECE_BYTES
from .recorder import Recorder, RecorderOptions

clock = HOOK["clock"]
THREAD_NAME = "profiler reports"


class Reporter:
    """Answers the requests of a `processes.Channel`, on a thread of its own: also while the child is busy.

    `begun` are the recordings that were under way when the child was started; they begin at once.
    """

    def __init__(self, requests: Any, reports: Any, begun: dict[int, RecorderOptions]) -> None:
        self.requests = requests
        self.reports = reports
        self.recorders: dict[int, Recorder] = {}
        self.lock = threading.RLock()
        for key, options in begun.items():
            self._start(key, options)
        threading.Thread(target=self._answer, name=THREAD_NAME, daemon=True).start()

    def _start(self, key: int, options: RecorderOptions) -> None:
        recorder = self.recorders[key] = Recorder(options)
        recorder.start()

    def _answer(self) -> None:
        while True:
            try:
                request, *arguments = self.requests.recv()
                with self.lock:
                    if request == "start":
                        self._start(*arguments)
                        self._write(("started", arguments[0], None))
                    elif request == "stop":
                        self._send(arguments[0])
                    else:
                        self._write(("clock", clock(), None))
            except (EOFError, OSError):
                # The parent has hung up: nobody wants the rest.
                return

    def finish(self) -> None:
        """The child is about to end: send what is still open."""
        try:
            with self.lock:
                for key in list(self.recorders):
                    self._send(key)
        except OSError:
            # As above.
            return

    def _send(self, key: int) -> None:
        recorder = self.recorders.pop(key, None)
        if recorder is None:
            return  # sent already
        recorder.stop()
        content: Any
        try:
            content = assemble(recorder, metadata={}, with_flops=recorder.options.shapes)
        except Exception:
            content = "failed to put them together: " + traceback.format_exc().strip().splitlines()[-1]
        self._write(("recording", key, content))

    def _write(self, message: tuple[str, int, Any]) -> None:
        whole = memoryview(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))
        for low in range(0, len(whole), PIECE_BYTES):
            more = low + PIECE_BYTES < len(whole)
            self.reports.send_bytes((MORE if more else LAST) + bytes(whole[low:low + PIECE_BYTES]))
