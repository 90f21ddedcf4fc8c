"""Autocast's mechanism: the flag, threads, the cache, and what is not touched while it is off."""

from __future__ import annotations

import threading

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch.autocast import SETTINGS
from mindtorch_v2._dispatch.autocast_lists import FLOAT32, LOWER_PRECISION, POLICIES, WIDEST
from mindtorch_v2._dispatch.codegen import Writer
from mindtorch_v2._dispatch.facts import facts_of
from mindtorch_v2._dispatch.observer import HOOK
from mindtorch_v2._dispatch.registry import OPS
from mindtorch_v2._ops.amp import kernels


def test_the_flag_is_up_only_inside():
    assert HOOK["AUTOCAST"] is False
    with torch.autocast("cpu"):
        assert HOOK["AUTOCAST"] is True
        with torch.autocast("cpu", enabled=False):
            assert HOOK["AUTOCAST"] is False
        assert HOOK["AUTOCAST"] is True
    assert HOOK["AUTOCAST"] is False


def test_only_listed_ops_ask_for_the_flag():
    torch._load_late()
    for key, op in OPS.items():
        if op.cpu is None and op.composite is None:
            continue
        assert ("AUTOCAST" in Writer(facts_of(op, False)).source()) == (key in POLICIES), key
    assert "AUTOCAST" not in Writer(facts_of(OPS["addmm"], True)).source()


def test_an_op_is_on_one_list():
    assert len(POLICIES) == len(LOWER_PRECISION) + len(FLOAT32) + len(WIDEST)


def test_other_threads_are_not_cast():
    x = torch.ones(2, 2)
    inside, leave = threading.Event(), threading.Event()
    found = {}

    def low():
        with torch.autocast("cpu", dtype=torch.float16):
            inside.set()
            leave.wait(10)
            found["low"] = (x @ x).dtype

    thread = threading.Thread(target=low)
    thread.start()
    assert inside.wait(10)
    assert HOOK["AUTOCAST"] is True
    found["main"] = (x @ x).dtype, torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")
    with torch.autocast("cpu"):
        found["main inside"] = (x @ x).dtype
    leave.set()
    thread.join()
    assert found == {"low": torch.float16, "main": (torch.float32, False, torch.bfloat16),
                     "main inside": torch.bfloat16}
    assert HOOK["AUTOCAST"] is False


def test_an_error_leaves_no_trace():
    x = torch.ones(2, 2)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"), torch.autocast("cpu"):
        torch.mm(x, torch.ones(3, 3))
    assert (x @ x).dtype is torch.float32
    with torch.autocast("cpu"):
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            torch.mm(x, torch.ones(3, 3))
        assert (x @ x).dtype is torch.bfloat16


def test_a_recursive_function_may_be_decorated():
    seen = []

    @torch.autocast("cpu")
    def descend(depth):
        seen.append(torch.is_autocast_enabled("cpu"))
        if depth:
            descend(depth - 1)
        seen.append(torch.is_autocast_enabled("cpu"))

    descend(2)
    assert seen == [True] * 6
    assert not torch.is_autocast_enabled("cpu")
    assert SETTINGS.nesting == 0


def test_the_cache_knows_dtypes_and_is_emptied():
    x, w = torch.ones(2, 2), torch.ones(2, 2, requires_grad=True)
    with torch.autocast("cpu"):
        assert (x @ w).dtype is torch.bfloat16
        with torch.autocast("cpu", dtype=torch.float16):
            assert (x @ w).dtype is torch.float16
        assert len(SETTINGS.cache) == 2
    assert not SETTINGS.cache


def test_one_cast_collects_the_gradients_of_all_uses():
    x, w = torch.ones(2, 2), torch.ones(2, 2, requires_grad=True)
    with torch.autocast("cpu"):
        loss = (x @ w).sum() + (x @ w).sum()
    loss.backward()
    assert w.grad.dtype is torch.float32
    assert w.grad.tolist() == [[4.0, 4.0], [4.0, 4.0]]


def test_a_scale_never_becomes_infinite():
    scale, tracker = torch.tensor(3e38), torch.tensor(0, dtype=torch.int32)
    kernels.update_scale(scale._a, tracker._a, torch.tensor(0.0)._a, 2.0, 0.5, 1)
    assert scale.item() == pytest.approx(3e38)
    assert tracker.item() == 0
