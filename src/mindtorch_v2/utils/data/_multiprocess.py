"""The iterator whose batches are fetched by worker processes, a few ahead.

Each worker has two pipes: numbered tasks go in, numbered results come back. Workers do not
share a queue: if one is killed in the middle of a message, no lock stays taken, no other message is damaged, and the
end of its pipe is noticed at once. Two more pipes belong to the profiler: through them workers learn of recordings of
the main process and send back what they recorded (`profiler/recorder/processes.py`).
"""

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
import time
import weakref
from multiprocessing import connection
from typing import Any

from ...profiler.sources import processes
from ._iterator import _BaseDataLoaderIter
from ._streams import shared_seed
from ._utils.error import ExceptionWrapper
from ._utils.worker import Resume, StreamEnded, worker_loop

# Seconds that a worker gets to end by itself before it is terminated, and killed.
PATIENCE = 5.0


class Worker:
    """A worker process as the main process sees it."""

    def __init__(self, context: Any, worker_id: int, arguments: dict[str, Any]) -> None:
        self.id = worker_id
        self.active = True  # whether it gets tasks
        self.running = True  # whether it is expected to be alive
        self.pending = 0
        tasks, self.tasks = context.Pipe(duplex=False)
        self.results, results = context.Pipe(duplex=False)
        requests, asked = context.Pipe(duplex=False)
        told, reports = context.Pipe(duplex=False)
        recordings = processes.under_way()
        self.channel = processes.Channel(f"DataLoader worker {worker_id}", asked, told)
        self.process = context.Process(
            target=worker_loop, daemon=True,
            kwargs={**arguments, "tasks": tasks, "results": results, "worker_id": worker_id,
                    "profiler": (requests, reports, recordings)})
        try:
            self.process.start()
        except BaseException:
            for pipe in (self.tasks, self.results, asked, told):
                pipe.close()
            raise
        finally:
            # Held by the worker alone, so that its end closes them; also before the next worker is forked.
            for pipe in (tasks, results, requests, reports):
                pipe.close()
        self.channel.pid = self.process.pid or 0
        processes.join(self.channel, list(recordings))


