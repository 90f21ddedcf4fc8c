"""Memory of profiler rows: allocations and releases of an op are in the same row as in PyTorch."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest
from harness import ours, theirs
from programs import PROGRAMS as SMALL_PROGRAMS


def convolutions(torch: Any, record: Any) -> Callable[[], None]:
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 3, groups=4),
                          nn.Hardswish(), nn.Conv2d(4, 2, 1, bias=False), nn.ReLU6(), nn.Flatten())
    optimizer = torch.optim.RMSprop(model.parameters(), lr=0.1)
    x, y = torch.randn(2, 3, 8, 8), torch.tensor([0, 1])

    def run() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return run


def more_losses(torch: Any, record: Any) -> Callable[[], None]:
    F = torch.nn.functional
    x = torch.linspace(-1, 1, 12).reshape(3, 4).requires_grad_()
    target, weight = torch.full((3, 4), 0.5), torch.full((4,), 2.0)

    def run() -> None:
        (F.huber_loss(x, target) + F.mse_loss(x, target, reduction="sum")
         + F.smooth_l1_loss(x, target, reduction="none").sum() + F.binary_cross_entropy(x.sigmoid(), target)
         + F.binary_cross_entropy(x.sigmoid(), target, reduction="sum") + F.binary_cross_entropy_with_logits(
             x, target, weight)).backward()

    return run


def activations(torch: Any, record: Any) -> Callable[[], None]:
    F = torch.nn.functional
    x, slope = torch.linspace(-4, 4, 24).reshape(2, 3, 2, 2).requires_grad_(), torch.full((3,), 0.1)

    def run() -> None:
        y = F.hardswish(x) + F.relu6(x) + F.hardtanh(x) + F.logsigmoid(x) + F.prelu(x, slope)
        (F.dropout2d(y) + F.pad(F.pad(y, (1, 1, 2, 0)), (-1, -1, -2, 0))).sum().backward()

    return run


def conversions(torch: Any, record: Any) -> Callable[[], None]:
    x = torch.ones(3, 4, requires_grad=True)

    def run() -> None:
        (x.double() + x.squeeze() + x.bfloat16().float() + (1 - x) + (2.5 - x)).sum().backward()

    return run


def products(torch: Any, record: Any) -> Callable[[], None]:
    """Two gradients of one node for one tensor are added in place."""
    x = torch.ones(4, 4, requires_grad=True)

    def run() -> None:
        ((x @ x) * x).sum().backward()

    return run


def given_results(torch: Any, record: Any) -> Callable[[], None]:
    x, y = torch.linspace(0, 1, 12).reshape(3, 4), torch.ones(3, 4)
    z, smaller = torch.empty(3, 4), torch.empty(3, 4, dtype=torch.bool)

    def run() -> None:
        torch.add(x, y, out=z)
        torch.sub(x, y[0], out=z)
        torch.mul(x, 2.0, out=z)
        torch.maximum(x, y, out=z)
        torch.eq(x, y, out=smaller)
        x // y
        torch.index_select(x, 0, torch.tensor([0, 2]))

    return run


def largest_averages(torch: Any, record: Any) -> Callable[[], None]:
    x = torch.nn.Parameter(torch.ones(3, 4))
    optimizers = [torch.optim.Adam([x], amsgrad=True, foreach=False), torch.optim.Adamax([x], foreach=False)]

    def run() -> None:
        x.grad = torch.full((3, 4), 0.5)
        for optimizer in optimizers:
            optimizer.step()

    return run


PROGRAMS: dict[str, Any] = SMALL_PROGRAMS | {f.__name__: f for f in (
    convolutions, more_losses, activations, conversions, products, given_results, largest_averages)}

# Rows whose calls and total agree, and whose own part does not.
OWN_PART = {
    # PyTorch makes the positions with `arange`; they are a copy of a range that NumPy makes here.
    "aten::sort",
    # Working memory that PyTorch takes inside the kernel and frees at its end; here it is NumPy's, which is not seen.
    "aten::native_layer_norm_backward",
    "aten::_scaled_dot_product_flash_attention_for_cpu", "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
    "aten::mkldnn_rnn_layer_backward",
    # PyTorch's gradient of a product with a zero in it is a view, to which it adds out of place.
    "autograd::engine::evaluate_function: CumsumBackward0",
}
# Rows whose total differs.
TOTAL = {
    # There are two, one inside the other. PyTorch grows the result in the inner one, here it is taken before that.
    "aten::abs",
    # PyTorch keeps what oneDNN wants to have for the backward; other things, and fewer, are kept here.
    "aten::lstm", "aten::mkldnn_rnn_layer",
    "autograd::engine::evaluate_function: MkldnnRnnLayerBackward0",
    # A number that a node saved is 8 bytes in PyTorch.
    "autograd::engine::evaluate_function: MulBackward0", "autograd::engine::evaluate_function: DivBackward0",
}
# In these programs only: what is taken with `empty` here is 0 bytes in PyTorch that `multinomial` or `abs` let grow.
ONCE = {("sampling", "aten::empty"), ("losses", "aten::empty"), ("largest_averages", "aten::empty")}


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
    """A name that agrees must be checked like the others."""
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
    """Of all rows that both have, however often they run."""
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


def instants(prof: Any, path: Any) -> list[tuple[int, int]]:
    """Bytes and running total of each change of memory in the trace's file."""
    prof.export_chrome_trace(str(path))
    events = json.loads(path.read_text())["traceEvents"]
    return [(event["args"]["Bytes"], event["args"]["Total Allocated"]) for event in events
            if event["name"] == "[memory]"]


@pytest.mark.parametrize("order", [("first", "second"), ("second", "first")])
def test_what_an_earlier_recording_saw_allocated(tmp_path: Any, order: tuple[str, str]) -> None:
    """Its release is in the later recording, and the running total continues; other memory is in neither."""
    def run(torch: Any) -> list[Any]:
        def recording() -> Any:
            return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True)

        held = {"before": torch.ones(1000)}
        with recording() as earlier:
            held |= {"first": torch.ones(10), "second": torch.ones(20)}
        begin = instants(earlier, tmp_path / "earlier.json")[0]
        with recording() as later:
            for name in order:
                with torch.profiler.record_function(f"drop {name}"):
                    del held[name]
            del held["before"]
        rows = {row.key: row.cpu_memory_usage for row in later.key_averages()}
        # Before this test, PyTorch has seen things allocated whose end it has not.
        return [rows, [(size, total - begin[1]) for size, total in instants(later, tmp_path / "later.json")]]

    got, want = run(ours), run(theirs)
    assert got == want
    assert sorted(got[0].items()) == [("drop first", -40), ("drop second", -80)]


@pytest.mark.filterwarnings("ignore:Profiler won't be using warmup", "ignore:.*Profiler clears events")
def test_steps_that_are_recorded_one_by_one() -> None:
    """The gradients that `zero_grad` frees were allocated in the recording of the step before."""
    def run(torch: Any) -> list[Any]:
        rows: list[Any] = []
        model, x = torch.nn.Linear(4, 3), torch.ones(2, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True,
            schedule=torch.profiler.schedule(wait=0, warmup=0, active=1, repeat=3), on_trace_ready=lambda prof:
            rows.append({row.key: row.cpu_memory_usage for row in prof.key_averages() if "aten" not in row.key}),
        ) as prof:
            for _ in range(3):
                optimizer.zero_grad()
                model(x).sum().backward()
                optimizer.step()
                prof.step()
        return rows

    got = run(ours)
    assert got == run(theirs)
    assert [row["Optimizer.zero_grad#SGD.zero_grad"] for row in got] == [0, -60, -60]
