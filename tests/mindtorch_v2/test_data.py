"""Datasets, samplers, collating and loading in one process."""

from __future__ import annotations

import collections
import gc
import pickle
import weakref

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.utils import _pytree as pytree
from mindtorch_v2.utils import benchmark, dlpack, hooks
from mindtorch_v2.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    default_convert,
    get_worker_info,
    random_split,
)


class Count(IterableDataset):
    def __init__(self, size, told=None):
        self.size = size
        self.told = size if told is None else told

    def __iter__(self):
        return iter(range(self.size))

    def __len__(self):
        return self.told


class Batched(Dataset):
    """Answers for a whole batch at once."""

    def __len__(self):
        return 6

    def __getitem__(self, index):
        raise AssertionError("one sample at a time")

    def __getitems__(self, indices):
        return [10 * i for i in indices]


def test_datasets_combine():
    numbers, letters = list(range(3)), "abc"
    assert [ConcatDataset([numbers, letters])[i] for i in range(6)] == [0, 1, 2, "a", "b", "c"]
    assert ConcatDataset([numbers, letters])[-1] == "c"
    assert StackDataset(numbers, letters)[1] == (1, "b")
    assert StackDataset(n=numbers, l=letters).__getitems__([0, 2]) == [{"n": 0, "l": "a"}, {"n": 2, "l": "c"}]
    assert list(ChainDataset([Count(2), Count(3)])) == [0, 1, 0, 1, 2]
    assert len(Count(2) + Count(3)) == 5
    subset = Subset(Batched(), [5, 3])
    assert subset.__getitems__([1, 0]) == [30, 50]
    assert len(subset) == 2
    assert TensorDataset(torch.arange(3), torch.arange(3) * 2)[2] == (2, 4)
    assert isinstance(TensorDataset(torch.arange(3)) + TensorDataset(torch.arange(2)), ConcatDataset)


def test_random_split_covers_everything_once():
    parts = random_split(range(10), [0.5, 0.3, 0.2], generator=torch.Generator().manual_seed(0))
    assert [len(p) for p in parts] == [5, 3, 2]
    assert sorted(x for p in parts for x in p) == list(range(10))


@pytest.mark.parametrize(("make", "error", "words"), [
    (lambda: random_split([1, 2, 3], [1, 1]), ValueError, "Sum of input lengths"),
    (lambda: random_split([1, 2, 3], [1.5, -0.5]), ValueError, "Fraction at index 0"),
    (lambda: ConcatDataset([]), AssertionError, "empty iterable"),
    (lambda: ConcatDataset([Count(1)]), AssertionError, "does not support IterableDataset"),
    (lambda: ConcatDataset([[1, 2], [3]])[-4], ValueError, "absolute value of index"),
    (lambda: list(ChainDataset([[1]])), AssertionError, "only supports IterableDataset"),
    (lambda: StackDataset(), ValueError, "At least one dataset"),
    (lambda: StackDataset([1], [1, 2]), ValueError, "Size mismatch"),
    (lambda: TensorDataset(torch.ones(2), torch.ones(3)), AssertionError, "Size mismatch"),
    (lambda: Dataset()[0], NotImplementedError, "__getitem__"),
    (lambda: RandomSampler([]), ValueError, "num_samples=0"),
    (lambda: RandomSampler([1], replacement=1), TypeError, "replacement"),
    (lambda: BatchSampler([1], 0, False), ValueError, "batch_size=0"),
    (lambda: BatchSampler([1], 1, 3), ValueError, "drop_last=3"),
    (lambda: WeightedRandomSampler([[1.0]], 1), ValueError, "1d sequence"),
    (lambda: DistributedSampler([1, 2], 2, 2), ValueError, "Invalid rank 2"),
    (lambda: DataLoader([1], num_workers=-1), ValueError, "non-negative"),
    (lambda: DataLoader([1], prefetch_factor=2), ValueError, "prefetch_factor"),
    (lambda: list(DataLoader([1], num_workers=1, prefetch_factor=0)), AssertionError, "prefetch_factor"),
    (lambda: DataLoader([1], persistent_workers=True), ValueError, "persistent_workers"),
    (lambda: DataLoader([1], sampler=[0], shuffle=True), ValueError, "mutually exclusive"),
    (lambda: DataLoader([1], batch_sampler=[[0]], batch_size=2), ValueError, "mutually exclusive"),
    (lambda: DataLoader([1], batch_size=None, drop_last=True), ValueError, "disables auto-batching"),
    (lambda: DataLoader(Count(1), shuffle=True), ValueError, "shuffle=True"),
    (lambda: DataLoader([1], multiprocessing_context="fork"), ValueError, "num_workers=0"),
    (lambda: setattr(DataLoader([1]), "batch_size", 2), ValueError, "should not be set after"),
    (lambda: default_collate([None]), TypeError, "NoneType"),
    (lambda: default_collate([[1, 2], [3]]), RuntimeError, "equal size"),
    (lambda: default_collate([np.array(["a"])]), TypeError, "<U1"),
])
def test_refusals(make, error, words):
    with pytest.raises(error) as raised:
        make()
    assert words in str(raised.value)


