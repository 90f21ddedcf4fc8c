"""Runs a whole program on this runtime and on PyTorch and compares what it returns: values, errors, profiles."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import mindtorch_v2 as ours

theirs = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")


def plain(torch: Any, value: Any) -> Any:
    """A result in terms that compare: of a tensor its class, dtype, contents and history."""
    if isinstance(value, torch.Tensor):
        detached = value.detach().as_subclass(torch.Tensor)
        contents = None if value.device.type == "meta" else [round(one, 3) for one in detached.flatten().tolist()]
        node = value.grad_fn
        return (type(value).__name__, tuple(value.shape), str(value.dtype), contents, value.requires_grad,
                None if node is None else node.name())
    if isinstance(value, dict):
        return {key: plain(torch, one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *[plain(torch, one) for one in value]]
    return value


def outcome(run: Callable[[], Any], length: int = 60) -> Any:
    """What a call returns, or the class and the beginning of the text of what it raises."""
    try:
        return run()
    except Exception as error:
        text = re.sub(r"\(with implementation in .*?>\)", "", str(error))
        return type(error).__name__, re.sub(r"<(class|module) .*?>", "", text)[:length]


def same(program: Callable[[Any], Any]) -> Any:
    """Compare what a program returns on both; gives the result."""
    mine, other = plain(ours, program(ours)), plain(theirs, program(theirs))
    if mine != other:
        pytest.fail(difference(mine, other))
    return mine


def difference(mine: Any, other: Any, place: str = "") -> str:
    """Where two results differ first."""
    if isinstance(mine, list) and isinstance(other, list) and len(mine) == len(other):
        for number, (a, b) in enumerate(zip(mine, other, strict=True)):
            if a != b:
                return difference(a, b, f"{place}[{number}]")
    return f"result{place} is {mine!r}, PyTorch's {other!r}"


def rows(torch: Any, run: Callable[[], Any], only: Callable[[str], bool] = lambda name: True) -> list[Any]:
    """Name, depth and input shapes of the events of a profile, in order."""
    run()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profiler:
        run()
    kept = []
    for event in sorted(profiler.events(), key=lambda event: (event.time_range.start, -event.time_range.end)):
        above = event.cpu_parent
        depth = 0
        while above is not None:
            depth += only(above.name)
            above = above.cpu_parent
        if only(event.name):
            kept.append((depth, event.name, [list(shape) for shape in event.input_shapes], event.sequence_nr >= 0))
    return kept