def stop_workers(workers: list[Worker], owner: int | None) -> None:
    """End worker processes and wait for them. Does nothing in a process that did not start them."""
    if multiprocessing.current_process().pid != owner:
        return
    for worker in workers:
        # OSError: it is dead already.
        with contextlib.suppress(OSError):
            worker.tasks.send(None)
        worker.tasks.close()
        # A worker that is writing a result nobody will read is interrupted by this.
        worker.results.close()
    deadline = time.monotonic() + PATIENCE
    processes.leave([worker.channel for worker in workers], PATIENCE)
    for worker in workers:
        worker.process.join(max(0.0, deadline - time.monotonic()))
        if worker.process.is_alive():
            worker.process.terminate()
            worker.process.join(PATIENCE)
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()
    workers.clear()


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Keeps `prefetch_factor` tasks per worker under way and returns their results in order."""

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        self._prefetch_factor: int = loader.prefetch_factor
        if self._prefetch_factor <= 0:
            raise AssertionError("prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter")
        self._in_order = loader.in_order
        self._persistent = loader.persistent_workers
        context = loader.multiprocessing_context or multiprocessing.get_context()
        arguments = {
            "iterable": self._iterable, "dataset": self._dataset, "auto_collation": loader._auto_collation,
            "collate_fn": loader.collate_fn, "drop_last": loader.drop_last, "base_seed": self._base_seed,
            "shared_seed": self._shared_seed,
            "init_fn": loader.worker_init_fn, "num_workers": self._num_workers,
        }
        self._workers: list[Worker] = []
        # Runs when this iterator is dropped, and at exit before multiprocessing ends its daemons.
        self._stop = weakref.finalize(self, stop_workers, self._workers, multiprocessing.current_process().pid)
        try:
            for worker_id in range(self._num_workers):
                self._workers.append(Worker(context, worker_id, arguments))
        except BaseException:
            self._stop()
            raise
        self._reset(loader, first=True)

    def _reset(self, loader: Any, first: bool = False) -> None:
        if not self._workers:
            raise RuntimeError("this iterator's workers were stopped by an earlier error")
        if first:
            # PyTorch draws once more here; the workers have begun with the one before.
            shared_seed(loader.dataset, loader.generator)
        else:
            # At first the sampler's iterator exists already; making another could draw random numbers twice.
            super()._reset(loader)
            self._resume()
        self._next_task = 0
        self._next_result = 0
        self._turn = 0
        # Task number -> its worker, in the order in which tasks were given.
        self._tasks: dict[int, Worker] = {}
        # Results that came before their turn.
        self._early: dict[int, Any] = {}
        for worker in self._workers:
            worker.active = True
            worker.pending = 0
        for _ in range(self._prefetch_factor * self._num_workers):
            self._give_task()

    def _resume(self) -> None:
        """Have persistent workers start over, dropping what is left of an epoch that was not finished."""
        for worker in self._workers:
            self._send(worker, Resume(self._shared_seed))
        waiting = set(self._workers)
        while waiting:
            worker, _, result = self._receive()
            if isinstance(result, Resume):
                waiting.discard(worker)

    # -- talking to workers ----------------------------------------------------------------------------------------

    def _send(self, worker: Worker, message: Any) -> None:
        try:
            worker.tasks.send(message)
        except (BrokenPipeError, ConnectionResetError):
            self._fail([worker])

    def _fail(self, dead: list[Worker]) -> None:
        for worker in dead:
            worker.process.join(PATIENCE)
        pids = ", ".join(str(worker.process.pid) for worker in dead)
        self._stop()
        raise RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly")

    def _receive(self) -> tuple[Worker, Any, Any]:
        """The next message of any worker: `(worker, task number, result)`."""
        by_pipe = {worker.results: worker for worker in self._workers if worker.running}
        ready = connection.wait(list(by_pipe), self._timeout or None)
        if not ready:
            self._stop()
            raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
        worker = by_pipe[ready[0]]
        try:
            message = worker.results.recv_bytes()
        except (EOFError, OSError):
            self._fail([worker])
        task, result = pickle.loads(message)
        return worker, task, result

    def _give_task(self) -> None:
        """Give the next indices to the next worker in turn, if there are any."""
        worker = self._choose_worker()
        if worker is None:
            return
        try:
            index = next(self._sampler_iter)
        except StopIteration:
            return
        self._tasks[self._next_task] = worker
        worker.pending += 1
        self._send(worker, (self._next_task, index))
        self._next_task += 1

    def _choose_worker(self) -> Worker | None:
        for _ in range(self._num_workers):
            worker = self._workers[self._turn]
            self._turn = (self._turn + 1) % self._num_workers
            # Out of order, a slow worker must not collect the tasks that others could do.
            if worker.active and (self._in_order or worker.pending < self._prefetch_factor):
                return worker
        return None

    # -- results ---------------------------------------------------------------------------------------------------

    def _next_data(self) -> Any:
        while True:
            self._skip_ended()
            if not self._tasks:
                if not self._persistent:
                    self._stop()
                raise StopIteration
            if self._next_result in self._early:
                return self._deliver(self._next_result, self._early.pop(self._next_result))
            worker, task, result = self._receive()
            if isinstance(result, StreamEnded):
                worker.active = False
                del self._tasks[task]
                if not self._persistent:
                    worker.running = False
                    self._send(worker, None)
                self._give_task()
            elif not self._in_order or task == self._next_result:
                return self._deliver(task, result)
            else:
                self._early[task] = result

    def _skip_ended(self) -> None:
        """Drop tasks that workers were given after their stream had ended; they will not answer."""
        for task, worker in list(self._tasks.items()):
            if not worker.active and task not in self._early:
                del self._tasks[task]
        if self._tasks and self._next_result not in self._tasks:
            self._next_result = next(iter(self._tasks))

    def _deliver(self, task: int, result: Any) -> Any:
        self._tasks.pop(task).pending -= 1
        self._next_result = next(iter(self._tasks), self._next_task)
        self._give_task()
        if isinstance(result, ExceptionWrapper):
            result.reraise()
        return result

    def _shutdown_workers(self) -> None:
        self._stop()
