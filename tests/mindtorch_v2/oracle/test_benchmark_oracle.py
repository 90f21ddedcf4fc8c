"""`torch.utils.benchmark`: the same texts, tables and random inputs as PyTorch's."""

from __future__ import annotations

import importlib
import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from both import ours, outcome, theirs

from mindtorch_v2.utils import benchmark

BOTH = [importlib.import_module(f"{torch.__name__}.utils.benchmark") for torch in (ours, theirs)]


def same(program: Callable[[Any], Any]) -> None:
    """Compare what a program makes of both packages."""
    mine, other = (re.sub(r"0x[0-9a-f]+", "0x", repr(outcome(lambda made=made: program(made), 200))) for made in BOTH)
    assert mine.replace("mindtorch_v2", "torch") == other


def measurement(made: Any, rng: random.Random, **task: Any) -> Any:
    runs, base = rng.choice([1, 2, 3, 4, 5, 8, 20]), 10 ** rng.uniform(-8, 1)
    noise = rng.choice([0, 0.001, 0.02, 0.1, 0.5])
    given = {"label": rng.choice([None, "label"]), "description": rng.choice(["text", None]),
             "env": rng.choice([None, "there"]), **task}
    spec = made.TaskSpec(rng.choice(["x + y", "a\nb"]), rng.choice(["pass", "", "y = 1", "a\nb"]),
                         sub_label=rng.choice([None, "s", "ss"]), num_threads=rng.choice([1, 2]), **given)
    return made.Measurement(rng.choice([1, 10]), [base * (1 + noise * rng.random()) for _ in range(runs)], spec)


@pytest.mark.parametrize("seed", range(30))
def test_measurements(seed: int) -> None:
    def program(made: Any) -> Any:
        one = measurement(made, random.Random(seed))
        return (str(one), one.times, one.median, round(one.mean, 14), one.iqr, one.significant_figures,
                one.has_warnings, one.meets_confidence(), one.title, one.env, one.as_row_name, one.setup,
                outcome(lambda: one.nothing), one.task_spec.summarize(), made.select_unit(one.median),
                made.trim_sigfig(one.median, 2))

    same(program)


@pytest.mark.parametrize("seed", range(40))
def test_tables(seed: int) -> None:
    def program(made: Any) -> Any:
        rng = random.Random(seed)
        labels, envs = rng.choice([["l"], ["l", "m"], [None], ["wide " * 12]]), rng.choice([[None], ["e", "env"]])
        found = [measurement(made, rng, label=rng.choice(labels), env=rng.choice(envs),
                             description=rng.choice(["one", "two", "a long text"])) for _ in range(rng.randint(1, 9))]
        table = made.Compare(found)
        if rng.random() < 0.5:
            table.trim_significant_figures()
        if rng.random() < 0.5:
            table.highlight_warnings()
        if rng.random() < 0.6:
            table.colorize(rowwise=rng.random() < 0.5)
        return str(table), [str(one) for one in made.Measurement.merge(found)]

    same(program)


class Clock:
    """Stands for `timeit.Timer`: times come from a seed."""

    def __init__(self, stmt: str, setup: str, timer: Any, globals: Any) -> None:
        self.rng = np.random.RandomState(0)
        self.cost, self.noise = {"pass": (8e-9, 0.05), "call()": (2e-3, 0.05), "shaky()": (1e-4, 0.4)}[stmt]

    def timeit(self, number: int) -> float:
        mean = max(self.cost * number, 5e-9)
        return 2e-7 + mean + self.rng.normal(0, mean * self.noise)


@pytest.mark.parametrize("stmt", ["pass", "call()", "shaky()"])
@pytest.mark.parametrize("measure", [
    lambda timer: timer.timeit(10), lambda timer: timer.blocked_autorange(), lambda timer: timer.adaptive_autorange(),
    lambda timer: timer.adaptive_autorange(threshold=0.001, max_run_time=0.5),
    lambda timer: timer.blocked_autorange(min_run_time=2)])
def test_timers(stmt: str, measure: Any) -> None:
    def program(made: Any) -> Any:
        found = measure(type("Mocked", (made.Timer,), {"_timer_cls": Clock})(stmt))
        return str(found), found.number_per_run, [round(time, 12) for time in found.raw_times]

    same(program)