def test_samplers():
    assert list(SequentialSampler("abc")) == [0, 1, 2]
    assert sorted(RandomSampler(range(5), num_samples=10)) == sorted([*range(5)] * 2)
    assert sorted(SubsetRandomSampler([4, 2, 9])) == [2, 4, 9]
    assert set(WeightedRandomSampler([0.0, 1.0, 0.0], 5)) == {1}
    assert list(BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
    assert (len(BatchSampler(range(5), 2, True)), len(BatchSampler(range(5), 2, False))) == (2, 3)
    shares = [list(DistributedSampler(range(7), 3, rank, shuffle=False)) for rank in range(3)]
    assert shares == [[0, 3, 6], [1, 4, 0], [2, 5, 1]]
    assert [len(list(DistributedSampler(range(7), 3, rank, drop_last=True))) for rank in range(3)] == [2, 2, 2]


def test_a_sampler_asks_the_process_group():
    # Without MPI there is none; with it, none was made.
    with pytest.raises((RuntimeError, ValueError), match=r"Requires distributed package|has not been initialized"):
        DistributedSampler([1, 2])


def test_a_distributed_epoch_changes_the_order():
    sampler = DistributedSampler(range(50), 1, 0)
    first = list(sampler)
    assert list(sampler) == first
    sampler.set_epoch(1)
    assert list(sampler) != first


Pair = collections.namedtuple("Pair", "x y")


def test_collate():
    assert default_collate([1.0, 2.0]).dtype is torch.float64
    assert default_collate([True, False]).dtype is torch.bool
    assert default_collate([np.float32(1), np.float32(2)]).dtype is torch.float32
    assert default_collate([np.ones(2), np.ones(2)]).shape == (2, 2)
    assert default_collate(["a", "b"]) == ["a", "b"]
    assert default_collate([{"a": 1}, {"a": 2}])["a"].tolist() == [1, 2]
    made = default_collate([Pair(1, 2), Pair(3, 4)])
    assert isinstance(made, Pair)
    assert made.y.tolist() == [2, 4]
    assert default_convert({"a": np.ones(1), "b": "text"})["a"].dtype is torch.float64


def test_loader_in_one_process():
    assert [b.tolist() for b in DataLoader(range(5), batch_size=2, drop_last=True)] == [[0, 1], [2, 3]]
    assert list(DataLoader(range(3), batch_size=None)) == [0, 1, 2]
    assert [b.tolist() for b in DataLoader(Batched(), batch_size=4)] == [[0, 10, 20, 30], [40, 50]]
    assert [b.tolist() for b in DataLoader(range(4), batch_sampler=[[3], [0, 1]])] == [[3], [0, 1]]
    assert [b.tolist() for b in DataLoader(Count(5), batch_size=2)] == [[0, 1], [2, 3], [4]]
    assert [b.tolist() for b in DataLoader(Count(5), batch_size=2, drop_last=True)] == [[0, 1], [2, 3]]
    assert len(DataLoader(Count(5), batch_size=2)) == 3
    assert get_worker_info() is None


def test_a_stream_that_is_longer_than_it_said():
    loader = DataLoader(Count(3, told=2), batch_size=None)
    assert len(loader) == 2
    with pytest.warns(UserWarning, match="was reported to be 2"):
        assert list(loader) == [0, 1, 2]


def test_a_generator_decides_the_order_alone():
    def order():
        return [int(x) for x in DataLoader(range(20), shuffle=True, generator=torch.Generator().manual_seed(1))]

    torch.manual_seed(0)
    first, number = order(), torch.rand(1).item()
    torch.manual_seed(0)
    assert torch.rand(1).item() == number
    assert order() == first != list(range(20))


def test_pin_memory_is_accepted_with_a_warning():
    with pytest.warns(UserWarning, match="no accelerator is found"):
        assert [int(b) for b in DataLoader(range(2), pin_memory=True)] == [0, 1]


def test_iteration_shows_in_a_profile():
    with torch.profiler.profile() as profile:
        assert len(list(DataLoader(range(3)))) == 3
    names = [event.name for event in profile.events()]
    # One more than there are batches: the last call finds that there are none.
    assert names.count("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__") == 4


def test_an_iterator_cannot_be_pickled():
    with pytest.raises(NotImplementedError, match="cannot be pickled"):
        pickle.dumps(iter(DataLoader([1])))


# -- the rest of torch.utils -----------------------------------------------------------------------------------------


def test_pytree():
    tree = {"a": [1, (2,)], "b": collections.OrderedDict(c=3), "d": Pair(4, None)}
    leaves, spec = pytree.tree_flatten(tree)
    assert leaves == [1, 2, 3, 4, None]
    assert pytree.tree_unflatten(leaves, spec) == tree
    assert pytree.tree_map(lambda x, y: x + y, [1, (2,)], [10, (20,)]) == [11, (22,)]
    assert pytree.tree_map_only(int, lambda x: -x, [1, "a"]) == [-1, "a"]
    assert pytree.tree_structure([1, 2]) == pytree.tree_structure([3, 4]) != pytree.tree_structure((1, 2))
    with pytest.raises(ValueError, match="leaves"):
        pytree.tree_unflatten([1], spec)
    with pytest.raises(ValueError, match="mismatch"):
        pytree.tree_map(lambda x, y: x, [1], (1,))


def test_removable_handle():
    table, extra = {}, {}
    with hooks.RemovableHandle(table, extra_dict=extra) as handle:
        table[handle.id] = extra[handle.id] = 1
    assert (table, extra) == ({}, {})


def test_dlpack_shares_memory():
    array = np.from_dlpack(torch.ones(2)._a)
    assert array.tolist() == [1, 1]
    parameter = torch.ones(1, requires_grad=True)
    assert dlpack.from_dlpack(dlpack.to_dlpack(parameter)).data_ptr() == parameter.data_ptr()
    with pytest.raises(BufferError):
        parameter.__dlpack__()


def test_timer_counts_what_it_ran():
    calls = []
    measured = benchmark.Timer("calls.append(1)", globals={"calls": calls}).timeit(300)
    assert len(calls) == 300 + 3
    assert measured.number_per_run == 300
    assert measured.median > 0
    assert sum(benchmark.Timer("1 + 1").blocked_autorange(min_run_time=0.01).raw_times) >= 0.01
    with pytest.raises(NotImplementedError):
        benchmark.Timer(language="c++")


@pytest.mark.parametrize("use", [
    pytree.tree_flatten, pytree.tree_flatten_with_path, lambda tree: pytree.tree_map(lambda x: x, tree),
    lambda tree: pytree.tree_map_only(torch.Tensor, lambda x: x, tree),
    lambda tree: pytree.tree_map(lambda x, y: x, tree, tree),
    lambda tree: pytree.tree_map_with_path(lambda path, x: x, tree)])
def test_trees_do_not_keep_their_leaves(use):
    leaf = torch.ones(3)
    seen = weakref.ref(leaf)
    gc.disable()
    try:
        use({"a": [leaf, (leaf,)]})
        del leaf
        assert seen() is None
    finally:
        gc.enable()
