"""The same samples in the same order as PyTorch, and the same random numbers afterwards."""

from __future__ import annotations

import random

import numpy as np
import pytest
from harness import ours, theirs

import mindtorch_v2.utils.data as our_data

their_data = pytest.importorskip("torch.utils.data")
BOTH = [(ours, our_data), (theirs, their_data)]
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create", "ignore:Length of split",
                                        "ignore:This process:DeprecationWarning")


def plain(value):
    """Tensors as lists, so that the two sides can be compared."""
    if isinstance(value, (ours.Tensor, theirs.Tensor)):
        return str(value.dtype), value.tolist()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def same(function):
    """Call `function(torch, data)` for both after seeding; results and the state of all streams must agree."""
    found = []
    for torch, data in BOTH:
        torch.manual_seed(11)
        random.seed(11)
        np.random.seed(11)
        found.append((plain(function(torch, data)), torch.rand(3).tolist(), random.random(), np.random.rand()))
    assert found[0] == found[1]


@pytest.mark.parametrize("make", [
    lambda data: data.RandomSampler(range(10)),
    lambda data: data.RandomSampler(range(10), num_samples=25),
    lambda data: data.RandomSampler(range(10), num_samples=3),
    lambda data: data.RandomSampler(range(10), replacement=True, num_samples=70),
    lambda data: data.RandomSampler(range(10), replacement=True, num_samples=64),
    lambda data: data.SubsetRandomSampler([5, 3, 8, 1]),
    lambda data: data.WeightedRandomSampler([0.1, 0.5, 2.0, 0.3], 20),
    lambda data: data.WeightedRandomSampler([0.1, 0.5, 2.0, 0.3], 3, replacement=False),
    lambda data: data.DistributedSampler(range(10), 3, 1, seed=4),
    lambda data: data.DistributedSampler(range(2), 5, 4),
    lambda data: data.DistributedSampler(range(10), 4, 3, drop_last=True),
    lambda data: data.BatchSampler(data.RandomSampler(range(10)), 4, True),
])
def test_samplers(make):
    same(lambda torch, data: [list(make(data)), list(make(data)), len(make(data))])


@pytest.mark.parametrize("sampler", ["RandomSampler", "SubsetRandomSampler"])
def test_a_given_generator_moves_equally_far(sampler):
    def run(torch, data):
        generator = torch.Generator().manual_seed(5)
        made = getattr(data, sampler)(range(6), generator=generator)
        return [list(made), list(made), torch.rand(2, generator=generator)]

    same(run)


@pytest.mark.parametrize("lengths", [[3, 7], [0.25, 0.75], [0.33, 0.33, 0.34], [0.9, 0.1, 0.0]])
def test_random_split(lengths):
    same(lambda torch, data: [list(part.indices) for part in data.random_split(range(10), lengths)])


def dataset(torch, data):
    class Samples(data.Dataset):
        def __len__(self):
            return 11

        def __getitem__(self, index):
            return {"x": torch.rand(2) + index, "y": index, "z": (float(np.random.rand()), random.random())}

    return Samples()


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("options", [
    {"batch_size": 3, "shuffle": True}, {"batch_size": 4, "drop_last": True}, {"batch_size": None, "shuffle": True}, {},
])
def test_loader(options, workers):
    same(lambda torch, data: [list(data.DataLoader(dataset(torch, data), num_workers=workers, **options))
                              for _ in range(2)])


@pytest.mark.parametrize("workers", [0, 2])
def test_loader_with_a_generator(workers):
    def run(torch, data):
        generator = torch.Generator().manual_seed(2)
        loader = data.DataLoader(dataset(torch, data), shuffle=True, generator=generator, num_workers=workers)
        return [list(loader), torch.rand(2, generator=generator)]

    same(run)


@pytest.mark.parametrize("workers", [0, 2])
def test_numbers_drawn_between_batches(workers):
    def run(torch, data):
        loader = data.DataLoader(dataset(torch, data), batch_size=4, num_workers=workers,
                                 sampler=data.SubsetRandomSampler(range(11)))
        return [(batch["y"], torch.rand(1)) for batch in loader]

    same(run)


@pytest.mark.parametrize("persistent", [False, True])
def test_streams_in_workers(persistent):
    def run(torch, data):
        class Stream(data.IterableDataset):
            def __iter__(self):
                info = data.get_worker_info()
                for i in range(3 + 3 * info.id):
                    yield 100 * info.id + i, torch.rand(1)

        loader = data.DataLoader(Stream(), batch_size=2, num_workers=2, persistent_workers=persistent)
        return [list(loader), list(loader)]

    same(run)


@pytest.mark.parametrize("batch", [
    [1, 2], [1.5, 2.5], [True, False], ["a", "b"], [b"a", b"b"], [(1, "a"), (2, "b")], [[1, 2.0], [3, 4.0]],
    [{"a": 1, "b": [1.0]}, {"a": 2, "b": [2.0]}], [np.float32(1), np.float32(2)], [np.int16(1), np.int16(2)],
    [np.ones((2, 2)), np.zeros((2, 2))], [np.array(1.0), np.array(2.0)], [(), ()],
])
def test_collate_and_convert(batch):
    same(lambda torch, data: data.default_collate(batch))
    same(lambda torch, data: data.default_convert(batch))


@pytest.mark.parametrize("batch", [[None], [object], [[1], [1, 2]], [], [np.array(["a"])]])
def test_what_cannot_be_collated(batch):
    errors = []
    for _, data in BOTH:
        with pytest.raises((TypeError, RuntimeError, IndexError)) as raised:
            data.default_collate(batch)
        errors.append((type(raised.value), str(raised.value)))
    assert errors[0] == errors[1]
