"""The life of a pipe beside PyTorch's: pickled in the middle, restored, counted, hooked, read from files."""

from __future__ import annotations

import copy
import importlib
import io
import pickle
from pathlib import Path
from typing import Any

import pytest
from harness import ours, theirs

pytestmark = [pytest.mark.filterwarnings("ignore:.*not supported by pickle:UserWarning"),
              pytest.mark.filterwarnings("ignore:Some child DataPipes are not exhausted:UserWarning")]


def of(module: Any, name: str) -> Any:
    return importlib.import_module(f"{module.__name__}.utils.data{name}")


def odd(value: int) -> bool:
    return value % 2 == 1


def agree(program: Any, *more: Any) -> None:
    found = []
    for module in (ours, theirs):
        try:
            found.append(program(module, *more))
        except Exception as error:
            found.append((type(error).__name__, str(error)))
    assert found[0] == found[1]


CHAINS = {
    "wrapper": lambda source: source, "map": lambda source: source.map(str), "batch": lambda source: source.batch(2),
    "filter": lambda source: source.filter(odd), "fork": lambda source: source.fork(2)[0],
    "demux": lambda source: source.demux(2, odd)[1], "concat": lambda source: source.concat(source.map(str)),
    "shuffle": lambda source: source.shuffle(), "share": lambda source: source.sharding_filter(),
}


@pytest.mark.parametrize("name", CHAINS)
def test_pickled_in_the_middle(name: str) -> None:
    def program(module: Any) -> Any:
        module.manual_seed(0)
        pipe = CHAINS[name](of(module, ".datapipes.iter").IterableWrapper(range(6)))
        running = iter(pipe)
        next(running)
        read = pickle.loads(pickle.dumps(pipe))
        counted = read._number_of_samples_yielded, copy.deepcopy(pipe)._number_of_samples_yielded
        return counted, sorted(map(str, read)), type(read).__name__, len(list(running))

    agree(program)


@pytest.mark.parametrize("steps", [0, 3, 6, 9])
def test_a_pipe_goes_on_where_it_was(steps: int) -> None:
    def program(module: Any) -> Any:
        pipe = of(module, ".datapipes.iter").IterableWrapper(range(6)).shuffle().map(str)
        seeds = module.Generator()
        seeds.manual_seed(3)
        restore = of(module, ".datapipes.utils.snapshot")._simple_graph_snapshot_restoration
        restore(pipe, steps, rng=seeds)
        state = pipe._snapshot_state.name
        rest = list(pipe)
        restore(pipe, 1)
        with pytest.raises(RuntimeError, match="Snapshot restoration cannot be applied"):
            restore(pipe, 1)
        return state, rest, pipe._number_of_samples_yielded

    agree(program)


def test_hooks_decide_how_pipes_are_pickled() -> None:
    def program(module: Any) -> Any:
        kind, pipe = of(module, "").IterDataPipe, of(module, ".datapipes.iter").IterableWrapper([1, 2])
        try:
            kind.set_getstate_hook(lambda state: {**state, "iterable": [7]})
            with pytest.raises(RuntimeError, match="Attempt to override existing getstate_hook"):
                kind.set_getstate_hook(lambda state: state)
            kept = list(pickle.loads(pickle.dumps(pipe)))
            kind.set_reduce_ex_hook(lambda one: (int, (5,)))
            return kept, pickle.loads(pickle.dumps(pipe))
        finally:
            kind.set_getstate_hook(None)
            kind.set_reduce_ex_hook(None)

    agree(program)


@pytest.mark.parametrize(("function", "columns"), [
    (lambda x, y: x, [1, 0]), (lambda x, y: x, 1), (lambda x: x, [0, 1]), (lambda *x: x[0], [0, 1]),
    (lambda x, y=1: x, 1), (lambda x, *, k: x, None), (lambda: 1, None), (3, None), (len, None)])
def test_functions_fit_their_columns(function: Any, columns: Any) -> None:
    agree(lambda module: list(of(module, ".datapipes.iter").IterableWrapper([(1, 2)]).map(function, columns)))


def test_copies_of_forked_samples() -> None:
    def program(module: Any, how: Any) -> Any:
        first, second = of(module, ".datapipes.iter").IterableWrapper([[[1]]]).fork(2, copy=how)
        (one,), (other,) = first, second
        return one, one is other, one[0] is other[0]

    for how in (None, "shallow", "deep", "x"):
        agree(program, how)


def test_pipes_without_an_order() -> None:
    def program(module: Any) -> Any:
        data = of(module, "")

        class Drawn(data.IterDataPipe):  # type: ignore[misc]
            def __init__(self, many: int) -> None:
                pass

            def __iter__(self) -> Any:
                yield 1

        some, always = data.non_deterministic(lambda many: many > 1)(Drawn), data.non_deterministic(Drawn)
        names = [type(some(5)).__name__, type(always(1)).__name__]
        with data.guaranteed_datapipes_determinism():
            names.append(type(some(1)).__name__)
            for refused in (lambda: some(5), lambda: always(1)):
                with pytest.raises(TypeError, match="is non-deterministic"):
                    refused()
        return names

    agree(program)


def test_files(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    for name, text in {"b.txt": "long text", "a.json": "[1]", "below/c.txt": "x"}.items():
        (tmp_path / name).write_text(text)

    def program(module: Any) -> Any:
        pipes = of(module, ".datapipes.iter")
        handlers = of(module, ".datapipes.utils.decoder").basichandlers
        listed = [list(pipes.FileLister(str(tmp_path), mask, recursive=deep))
                  for mask in ("", "*.txt", ["*.json", "c*"]) for deep in (False, True)]
        opened = pipes.FileOpener(pipes.FileLister(str(tmp_path)), mode="b")
        with pytest.warns(FutureWarning, match="RoutedDecoder"):
            decoded = opened.routed_decode(handlers)
        return listed, list(decoded), list(opened.read_from_stream(4)), [stream.read() for _, stream in opened]

    agree(program)


def test_streams_close_with_their_last_part() -> None:
    def program(module: Any) -> Any:
        wrapper = of(module, ".datapipes.utils.common").StreamWrapper
        whole = wrapper(io.BytesIO(b"abc"))
        part = wrapper(io.BytesIO(b"b"), parent_stream=whole, name="part")
        whole.autoclose()
        before = whole.closed
        part.close()
        return before, whole.closed, whole.child_counter, repr(part)[:20], wrapper(io.BytesIO(b"a\nb")).readlines()

    agree(program)
