"""Modes of autograd end with their block, whatever interrupts it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch.native import WALK

MODES: dict[str, Callable[[], Any]] = {
    "no_grad": torch.no_grad, "enable_grad": torch.enable_grad, "inference_mode": torch.inference_mode,
    "off": lambda: torch.set_grad_enabled(False), "not inference": lambda: torch.inference_mode(False),
}


def standing() -> tuple[bool, bool]:
    return torch.is_grad_enabled(), torch.is_inference_mode_enabled()


def work(mode: Callable[[], Any]) -> None:
    with mode():
        torch.ones(2).sin()


def interrupted_at(number: int, mode: Callable[[], Any]) -> bool:
    """Do the work, and press Ctrl-C where the call of this number begins; whether there is one."""
    left = [number]

    def press(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            left[0] -= 1
            if left[0] == 0:
                sys.setprofile(None)
                raise KeyboardInterrupt

    sys.setprofile(press)
    try:
        work(mode)
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(None)
    return False


@pytest.mark.skipif(WALK is None, reason="in Python the end of a block may be interrupted too")
@pytest.mark.parametrize("outer", [None, "no_grad", "inference_mode"])
@pytest.mark.parametrize("name", [name for name in MODES if name != "off"])  # that is switched before its block begins
def test_an_interrupt_at_any_call_leaves_the_modes_as_they_were(name: str, outer: str | None) -> None:
    def all_calls() -> None:
        before, number = standing(), 1
        while interrupted_at(number, MODES[name]):
            assert standing() == before, f"call {number}"
            number += 1
        assert number > 2
        assert standing() == before

    work(MODES[name])  # ops are made ready at their first use, once
    if outer is None:
        all_calls()
        return
    with MODES[outer]():
        all_calls()
    assert standing() == (True, False)


@pytest.mark.parametrize("name", MODES)
def test_modes_nest_and_may_be_left_by_an_error(name: str) -> None:
    for outer in MODES:
        before = standing()
        with MODES[outer]():
            inside = standing()
            with pytest.raises(ValueError, match="on purpose"), MODES[name]():
                raise ValueError("on purpose")
            assert standing() == inside
        assert standing() == before