@pytest.mark.parametrize("use", [
    lambda made: made.Timer("x", language="cobol"), lambda made: made.Timer(3),
    lambda made: made.Timer("x", global_setup="y"), lambda made: made.Timer("unknown").timeit(1),
    lambda made: made.Timer("  x=1\n  y=2", setup="\n   z=1\n").timeit(1).task_spec.summarize(),
    lambda made: made.Timer().timeit(1).summarize(),
    lambda made: made.Timer("torch.ones(x)", globals={"x": made.CopyIfCallgrind(1)}).timeit(1).stmt,
    lambda made: made.Timer().autorange(), lambda made: made.Timer().repeat(), lambda made: made.Compare([1]),
    lambda made: made.unit_to_english("h"), lambda made: made.ordered_unique("abca"),
    lambda made: made.FuzzedParameter("p", 1, 2, "other"),
    lambda made: made.Fuzzer([made.FuzzedParameter("p", 1, 2, "uniform")], [made.FuzzedTensor("p", (1,))])])
def test_uses(use: Any) -> None:
    same(use)


NAMES = ["f", "g", "dictobject.c:lookdict_unicode_nodummy", "???:malloc", "/a/b/build/../c10/x.cpp:foo [/x/l.so]",
         "/q/build/aten/src/ATen/x.cpp:bar(int)", "/usr/src/Python/ceval.c:x", "/usr/Objects/dict.c:y", "x" * 100]


@pytest.mark.parametrize("seed", range(15))
def test_counts_of_instructions(seed: int) -> None:
    def program(made: Any) -> Any:
        rng = random.Random(seed)

        def counts(inclusive: bool, number: int) -> Any:
            return made.FunctionCounts(tuple(made.FunctionCount(rng.randint(-5, 2000), name)
                                             for name in rng.sample(NAMES * 3, number)), inclusive)

        one, two = counts(False, rng.randint(0, 25)), counts(False, rng.randint(0, 6))
        stats = made.CallgrindStats(made.TaskSpec("x", "y = 1"), 100, rng.random() < 0.5, counts(True, 3), two,
                                    counts(True, 4), one, None)
        plain = stats.as_standardized()
        return [str(value) for value in (
            one, one + two, one - two, one.sum(), len(one), one.denoise(), one.transform(lambda name: name[:1]),
            one.filter(lambda name: "x" in name), one[:2], stats, stats.counts(denoise=True), plain.stats(),
            stats.delta(plain), plain.stats(inclusive=True), outcome(lambda: one + stats.stats(inclusive=True)))]

    same(program)


@pytest.mark.parametrize("seed", range(10))
def test_random_inputs(seed: int) -> None:
    def program(made: Any) -> Any:
        number, tensor, torch = made.FuzzedParameter, made.FuzzedTensor, ours if made is BOTH[0] else theirs
        fuzzer = made.Fuzzer(
            [number("a", 4, 64, "loguniform"), [number("b", 2, 8, "uniform"), number("c", 1.0, 2.0, "uniform")],
             number("dim", 1, 2, "uniform", strict=seed % 2 == 1)],
            [tensor("x", ("a", "b"), min_elements=8, max_elements=200, dim_parameter="dim"),
             tensor("y", ("a", "b", 2), ("b", 1), dtype=torch.int32, max_allocation_bytes=4000)],
            [lambda values: values["a"] > 7], seed=seed)
        return [(
            {name: (one.shape, one.stride(), one.dtype, one.flatten()[:3].tolist()) for name, one in made.items()},
            facts, values) for made, facts, values in fuzzer.take(3)], fuzzer.rejection_rate

    same(program)


def test_values_with_shares() -> None:
    """PyTorch 2.13 refuses shares that add up to 1."""
    made = benchmark.FuzzedParameter("p", distribution={benchmark.ParameterAlias("q"): 0.5, 7: 0.5}, strict=True)
    fuzzer = benchmark.Fuzzer([benchmark.FuzzedParameter("q", 1, 1, "uniform"), made], [], seed=0)
    assert {values["p"] for _, _, values in fuzzer.take(20)} == {1, 7}
    with pytest.raises(AssertionError, match="not normalized"):
        benchmark.FuzzedParameter("p", distribution={1: 0.4}, strict=True)
