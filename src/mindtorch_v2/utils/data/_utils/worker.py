"""What runs in a worker process of the loader.

A worker has a pipe for work and a pipe for results of its own. A thread writes the results, so that a batch that the
main process does not want yet does not stop the worker from making the next one.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import random
import threading
from collections import ChainMap
from collections.abc import Callable
from multiprocessing import connection
from multiprocessing.reduction import ForkingPickler
from typing import Any, ClassVar

import numpy as np

from ...._random import manual_seed
from ...._tensor import Tensor
from ...._tensor_methods import reduce_alone
from ....profiler.sources.reporting import Reporter
from .._streams import of_worker, reseeded
from .error import ExceptionWrapper
from .fetch import make_fetcher

# Seconds between looks at whether the main process is still there, for the case that nothing signals its end.
CHECK_INTERVAL = 2.0


class WorkerInfo:
    """What `get_worker_info` returns: `id`, `num_workers`, `seed` and `dataset`, this worker's copy."""

    def __init__(self, **facts: Any) -> None:
        self.__dict__.update(facts)
        self.__dict__["_fields"] = tuple(facts)

    def __setattr__(self, name: str, value: Any) -> None:
        raise RuntimeError(f"Cannot assign attributes to {type(self).__name__} objects")

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)}" for name in self.__dict__["_fields"])
        return f"{type(self).__name__}({shown})"


class _Current:
    """The worker that this process is, if it is one."""

    info: WorkerInfo | None = None


def get_worker_info() -> Any:
    """In a worker process: which one it is; None elsewhere."""
    return _Current.info


class Resume:
    """Sent to persistent workers at the start of an epoch, and sent back by them."""

    def __init__(self, shared_seed: int | None = None) -> None:
        self.shared_seed = shared_seed


class StreamEnded:
    """Sent by a worker whose copy of an iterable dataset has no more samples."""

    def __init__(self, worker_id: int) -> None:
        self.worker_id = worker_id


class SamplePickler(ForkingPickler):
    """A sample is often a small window on a large tensor: only the window travels."""

    _extra_reducers: ClassVar[Any] = ChainMap(
        {Tensor: reduce_alone}, ForkingPickler._extra_reducers)  # type: ignore[attr-defined]


class Outbox:
    """Results on their way to the main process, written by a thread."""

    def __init__(self, results: Any) -> None:
        self.results = results
        self.waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.thread = threading.Thread(target=self._write, daemon=True)
        self.thread.start()

    def put(self, task: Any, result: Any, where: str) -> None:
        """Pickle a result here, where an error can still be reported, and leave it to the thread."""
        try:
            message = SamplePickler.dumps((task, result))
        except Exception:
            if isinstance(result, ExceptionWrapper):
                failure = result.without_type()
            else:
                failure = ExceptionWrapper(where=where)
            message = SamplePickler.dumps((task, failure))
        self.waiting.put(message)

    def _write(self) -> None:
        while True:
            try:
                self.results.send_bytes(self.waiting.get())
            except OSError:
                # The main process has hung up: nobody wants the rest.
                return


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """The seed of NumPy's generator. It is not the worker's seed, which would give the same stream as `random`."""
    words = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return np.random.SeedSequence(words).generate_state(4).tolist()


def seed_worker(base_seed: int, worker_id: int) -> int:
    """Seed all generators of this process; returns the seed."""
    seed = base_seed + worker_id
    random.seed(seed)
    manual_seed(seed)
    np.random.seed(_generate_state(base_seed, worker_id))
    return seed


def receive(tasks: Any, parent_id: int) -> Any:
    """The next message of the main process; EOFError when that process is gone."""
    parent = multiprocessing.parent_process()
    watched = [tasks] if parent is None else [tasks, parent.sentinel]
    while True:
        ready = connection.wait(watched, CHECK_INTERVAL)
        if tasks in ready:
            return tasks.recv()
        if ready or os.getppid() != parent_id:
            raise EOFError


def worker_loop(iterable: bool, dataset: Any, tasks: Any, results: Any, auto_collation: bool,
                collate_fn: Callable[[Any], Any], drop_last: bool, base_seed: int, shared_seed: int | None,
                init_fn: Callable[[int], Any] | None, worker_id: int, num_workers: int,
                profiler: tuple[Any, Any, dict[int, Any]]) -> None:
    """Fetch batches until told to stop; also at the end of a stream a worker waits to be told."""
    parent_id = os.getppid()
    reporter = Reporter(*profiler)
    where = f"in DataLoader worker process {worker_id}"
    outbox = Outbox(results)
    failure: ExceptionWrapper | None = None
    fetcher: Any = None
    ended = False
    try:
        seed = seed_worker(base_seed, worker_id)
        _Current.info = WorkerInfo(id=worker_id, num_workers=num_workers, seed=seed, dataset=dataset)

        def start() -> Any:
            return make_fetcher(iterable, dataset, auto_collation, collate_fn, drop_last)

        try:
            reseeded(dataset, shared_seed)
            of_worker(dataset, worker_id, num_workers)
            if init_fn is not None:
                init_fn(worker_id)
            fetcher = start()
        except Exception:
            failure = ExceptionWrapper(where=where)
        while True:
            message = receive(tasks, parent_id)
            if message is None:
                break
            if isinstance(message, Resume):
                ended = False
                outbox.put(None, message, where)
                try:
                    reseeded(dataset, message.shared_seed)
                    fetcher = start()
                except Exception:
                    failure = ExceptionWrapper(where=where)
                continue
            if ended:
                # Asked for before the main process knew; the answer is on its way.
                continue
            task, index = message
            result: Any
            if failure is not None:
                result, failure = failure, None
            else:
                try:
                    result = fetcher.fetch(index)
                except StopIteration as stop:
                    if iterable:
                        result = StreamEnded(worker_id)
                        ended = True
                    else:
                        result = ExceptionWrapper((type(stop), stop, stop.__traceback__), where)
                except Exception:
                    result = ExceptionWrapper(where=where)
            outbox.put(task, result, where)
            del result
    except (KeyboardInterrupt, EOFError):
        # Ctrl-C reaches the main process too, which reports it; a main process that is gone wants no report.
        return
    finally:
        reporter.finish()
