"""Pipes that shuffle, group and divide streams, and what a loader tells them: orders as PyTorch's for the same seed."""

import warnings

import pytest
import torch as pytorch
import torch.utils.data.datapipes.iter.sharding
import torch.utils.data.graph_settings

import mindtorch_v2
import mindtorch_v2.utils.data.datapipes.iter.sharding
import mindtorch_v2.utils.data.graph_settings

pytestmark = pytest.mark.filterwarnings("ignore:.*not supported by pickle:UserWarning")

PROGRAMS = """
list(W().shuffle())
[list(shuffler) for shuffler in [W().shuffle(buffer_size=3)] for _ in range(2)]
list(W().shuffle(buffer_size=4).set_seed(5)), torch.rand(1).item()
list(W().shuffle().set_shuffle(False))
list(Wrapper([[1, 2], [3, 4]]).shuffle(unbatch_level=1).set_seed(1))
W().shuffle(buffer_size=0)
len(W().shuffle())
list(Table(list("abcdef")).shuffle().set_seed(2))
list(Table({"a": 1, "b": 2, "c": 3}).shuffle(indices=["a", "b", "c"]))
list(Table(list("abcdef")).shuffle().set_shuffle(False))
list(W().groupby(key))
list(W().groupby(key, group_size=2))
list(W().groupby(key, buffer_size=4))
list(W().groupby(key, buffer_size=4, group_size=3, guaranteed_group_size=2))
list(W().groupby(key, buffer_size=3, group_size=3, guaranteed_group_size=2))
list(W().groupby(key, buffer_size=3, group_size=3, guaranteed_group_size=2, drop_remaining=True))
W().groupby(key, buffer_size=4, group_size=5)
W().groupby(key, guaranteed_group_size=5)
len(W().groupby(key))
list(pipes.Sampler(W()))
list(pipes.Sampler(W(), sampler=data.RandomSampler, sampler_kwargs={"replacement": True}))
share((3, 1))
share((3, 3))
share((2, 1, 2), (3, 1, 3))
share((2, 1, 3), (3, 1, 2))
share((2, 1), (3, 1, 2))
share((2, 1, 2), (3, 1))
list(settings.apply_sharding(W().map(str).sharding_filter().map(int), 3, 1))
list(settings.apply_sharding(W().sharding_filter().sharding_filter(), 3, 1))
list(settings.apply_sharding(zipped(), 2, 1))
list(settings.apply_shuffle_settings(W().shuffle().map(str), False))
list(settings.apply_shuffle_settings(W().map(str), True))
list(settings.apply_random_seed(W().shuffle().map(str).shuffle(), torch.Generator().manual_seed(1)))
load(W().shuffle(), batch_size=4)
load(W().shuffle(), batch_size=4, shuffle=True)
load(W().shuffle(), batch_size=4, shuffle=False)
load(W(), batch_size=4, shuffle=True)
load(W().shuffle(), batch_size=4, generator=torch.Generator().manual_seed(9))
load(W(12).shuffle().sharding_filter(), batch_size=3, num_workers=2, persistent_workers=True)
load(Table(range(6)).shuffle(), batch_size=4)
""".strip().splitlines()


def answer(torch, program):
    """What a program gives on one runtime, or the class of its error."""
    data, settings = torch.utils.data, torch.utils.data.graph_settings
    pipes, priorities = data.datapipes.iter, data.datapipes.iter.sharding.SHARDING_PRIORITIES

    def wrapped(n=10):
        return pipes.IterableWrapper(range(n))

    def share(*applied):
        pipe = wrapped().sharding_filter()
        for count, place, *group in applied:
            pipe.apply_sharding(count, place, *map(priorities, group))
        return list(pipe), len(pipe)

    def zipped():
        first, second = wrapped().fork(2)
        return first.sharding_filter().zip(second.sharding_filter())

    def load(pipe, **options):
        loader = data.DataLoader(pipe, **options)
        return [[batch.tolist() for batch in loader] for _ in range(2)], torch.rand(1).item()

    torch.manual_seed(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return eval(program, {
                "torch": torch, "W": wrapped, "Wrapper": pipes.IterableWrapper, "pipes": pipes, "data": data,
                "Table": data.datapipes.map.SequenceWrapper, "key": lambda x: x % 3, "share": share,
                "zipped": zipped, "load": load, "settings": settings})
        except Exception as error:
            return type(error).__name__


@pytest.mark.parametrize("program", PROGRAMS)
def test_order_groups_and_shares(program):
    assert answer(mindtorch_v2, program) == answer(pytorch, program)


def test_a_group_has_its_own_key():
    """PyTorch gives a group that leaves a full buffer the key of the sample that filled it."""
    pipe = mindtorch_v2.utils.data.datapipes.iter.IterableWrapper(range(10))
    groups = list(pipe.groupby(lambda x: x % 3, buffer_size=4, keep_key=True))
    assert all(key == sample % 3 for key, samples in groups for sample in samples)
