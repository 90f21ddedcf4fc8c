"""The profiler around a program: starts when it should, and is finished once, whatever ends the program."""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

from .settings import PROGRAM, Settings, numbered
from .step_finder import StepFinder


class Profiling:
    """One profile of a runtime, `torch.profiler.profile` of either package, and the files that it leaves."""

    def __init__(self, settings: Settings, torch: Any) -> None:
        self.settings = settings
        self.torch = torch
        self.owner = os.getpid()
        self._cycles = 0
        self._running = False
        self._finished = False
        self._lock = threading.RLock()
        self._timers: list[threading.Timer] = []
        self._profile = self._make()

    def _make(self) -> Any:
        settings, profiler = self.settings, self.torch.profiler
        more: dict[str, Any] = {}
        if settings.runtime == "torch":
            from importlib import import_module

            # Not with profile_all_threads: PyTorch then reports no memory.
            config = import_module("torch._C._profiler")._ExperimentalConfig
            more["experimental_config"] = config(record_python_gc_info=settings.flags.get("with_stack", False))
        else:
            config = profiler._ExperimentalConfig
            more["experimental_config"] = config(record_python_gc_info=True)
            if settings.max_events is not None:
                more["max_events"] = settings.max_events
            if settings.stream:
                more["save_to"] = settings.recording
        if settings.counts_steps:
            more["schedule"] = self._schedule()
            if not settings.stream:  # which has left a file for each cycle already
                more["on_trace_ready"] = lambda profile: self._save()
        made = profiler.profile(**settings.flags, **more)
        if settings.runtime == "torch":
            made.preset_metadata_json(PROGRAM, json.dumps(self._facts()))
        return made

    def _facts(self) -> dict[str, Any]:
        """What ran, on what."""
        settings = self.settings
        command = {"module": ["-m", settings.program], "code": ["-c", settings.program]}.get(settings.how,
                                                                                               [settings.program])
        return {"command": shlex.join([*command, *settings.arguments])[:1000],
                "runtime": f"{settings.runtime} {getattr(self.torch, '__version__', '')}".strip(),
                "python": platform.python_version(), "platform": platform.platform(), "processors": os.cpu_count()}

    def _schedule(self) -> Callable[[int], Any]:
        import warnings

        settings, profiler = self.settings, self.torch.profiler
        # Each cycle is saved before the next one begins, so that nothing is lost.
        warnings.filterwarnings("ignore", message="Warning: Profiler clears events")
        if settings.schedule is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that there is no warm-up, if the user asked for none
                return profiler.schedule(**settings.schedule)
        action = profiler.ProfilerAction
        first, last = settings.first_step or 0, settings.last_step or 0

        def act(step: int) -> Any:
            if step < first - 1 or step > last:
                return action.NONE
            if step == first - 1:
                return action.WARMUP
            return action.RECORD if step < last else action.RECORD_AND_SAVE

        return act

    def begin(self) -> None:
        """Start now, or arrange for it."""
        settings = self.settings
        if settings.counts_steps:
            StepFinder(self._step).watch(self.torch)
        if settings.after_s:
            if settings.runtime == "torch":
                # Its profiler takes seconds to start for the first time, in which the program would stand still.
                with self.torch.profiler.profile():
                    pass
            self._later(settings.after_s, self._start)
        else:
            self._start()

    def _start(self) -> None:
        with self._lock:
            if self._finished or os.getpid() != self.owner:
                return
            self._profile.start()
            self._running = True
        if self.settings.for_s:
            self._later(self.settings.for_s, self.finish)

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        """Call something after a while: on the main thread for PyTorch, whose profiler belongs to a thread."""
        if self.settings.runtime == "torch":
            import signal

            signal.signal(signal.SIGALRM, lambda *_: act())
            signal.setitimer(signal.ITIMER_REAL, seconds)
            return
        timer = threading.Timer(seconds, act)
        timer.daemon = True
        timer.name = "mtprof timer"
        self._timers.append(timer)
        timer.start()

    def _cancel_timers(self) -> None:
        for timer in self._timers:
            timer.cancel()
        if self.settings.runtime == "torch" and (self.settings.after_s or self.settings.for_s):
            import signal

            signal.setitimer(signal.ITIMER_REAL, 0)

    def _step(self) -> None:
        if self._running and threading.current_thread() is threading.main_thread() and os.getpid() == self.owner:
            self._profile.step()

    def finish(self) -> None:
        """Stop and leave the file; does nothing the second time, and in other processes than the first."""
        if os.getpid() != self.owner:
            return
        with self._lock:
            if self._finished:
                return
            self._finished = True
            self._cancel_timers()
            if not self._running:
                return
            self._running = False
            try:
                self._profile.stop()
                if not self.settings.counts_steps and not self.settings.stream:
                    self._save()
            except Exception:
                # The program's own exit code and output matter more; `mtprof run` sees that there is no file.
                print("mtprof: the recording could not be saved:", file=sys.stderr)
                traceback.print_exc(limit=-3)

    def _save(self) -> None:
        path = numbered(self.settings.recording, self._cycles)
        self._cycles += 1
        if self.settings.runtime == "torch":
            self._profile.export_chrome_trace(path)
        else:
            self._profile.profiler.recording.trace.metadata[PROGRAM] = self._facts()
            self._profile.save(path)
