"""Pipes of samples against PyTorch's: what they give, what they refuse, and what a profiler sees of them."""

from __future__ import annotations

import importlib
from collections import Counter
from typing import Any

import pytest
from harness import ours, theirs

pytestmark = [pytest.mark.filterwarnings("ignore:.*not supported by pickle:UserWarning"),
              pytest.mark.filterwarnings("ignore:Some child DataPipes are not exhausted:UserWarning")]


@pytest.fixture(params=[ours, theirs], ids=["ours", "pytorch"])
def pipes(request: pytest.FixtureRequest) -> Any:
    return importlib.import_module(f"{request.param.__name__}.utils.data.datapipes")


def odd(value: int) -> bool:
    return value % 2 == 1


@pytest.mark.parametrize(("make", "result"), [
    (lambda dp: dp.iter.IterableWrapper(range(4)).map(str), ["0", "1", "2", "3"]),
    (lambda dp: dp.iter.IterableWrapper(range(5)).filter(odd), [1, 3]),
    (lambda dp: dp.iter.IterableWrapper(range(5)).batch(2), [[0, 1], [2, 3], [4]]),
    (lambda dp: dp.iter.IterableWrapper(range(5)).batch(2, drop_last=True), [[0, 1], [2, 3]]),
    (lambda dp: dp.iter.IterableWrapper([[[1, 2]], [[3]]]).unbatch(), [[1, 2], [3]]),
    (lambda dp: dp.iter.IterableWrapper([[[1, 2]], [[3]]]).unbatch(-1), [1, 2, 3]),
    (lambda dp: dp.iter.IterableWrapper([1]).concat(dp.iter.IterableWrapper([2, 3])), [1, 2, 3]),
    (lambda dp: dp.iter.IterableWrapper([1, 2]).zip(dp.iter.IterableWrapper([3, 4, 5])), [(1, 3), (2, 4)]),
    (lambda dp: dp.iter.IterableWrapper([1, 2]).mux(dp.iter.IterableWrapper([3, 4, 5])), [1, 3, 2, 4]),
    (lambda dp: dp.iter.IterableWrapper([(1, 2)]).map(float, input_col=1), [(1, 2.0)]),
    (lambda dp: dp.iter.IterableWrapper([(1, 2)]).map(max, input_col=[0, 1]), [(2,)]),
    (lambda dp: dp.iter.IterableWrapper([(1, 2)]).map(str, input_col=1, output_col=-1), [(1, 2, "2")]),
    (lambda dp: dp.iter.IterableWrapper([{"a": 1}]).map(str, input_col="a", output_col="b"), [{"a": 1, "b": "1"}]),
    (lambda dp: dp.iter.IterableWrapper(range(4)).fork(2)[1], [0, 1, 2, 3]),
    (lambda dp: dp.iter.IterableWrapper(range(4)).demux(2, odd)[1], [1, 3]),
    (lambda dp: dp.map.SequenceWrapper(range(5)).batch(2), [[0, 1], [2, 3], [4]]),
    (lambda dp: dp.map.SequenceWrapper([1, 2]).map(str), ["1", "2"]),
    (lambda dp: dp.map.SequenceWrapper([1]).concat(dp.map.SequenceWrapper([2, 3])), [1, 2, 3]),
    (lambda dp: dp.map.SequenceWrapper([1, 2]).zip(dp.map.SequenceWrapper([3, 4])), [(1, 3), (2, 4)]),
])
def test_what_pipes_give(pipes: Any, make: Any, result: list[Any]) -> None:
    made = make(pipes)
    assert list(made) == result
    assert list(made) == result  # as often as asked


@pytest.mark.parametrize(("make", "length"), [
    (lambda dp: dp.iter.IterableWrapper(range(5)).batch(2), 3),
    (lambda dp: dp.iter.IterableWrapper(range(5)).mux(dp.iter.IterableWrapper(range(3))), 6),
    (lambda dp: dp.iter.IterableWrapper(range(5)).fork(2)[0], 5),
    (lambda dp: dp.map.SequenceWrapper(range(5)).batch(2, drop_last=True), 2),
])
def test_lengths(pipes: Any, make: Any, length: int) -> None:
    assert len(make(pipes)) == length


