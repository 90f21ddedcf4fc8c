"""Memory of profiler rows: what an op allocates and frees shows in the row in which PyTorch shows it."""

from __future__ import annotations

from typing import Any

import pytest
from harness import ours, theirs
from programs import PROGRAMS

# Rows whose own memory differs because PyTorch's kernel does it otherwise inside; the reason stands in docs/memory.md.
INNER = {
    "aten::mse_loss", "aten::mse_loss_backward", "aten::smooth_l1_loss", "aten::smooth_l1_loss_backward",
    "aten::binary_cross_entropy_with_logits", "aten::native_layer_norm", "aten::native_layer_norm_backward",
    "aten::index_select", "aten::flip", "aten::isnan", "aten::max", "aten::min", "aten::prod", "aten::var",
    "aten::sort", "aten::stack", "aten::sum", "aten::mean", "aten::div_", "aten::eq", "aten::abs", "aten::nonzero",
}
# Rows of autograd: PyTorch frees what a node saved, a wrapped number say, and a buffer that it could not take over.
FREED_LATER = {"ExpandBackward0"}
SELF_ONLY = "autograd::engine::evaluate_function: "
# The other programs run kernels that work otherwise inside than PyTorch's; for them the share of agreeing rows counts.
CHECKED = ("mlp_sgd", "mlp_adamw", "chain", "broadcasting", "scopes", "indexing", "views", "losses", "attention",
           "normalised", "reductions", "no_gradients", "double_backward", "threads", "operators",
           "in_place_activations", "smoothed_losses", "rnn")


def rows(torch: Any, program: Any) -> dict[str, tuple[int, int, int]]:
    """Calls, total and own memory by the row's name."""
    run = program(torch, torch.profiler.record_function)
    run()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as prof:
        run()
    return {row.key: (row.count, row.cpu_memory_usage, row.self_cpu_memory_usage) for row in prof.key_averages()}


@pytest.fixture(scope="module")
def profiles() -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    return {name: (rows(ours, program), rows(theirs, program)) for name, program in PROGRAMS.items()}


@pytest.mark.parametrize("name", CHECKED)
def test_memory_of_rows_that_both_have(profiles: Any, name: str) -> None:
    got, want = profiles[name]
    both = [key for key in got if key in want and got[key][0] == want[key][0] and key != "[memory]"
            and key not in INNER | FREED_LATER and not key.startswith(SELF_ONLY)]
    assert both
    assert {key: got[key] for key in both} == {key: want[key] for key in both}


def test_most_rows_agree(profiles: Any) -> None:
    """Of all rows that both have, however often they run and whatever they do inside."""
    agree = total = 0
    for got, want in profiles.values():
        for key in got.keys() & want.keys() - {"[memory]"}:
            total += 1
            agree += got[key][1:] == want[key][1:]
    assert agree / total > 0.88, f"{agree} of {total}"


@pytest.mark.parametrize("name", ["chain", "broadcasting", "mlp_sgd", "mlp_adamw"])
def test_gradients_are_freed_where_they_are_used_up(profiles: Any, name: str) -> None:
    got, want = profiles[name]
    keys = [key for key in want if "AccumulateGrad" in key or "zero_grad" in key]
    assert keys
    assert {key: got[key] for key in keys} == {key: want[key] for key in keys}
