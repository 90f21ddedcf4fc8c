"""A child process's part in a recording of its parent: it records on request, and sends its events to the parent."""

from __future__ import annotations

import pickle
import threading
import traceback
from pathlib import Path
from typing import Any

from ..._dispatch.observer import HOOK
from ..options import Options
from ..recorder.assemble import assemble
from ..recorder.recorder import Recorder
from .processes import LAST, MORE, PIECE_BYTES, Left

clock = HOOK["clock"]
THREAD_NAME = "profiler reports"


class Reporter:
    """Answers the requests of a `processes.Channel` on a thread of its own, even while the child is busy.

    `begun` are the recordings that were running when the child was started; they begin at once. With a directory,
    recordings go into files there and only notices of them through the pipe, which then has room without a reader.
    """

    def __init__(self, requests: Any, reports: Any, begun: dict[int, Options], directory: str = "") -> None:
        self.requests = requests
        self.reports = reports
        self.directory = directory
        self.recorders: dict[int, Recorder] = {}
        self.lock = threading.RLock()
        for key, options in begun.items():
            self._start(key, options)
        threading.Thread(target=self._answer, name=THREAD_NAME, daemon=True).start()

    def _start(self, key: int, options: Options) -> None:
        # Children of this process take no part: its parent's channel covers only this process.
        recorder = self.recorders[key] = Recorder(options, own=())
        recorder.start()

    def _answer(self) -> None:
        while True:
            try:
                request, *arguments = self.requests.recv()
                with self.lock:
                    if self.reports.closed:
                        return
                    if request == "start":
                        self._start(*arguments)
                        self._write(("started", arguments[0], None))
                    elif request == "stop":
                        self._send(arguments[0])
                    else:
                        self._write(("clock", clock(), None))
            except (EOFError, OSError):
                # The parent has closed its end: nobody wants the rest.
                return

    def finish(self) -> None:
        """The child is about to end: send what is still open, and close the pipes."""
        with self.lock:
            try:
                for key in list(self.recorders):
                    self._send(key)
            except OSError:
                # As above.
                return
            finally:
                self.reports.close()

    def _send(self, key: int) -> None:
        recorder = self.recorders.pop(key, None)
        if recorder is None:
            return  # already sent
        recorder.stop()
        content: Any
        try:
            content = assemble(recorder, metadata={}, with_flops=recorder.options.shapes)
        except Exception:
            content = "could not assemble them: " + traceback.format_exc().strip().splitlines()[-1]
        if not self.directory:
            self._write(("recording", key, content))
            return
        path = Path(self.directory, str(key))
        try:
            path.write_bytes(pickle.dumps(content, pickle.HIGHEST_PROTOCOL))
        except OSError as error:
            self._write(("recording", key, f"could not write them to a file ({error})"))
            return
        try:
            self._write(("recording", key, Left(str(path))))
        except OSError:
            # The parent has closed its end, and will not remove the file if it was killed.
            path.unlink(missing_ok=True)
            raise

    def _write(self, message: tuple[str, int, Any]) -> None:
        whole = memoryview(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))
        for low in range(0, len(whole), PIECE_BYTES):
            more = low + PIECE_BYTES < len(whole)
            self.reports.send_bytes((MORE if more else LAST) + bytes(whole[low:low + PIECE_BYTES]))
