"""Memory of profiler rows: what an op allocates and frees shows in the row in which PyTorch shows it."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest
from harness import ours, theirs
from programs import PROGRAMS

# Rows whose calls and total agree, and whose own part does not.
OWN_PART = {
    # Here the result is taken with `empty`; PyTorch takes 0 bytes there, which the op lets grow.
    "aten::index_select", "aten::nonzero",
    # PyTorch makes the positions with `arange`; they are a copy of a range that NumPy makes here.
    "aten::sort",
    # Working memory that PyTorch takes inside the kernel and frees at its end; here it is NumPy's, which is not seen.
    "aten::native_layer_norm_backward", "aten::binary_cross_entropy_with_logits",
    "aten::_scaled_dot_product_flash_attention_for_cpu", "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
    "aten::mkldnn_rnn_layer_backward",
    # PyTorch adds a gradient of overlapping elements out of place, so one more block is freed.
    "autograd::engine::evaluate_function: CumsumBackward0",
}
# Rows whose total differs.
TOTAL = {
    # PyTorch keeps a buffer of the size of its input for a single number; `mean` writes into it.
    "aten::mse_loss", "aten::smooth_l1_loss", "aten::mean",
    # There are two, one inside the other. PyTorch grows the result in the inner one, here it is taken before that.
    "aten::abs",
    # PyTorch keeps what oneDNN wants to have for the backward; other things, and fewer, are kept here.
    "aten::lstm", "aten::mkldnn_rnn_layer", "MkldnnRnnLayerBackward0",
    "autograd::engine::evaluate_function: MkldnnRnnLayerBackward0",
    # A number that a node saved is 8 bytes in PyTorch, and so is each position that a mask stands for.
    "autograd::engine::evaluate_function: MulBackward0", "autograd::engine::evaluate_function: DivBackward0",
    "autograd::engine::evaluate_function: IndexBackward0",
}
# In one program only: the result of `multinomial` is taken with `empty` here, in PyTorch it is 0 bytes that grow.
ONCE = {("sampling", "aten::empty")}


def rows(torch: Any, program: Any) -> dict[str, tuple[int, int, int]]:
    """Calls, total and own memory by the row's name."""
    run = program(torch, torch.profiler.record_function)
    run()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as prof:
        run()
    return {row.key: (row.count, row.cpu_memory_usage, row.self_cpu_memory_usage) for row in prof.key_averages()}


def their_rows() -> dict[str, dict[str, tuple[int, int, int]]]:
    return {name: rows(theirs, program) for name, program in PROGRAMS.items()}


@pytest.fixture(scope="module")
def profiles() -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    # PyTorch remembers sizes from earlier recordings in its process by address, and after them, now and then, counts
    # the release of memory that was allocated before the recording. So it gets a process of its own.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        want = pool.submit(their_rows)
        return {name: (rows(ours, program), want.result()[name]) for name, program in PROGRAMS.items()}


@pytest.mark.parametrize("name", PROGRAMS)
def test_memory_of_rows_that_both_have(profiles: Any, name: str) -> None:
    got, want = profiles[name]
    both = [key for key in got if key in want and got[key][0] == want[key][0] and key not in TOTAL | {"[memory]"}
            and (name, key) not in ONCE]
    assert both
    assert {key: got[key][:2] for key in both} == {key: want[key][:2] for key in both}
    whole = [key for key in both if key not in OWN_PART]
    assert {key: got[key] for key in whole} == {key: want[key] for key in whole}


def test_what_is_left_out_differs(profiles: Any) -> None:
    """A name that agrees by now is checked like the others."""
    differ: dict[str, set[str]] = {"total": set(), "own part": set()}
    for program, (got, want) in profiles.items():
        for key in got.keys() & want.keys():
            if got[key][0] == want[key][0] and (program, key) not in ONCE:
                if got[key][1] != want[key][1]:
                    differ["total"].add(key)
                elif got[key][2] != want[key][2]:
                    differ["own part"].add(key)
    assert differ["total"] - {"[memory]"} == TOTAL
    assert differ["own part"] - TOTAL == OWN_PART


def test_most_rows_agree(profiles: Any) -> None:
    """Of all rows that both have, however often they run and whatever they do inside."""
    agree = total = 0
    for got, want in profiles.values():
        for key in got.keys() & want.keys() - {"[memory]"}:
            total += 1
            agree += got[key][1:] == want[key][1:]
    assert agree / total > 0.92, f"{agree} of {total}"


@pytest.mark.parametrize("name", ["chain", "broadcasting", "mlp_sgd", "mlp_adamw"])
def test_gradients_are_freed_where_they_are_used_up(profiles: Any, name: str) -> None:
    got, want = profiles[name]
    keys = [key for key in want if "AccumulateGrad" in key or "zero_grad" in key]
    assert keys
    assert {key: got[key] for key in keys} == {key: want[key] for key in keys}
