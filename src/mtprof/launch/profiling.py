"""The profiler around a program: starts when it should, and is finished once, however the program ends."""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from .main_thread import MainThread
from .other_profilers import OtherProfilers
from .settings import PROGRAM, Settings, numbered
from .step_finder import StepFinder

MOST_STRETCHES = 8  # between the program's own profilers; each is a file, which takes time to write


class Profiling:
    """One profile of a runtime, `torch.profiler.profile` of either package, and the files that it writes."""

    def __init__(self, settings: Settings, torch: Any) -> None:
        self.settings = settings
        self.torch = torch
        self.owner = os.getpid()
        self._cycles = 0
        self._running = False
        self._finished = False
        self._lock = threading.RLock()
        self._left = threading.Event()  # set when `finish` is done
        self._told = False
        self._standing_back = False  # while the program runs a profiler of its own
        self._main: MainThread | None = None
        self._others: OtherProfilers | None = None
        if settings.runtime == "torch":  # its profiler belongs to the thread that started it; one at a time
            self._main = MainThread()
            self._others = OtherProfilers(self._stand_back, self._go_on)
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
            if not settings.stream:  # --stream has already written a file for each cycle
                more["on_trace_ready"] = lambda profile: self._save()
        made = profiler.profile(**settings.flags, **more)
        if settings.runtime == "torch":
            made.preset_metadata_json(PROGRAM, json.dumps(self._facts()))
        return made

    def _facts(self) -> dict[str, Any]:
        """What ran, and on what machine."""
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
                warnings.simplefilter("ignore")  # about a missing warm-up, if the user asked for none
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
        if self._others is not None:
            self._others.watch()
        if settings.counts_steps:
            StepFinder(self._step).watch(self.torch)
        if settings.after_s:
            if settings.runtime == "torch":
                # PyTorch's profiler takes seconds for its first start, during which the program would stand still.
                with self._ours(), self.torch.profiler.profile():
                    pass
            self._later(settings.after_s, self._start)
        else:
            self._start()

    def _start(self) -> None:
        with self._lock:
            if self._finished or os.getpid() != self.owner:
                return
            self._running = True
            if not self._standing_back:
                with self._ours():
                    self._profile.start()
        if self.settings.for_s:
            self._later(self.settings.for_s, self.finish)

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        """Call something after a delay: on the main thread for PyTorch, whose profiler belongs to a thread."""
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

    def _ours(self) -> AbstractContextManager[None]:
        return nullcontext() if self._others is None else self._others.ours()

    def _step(self) -> None:
        if not self._running or threading.current_thread() is not threading.main_thread() or os.getpid() != self.owner:
            return
        if self._standing_back:
            self._profile.step_num += 1
            self._profile.current_action = self._profile.schedule(self._profile.step_num)
            return
        with self._ours():
            self._profile.step()

    def _stand_back(self) -> None:
        """Stop and keep the recording so far, because the program starts its own profiler."""
        if os.getpid() != self.owner or self._standing_back or self._finished:
            return
        if not self._on_main(self._stop_and_save if self._running else lambda: None):
            print("mtprof: the program starts a profiler on another thread, but the main thread does not answer, and "
                  "PyTorch allows one profiler at a time: there may be no recording", file=sys.stderr)
        if not self._told:
            self._told = True
            print("mtprof: the program uses PyTorch's profiler itself, and PyTorch allows one at a time: what it "
                  "profiles is not in the recording; each stretch before, between and after has its own file",
                  file=sys.stderr)
        self._standing_back = True

    def _go_on(self) -> None:
        """Start again, because the program's own profiler has stopped."""
        if os.getpid() != self.owner or not self._standing_back or self._finished:
            return
        if self._cycles >= MOST_STRETCHES and not self.settings.counts_steps:
            if self._running:
                print(f"mtprof: the program started profilers of its own {MOST_STRETCHES} times; the rest is not "
                      "recorded", file=sys.stderr)
            self._running = False
            return
        self._standing_back = False
        if self._running:
            self._on_main(self._start_again)

    def _start_again(self) -> None:
        if not self.settings.counts_steps:  # otherwise it keeps counting
            self._profile = self._make()
        with self._ours():
            self._profile.start()

    def _stop_and_save(self) -> None:
        with self._ours():
            self._profile.stop()
            if not self.settings.counts_steps and not self.settings.stream:
                self._save()

    def _on_main(self, act: Callable[[], None]) -> bool:
        """Do it on the thread to which the profiler belongs; returns whether that was possible."""
        if self._main is not None:
            return self._main.do(act)
        act()
        return True

    def finish(self) -> None:
        """Stop and write the file. Does nothing the second time, or in another process than the first."""
        if os.getpid() != self.owner:
            return
        if not self._on_main(self._finish):
            print("mtprof: the recording is lost: another thread ends the program, and the main thread, which "
                  "owns PyTorch's profiler, does not answer", file=sys.stderr)
        elif threading.current_thread() is not threading.main_thread():
            self._left.wait()  # the main thread may have been in the middle of it already

    def _finish(self) -> None:
        with self._lock:
            if self._finished:
                return
            self._finished = True
            self._cancel_timers()
            try:
                if self._running and not self._standing_back:
                    self._stop_and_save()
            except Exception:
                # The program's own exit code and output matter more; `mtprof run` sees that there is no file.
                print("mtprof: the recording could not be saved:", file=sys.stderr)
                traceback.print_exc(limit=-3)
            finally:
                self._running = False
                self._left.set()

    def _save(self) -> None:
        path = numbered(self.settings.recording, self._cycles)
        self._cycles += 1
        if self.settings.runtime == "torch":
            self._profile.export_chrome_trace(path)
        else:
            self._profile.profiler.recording.trace.metadata[PROGRAM] = self._facts()
            self._profile.save(path)