@pytest.mark.parametrize(("make", "error"), [
    (lambda dp: dp.iter.IterableWrapper([1]).map(1), TypeError),
    (lambda dp: dp.iter.IterableWrapper([1]).map(str, output_col=1), ValueError),
    (lambda dp: dp.iter.IterableWrapper([1]).batch(0), AssertionError),
    (lambda dp: dp.iter.IterableWrapper([1]).concat(3), TypeError),
    (lambda dp: dp.iter.IterableWrapper([1]).fork(0), ValueError),
    (lambda dp: list(dp.iter.IterableWrapper([1]).filter(str)), ValueError),
    (lambda dp: list(dp.iter.IterableWrapper([1]).unbatch()), IndexError),
    (lambda dp: list(dp.iter.IterableWrapper(range(9)).fork(2, buffer_size=3)[0]), BufferError),
    (lambda dp: list(dp.iter.IterableWrapper([5]).demux(2, abs)[0]), ValueError),
    (lambda dp: dp.iter.IterableWrapper([1]).nothing_like_it, AttributeError),
    (lambda dp: len(dp.iter.IterableWrapper(iter([1]))), TypeError),
    (lambda dp: dp.map.SequenceWrapper([1]).zip(dp.map.SequenceWrapper([]))[0], IndexError),
])
def test_what_pipes_refuse(pipes: Any, make: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        make(pipes)


def test_only_the_latest_iterator_is_valid(pipes: Any) -> None:
    pipe = pipes.iter.IterableWrapper(range(3))
    first, second = iter(pipe), iter(pipe)
    assert (next(first), next(second)) == (0, 0)
    with pytest.raises(RuntimeError, match="invalidated"):
        next(first)
    one, other = pipes.iter.IterableWrapper(range(3)).fork(2)
    reading = iter(other)
    assert (next(iter(one)), next(reading)) == (0, 0)
    assert next(iter(one)) == 0
    with pytest.raises(RuntimeError, match="invalidated"):
        next(reading)


def test_pipes_of_a_program(pipes: Any) -> None:
    class Counting(pipes.datapipe.IterDataPipe):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            self.at = 0

        def __iter__(self) -> Any:
            return self

        def __next__(self) -> int:
            self.at += 1
            if self.at > 3:
                self.at = 0
                raise StopIteration
            return self.at

        def half(self) -> float:
            return self.at / 2

    class Around(pipes.datapipe.IterDataPipe):  # type: ignore[misc, name-defined]
        def __init__(self, datapipe: Any) -> None:
            self.datapipe = datapipe

        def __iter__(self) -> Any:
            return iter(self.datapipe)

    inside = Counting()
    around = iter(Around(inside))
    assert next(around) == 1
    assert around.half() == 0.5
    assert list(Around(inside)) == [2, 3]


@pytest.mark.parametrize("torch", [ours, theirs], ids=["ours", "pytorch"])
def test_profiles_show_pipes(torch: Any) -> None:
    pipes = importlib.import_module(f"{torch.__name__}.utils.data.datapipes")
    with torch.profiler.profile() as prof:
        one, other = pipes.iter.IterableWrapper(range(2)).mux(pipes.iter.IterableWrapper(range(4, 6))).fork(2)
        assert list(one) == list(other) == [0, 4, 1, 5]
    found = Counter(event.name for event in prof.events())
    assert found["IterableWrapper(deepcopy=True, iterable=range(0, 2))"] == 3
    assert found["Multiplexer(datapipes=(IterableWrapper, IterableWrapper))"] == 5
    assert found["_ChildDataPipe(instance_id=1, main_datapipe=_Forker)"] == 5
    outer = next(event for event in prof.events() if event.name.startswith("Multiplexer"))
    assert outer.cpu_children[0].name.startswith("IterableWrapper")
