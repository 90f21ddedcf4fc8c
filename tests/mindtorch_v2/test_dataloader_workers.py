"""Loading with worker processes: order, seeds, errors, and no process that stays behind."""

from __future__ import annotations

import gc
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

# Python 3.12 and later warn about fork when NumPy has started threads of its own.
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create",
                                        "ignore:This process:DeprecationWarning")
SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(torch.__file__)))


class Numbers(Dataset):
    """Sample i is i, unless something is to happen at i = 5."""

    def __init__(self, at_five=None, size=12):
        self.at_five = at_five
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        if index == 5 and self.at_five is not None:
            return self.at_five()
        return torch.tensor(index)


class Shard(IterableDataset):
    """Each worker has a stream of another length."""

    def __iter__(self):
        worker = get_worker_info().id
        return iter(range(100 * worker, 100 * worker + 3 + 2 * worker))


class Seeds(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        info = get_worker_info()
        return info.id, info.num_workers, info.seed, torch.initial_seed(), random.random(), np.random.rand()


class Unfindable(Exception):
    def __init__(self, first, second):
        super().__init__(first, second)


def raise_value():
    raise ValueError("bad sample")


def raise_key():
    raise KeyError("missing")


def raise_local():
    class Local(Exception):
        pass

    raise Local("nobody else knows my class")


def raise_two_arguments():
    raise Unfindable(1, 2)


def leave():
    os._exit(3)


def be_killed():
    os.kill(os.getpid(), signal.SIGKILL)


def sleep():
    time.sleep(60)


def give_lambda():
    return lambda: 0


def same(batch):
    return batch


def fail_to_start(worker_id):
    raise RuntimeError(f"worker {worker_id} does not start")


def values(loader):
    return [batch.tolist() for batch in loader]


def assert_no_children():
    gc.collect()
    assert multiprocessing.active_children() == []


@pytest.fixture(autouse=True)
def nobody_left():
    yield
    assert_no_children()


@pytest.mark.parametrize("context", [None, "spawn"])
def test_same_batches_as_without_workers(context):
    expected = values(DataLoader(Numbers(), batch_size=5))
    assert values(DataLoader(Numbers(), batch_size=5, num_workers=2, multiprocessing_context=context)) == expected


def test_large_batches_travel_while_the_main_process_is_busy():
    big = DataLoader(torch.arange(8.0).reshape(8, 1).expand(8, 50000).contiguous(), num_workers=2, prefetch_factor=4)
    assert [batch[0, 0].item() for batch in big] == list(range(8))


def test_streams_of_different_lengths():
    expected = [[0, 1], [100, 101], [2], [102, 103], [104]]
    assert values(DataLoader(Shard(), batch_size=2, num_workers=2)) == expected


@pytest.mark.parametrize("dataset", [Numbers(), Shard()])
def test_persistent_workers_start_over(dataset):
    loader = DataLoader(dataset, batch_size=2, num_workers=2, persistent_workers=True)
    first = values(loader)
    workers = {child.pid for child in multiprocessing.active_children()}
    for batch in loader:
        # An epoch that is left in the middle does not leak into the next.
        assert batch.tolist() == first[0]
        break
    assert values(loader) == first
    assert {child.pid for child in multiprocessing.active_children()} == workers
    del loader


def test_any_order_gives_everything_once():
    loader = DataLoader(Numbers(), batch_size=2, num_workers=2, in_order=False)
    assert sorted(values(loader)) == values(DataLoader(Numbers(), batch_size=2))


def test_seeds_of_workers():
    torch.manual_seed(3)
    base = torch.empty((), dtype=torch.int64).random_().item()
    torch.manual_seed(3)
    found = list(DataLoader(Seeds(), batch_size=None, num_workers=2))
    assert [sample[:4] for sample in found] == [[0, 2, base, base], [1, 2, base + 1, base + 1]]
    assert [sample[4] for sample in found] == [random.Random(base).random(), random.Random(base + 1).random()]
    assert found[0][5] != found[1][5]


@pytest.mark.parametrize(("happens", "error", "words"), [
    (raise_value, ValueError, "ValueError: bad sample"),
    (raise_key, KeyError, "KeyError: 'missing'"),
    (raise_local, RuntimeError, "nobody else knows my class"),
    (raise_two_arguments, RuntimeError, "Unfindable: (1, 2)"),
])
def test_errors_arrive_with_their_traceback(happens, error, words):
    with pytest.raises(error) as raised:
        list(DataLoader(Numbers(happens), batch_size=2, num_workers=2))
    text = str(raised.value)
    assert text.startswith("Caught ")
    assert "in DataLoader worker process 0.\nOriginal Traceback (most recent call last):" in text
    assert words in text
    assert f"in {happens.__name__}" in text
    del raised


def test_what_cannot_be_sent_is_an_error_not_a_hang():
    with pytest.raises(Exception, match="in DataLoader worker process 0"):
        list(DataLoader(Numbers(give_lambda), batch_size=2, num_workers=2, collate_fn=same))


def test_a_worker_that_does_not_start():
    with pytest.raises(RuntimeError, match="worker 0 does not start"):
        list(DataLoader(Numbers(), num_workers=2, worker_init_fn=fail_to_start))


@pytest.mark.parametrize("happens", [leave, be_killed])
def test_a_dead_worker_is_an_error(happens):
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly"):
        list(DataLoader(Numbers(happens), batch_size=2, num_workers=2))


def test_a_slow_worker_is_an_error_after_the_timeout(monkeypatch):
    monkeypatch.setattr("mindtorch_v2.utils.data._multiprocess.PATIENCE", 0.2)
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0\.5 seconds"):
        list(DataLoader(Numbers(sleep), batch_size=2, num_workers=2, timeout=0.5))


def test_a_dropped_iterator_takes_its_workers_along():
    iterator = iter(DataLoader(Numbers(), num_workers=2))
    next(iterator)
    assert len(multiprocessing.active_children()) == 2
    del iterator
    assert_no_children()


def test_the_main_process_has_the_scope_and_the_worker_the_loading():
    with torch.profiler.profile() as profile:
        values(DataLoader(Numbers(size=4), batch_size=2, num_workers=1))
    names = [event.name for event in profile.events() if event.pid == os.getpid()]
    assert names.count("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__") == 3
    assert "aten::stack" not in names


PROGRAM = """
    import os, sys, time
    import mindtorch_v2 as torch
    from mindtorch_v2.utils.data import DataLoader

    class Slow(torch.utils.data.Dataset):
        def __len__(self):
            return 1000
        def __getitem__(self, index):
            time.sleep(0.01)
            return index

    if __name__ == "__main__":
        iterator = iter(DataLoader(Slow(), num_workers=2))
        next(iterator)
        print(*[worker.process.pid for worker in iterator._workers], flush=True)
        for _ in iterator:
            pass
"""


def gone(pid):
    """Whether a process has ended; one that waits to be collected by its new parent has."""
    try:
        with open(f"/proc/{pid}/stat") as status:
            return status.read().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks at processes through /proc")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL, signal.SIGTERM])
def test_no_orphans_when_the_main_process_ends(tmp_path, how):
    place = tmp_path / "program.py"
    place.write_text(textwrap.dedent(PROGRAM))
    main = subprocess.Popen([sys.executable, str(place)], env={**os.environ, "PYTHONPATH": SOURCE},
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                            # Tests that run in the background ignore interrupts, and so would what they start.
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    workers = [int(pid) for pid in main.stdout.readline().split()]
    assert len(workers) == 2
    if how == signal.SIGINT:
        # Ctrl-C goes to the whole foreground group.
        os.killpg(main.pid, how)
    else:
        main.send_signal(how)
    errors = main.communicate(timeout=20)[1]
    if how == signal.SIGINT:
        assert errors.count("KeyboardInterrupt") == 1, errors
    deadline = time.monotonic() + 10
    while not all(map(gone, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert all(map(gone, workers))
