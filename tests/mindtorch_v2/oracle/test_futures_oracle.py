"""Futures beside PyTorch's: errors of callbacks and of parts, and mistakes."""

from __future__ import annotations

import importlib
import pickle

import pytest
from harness import check_error

import mindtorch_v2 as ours

theirs = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")


def futures(module):
    return importlib.import_module(f"{module.__name__}.futures")


@pytest.mark.parametrize("module", [ours, theirs])
def test_errors_of_callbacks_stay_away_from_others(module, capfd):
    future, seen = futures(module).Future(), []
    future.add_done_callback(lambda done: 1 / 0)
    future.add_done_callback(lambda: None)
    future.add_done_callback(lambda done: seen.append(done.value()))
    future.set_result(3)
    future.add_done_callback(lambda done: 1 / 0)
    assert seen == [3]
    assert future.wait() == 3


@pytest.mark.parametrize("module", [ours, theirs])
def test_collect_all_has_the_first_error_when_all_are_done(module):
    first, second = futures(module).Future(), futures(module).Future()
    both = futures(module).collect_all([first, second])
    second.set_exception(KeyError("second"))
    assert not both.done()
    first.set_exception(ValueError("first"))
    for ask in (both.wait, both.value):
        with pytest.raises(ValueError, match="first"):
            ask()


MISTAKES = [
    lambda f: f.Future().then(3), lambda f: f.Future().add_done_callback(3), lambda f: f.collect_all([1]),
    lambda f: f.collect_all(3), lambda f: f.Future(devices=3), lambda f: f.Future(devices=["cuda:0"]),
    lambda f: f.Future(devices=["cpu"]), lambda f: pickle.dumps(f.Future()), lambda f: f.Future().set_exception("text"),
]


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_mistakes(number):
    check_error(lambda module: MISTAKES[number](futures(module)), words=False)
