"""The same training under both memory profilers: the same bytes in each category after forward, backward and update."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

from harness import ours, theirs  # noqa: E402

PAUSE_SECONDS = 0.002  # the clocks of the two profilers are not the same to the microsecond


def mlp(torch: Any) -> tuple[Any, Any]:
    nn = torch.nn
    model = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 7))

    def loss() -> Any:
        return nn.functional.cross_entropy(model(torch.randn(5, 20)), torch.randint(0, 7, (5,)))

    return model, loss


def cnn(torch: Any) -> tuple[Any, Any]:
    nn = torch.nn
    model = nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                          nn.Linear(6 * 9, 10))
    x, y = torch.randn(4, 3, 8, 8), torch.randint(0, 10, (4,))
    return model, lambda: nn.functional.cross_entropy(model(x), y)


def transformer(torch: Any) -> tuple[Any, Any]:
    nn = torch.nn

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(11, 16)
            self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
            self.head = nn.Linear(16, 11)

        def forward(self, x: Any) -> Any:
            return self.head(self.layer(self.embed(x)))

    model = Model()

    def loss() -> Any:
        x = torch.randint(0, 11, (2, 6))
        return nn.functional.cross_entropy(model(x).flatten(0, 1), x.flatten())

    return model, loss


def by_hand(torch: Any) -> tuple[Any, Any]:
    """No module: what the parameters are is seen from the data flow alone."""
    weight = torch.randn(4, 3, requires_grad=True)

    class Bare:
        def parameters(self) -> list[Any]:
            return [weight]

    return Bare(), lambda: (torch.ones(2, 4) @ weight).relu().sum()


class PlainDescent:
    """An optimizer that no profiler knows."""

    def __init__(self, torch: Any, parameters: list[Any]) -> None:
        self.torch, self.parameters = torch, parameters

    def step(self) -> None:
        with self.torch.no_grad():
            for parameter in self.parameters:
                parameter -= parameter.grad

    def zero_grad(self, set_to_none: bool = True) -> None:
        for parameter in self.parameters:
            parameter.grad = None


OPTIMIZERS: dict[str, Callable[[Any, Any], Any]] = {
    "sgd": lambda t, p: t.optim.SGD(p, lr=0.1),
    "momentum": lambda t, p: t.optim.SGD(p, lr=0.1, momentum=0.9),
    "adamw": lambda t, p: t.optim.AdamW(p, lr=0.1),
    "by_hand": lambda t, p: PlainDescent(t, list(p)),
}
CASES = [
    (mlp, "sgd", True, 0), (mlp, "momentum", True, 1), (mlp, "momentum", False, 1), (mlp, "adamw", True, 0),
    (mlp, "adamw", False, 1), (cnn, "sgd", True, 0), (cnn, "adamw", True, 1), (cnn, "momentum", False, 1),
    (transformer, "adamw", True, 0), (transformer, "sgd", False, 1), (by_hand, "by_hand", True, 0),
]
NAMES = [f"{make.__name__}-{optimizer}-{'none' if none else 'zeros'}-{'later' if warm else 'first'}"
         for make, optimizer, none, warm in CASES]


def record(torch: Any, make: Any, optimizer: str, to_none: bool, warm: int) -> tuple[Any, list[tuple[str, int]]]:
    """The memory profile of two steps, and the times after each of their parts."""
    torch.manual_seed(0)
    model, loss_of = make(torch)
    update = OPTIMIZERS[optimizer](torch, model.parameters())
    marks: list[tuple[str, int]] = []

    def mark(name: str) -> None:
        time.sleep(PAUSE_SECONDS)
        marks.append((name, time.time_ns()))
        time.sleep(PAUSE_SECONDS)

    def step() -> None:
        loss = loss_of()
        mark("forward")
        loss.backward()
        mark("backward")
        update.step()
        mark("step")
        update.zero_grad(set_to_none=to_none)
        mark("zero_grad")

    for _ in range(warm):
        step()
    marks.clear()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True,
                                profile_memory=True, with_stack=True) as prof:
        for _ in range(2):
            step()
    return prof._memory_profile(), marks


def category(profile: Any, key: Any, version: int) -> str | None:
    # Memory that a kernel of PyTorch takes for itself belongs to no tensor and has a bare key.
    found = profile._categories.get(key, version) if hasattr(key, "id") else None
    return None if found is None else found.name


def bytes_at(profile: Any, moment: int) -> dict[str | None, int]:
    """Bytes per category at a time."""
    living: Counter[str | None] = Counter()
    for at, action, (key, version), size in profile.timeline:
        if at > moment:
            break
        name = category(profile, key, version)
        living[name] += -size if action.name in ("DESTROY", "INCREMENT_VERSION") else size
        if action.name == "INCREMENT_VERSION":
            living[category(profile, key, version + 1)] += size
    return {name: size for name, size in living.items() if size}


@pytest.fixture(scope="module")
def recordings() -> Callable[[int], tuple[Any, Any]]:
    made: dict[int, tuple[Any, Any]] = {}

    def get(number: int) -> tuple[Any, Any]:
        if number not in made:
            made[number] = record(ours, *CASES[number]), record(theirs, *CASES[number])
        return made[number]

    return get


@pytest.mark.parametrize("number", range(len(CASES)), ids=NAMES)
def test_bytes_per_category(recordings: Callable[[int], tuple[Any, Any]], number: int) -> None:
    (got, our_marks), (want, their_marks) = recordings(number)
    for (name, our_time), (_, their_time) in zip(our_marks, their_marks, strict=True):
        assert bytes_at(got, our_time) == bytes_at(want, their_time), f"after {name}"


def blocks(profile: Any) -> Counter[tuple[str, int, str]]:
    """How often a block of a size begins or ends in a category, for the categories that matter to a model."""
    found: Counter[tuple[str, int, str]] = Counter()
    for _, action, (key, version), size in profile.timeline:
        name = category(profile, key, version)
        if name is not None:
            found[action.name, size, name] += 1
    return found


@pytest.mark.parametrize("number", [n for n, (make, optimizer, *_) in enumerate(CASES)
                                    if optimizer in ("sgd", "momentum") and make is not transformer],
                         ids=[NAMES[n] for n, (make, optimizer, *_) in enumerate(CASES)
                              if optimizer in ("sgd", "momentum") and make is not transformer])
def test_category_of_every_block(recordings: Callable[[int], tuple[Any, Any]], number: int) -> None:
    """Every parameter, gradient, activation and so on, not only sums. Numbers that ops convert are not compared."""
    (got, _), (want, _) = recordings(number)
    small = {"INPUT", "TEMPORARY"}
    got_blocks, want_blocks = ({key: n for key, n in blocks(p).items() if not (key[1] <= 8 and key[2] in small)}
                               for p in (got, want))
    assert got_blocks == want_blocks


@pytest.mark.parametrize("number", [NAMES.index("mlp-adamw-none-first"), NAMES.index("transformer-adamw-none-first")])
def test_adam_keeps_its_state_and_model_apart(recordings: Callable[[int], tuple[Any, Any]], number: int) -> None:
    """PyTorch sometimes calls intermediate results of an update PARAMETER or ACTIVATION; here they have no category."""
    (got, _), (want, _) = recordings(number)
    for name in ("OPTIMIZER_STATE", "GRADIENT"):
        assert ({k: n for k, n in blocks(got).items() if k[2] == name}
                == {k: n for k, n in blocks(want).items() if k[2] == name})


def flow(profile: Any) -> list[tuple[Any, ...]]:
    """The steps of the data flow without releases outside of ops, whose order is Python's business."""
    return [(node._event.name, {key.id: fact for key, fact in node.inputs.items()},
             {key.id: version for key, version in node.outputs.items()}, [key.id for key in node.intermediates])
            for node in profile._data_flow_graph.flow_nodes if node._event.name != "[memory]" or node.outputs]


@pytest.mark.parametrize("number", [NAMES.index("mlp-sgd-none-first"), NAMES.index("by_hand-by_hand-none-first")])
def test_data_flow_is_the_same_step_by_step(recordings: Callable[[int], tuple[Any, Any]], number: int) -> None:
    (got, _), (want, _) = recordings(number)
    assert flow(got) == flow(want)


@pytest.mark.filterwarnings("ignore:`export_memory_timeline` is deprecated:FutureWarning")
def test_files_have_the_same_form(recordings: Callable[[int], tuple[Any, Any]], tmp_path: Any) -> None:
    (got, _), (want, _) = recordings(0)
    rows = []
    for module, profile in ((ours, got), (theirs, want)):
        timeline = module.profiler._memory_profiler.MemoryProfileTimeline(profile)
        times, sizes = timeline._coalesce_timeline("cpu")
        assert len(times) == len(sizes)
        assert times[0] == times[1]
        rows.append((sizes[0], sizes[-1]))
    assert rows[0] == rows[1]
    assert [m.name for m in ours.profiler._memory_profiler.Category] == [
        m.name for m in theirs.profiler._memory_profiler.Category]
    assert {m.name: m.value for m in ours.profiler._memory_profiler.Action} == {
        m.name: m.value for m in theirs.profiler._memory_profiler.Action}


# -- whole programs, with what they do besides a plain step ------------------------------------------------------------

Mark = Callable[[str], None]


def trained(torch: Any, mark: Mark, model: Any, optimizer: Any, loss_of: Callable[[], Any]) -> Callable[[], None]:
    def step() -> None:
        loss = loss_of()
        mark("forward")
        loss.backward()
        mark("backward")
        optimizer.step()
        mark("step")
        optimizer.zero_grad()
        mark("zero_grad")

    return step


def small(torch: Any) -> tuple[Any, Any, Any]:
    nn = torch.nn
    model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 16), nn.GELU(), nn.Linear(16, 7))
    return model, torch.randn(5, 20), torch.randint(0, 7, (5,))


def mixed_precision(torch: Any, mark: Mark) -> Callable[[], None]:
    """The weights' copies in bfloat16 go as soon as no backward needs them."""
    model, x, y = small(torch)

    def loss() -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return torch.nn.functional.cross_entropy(model(x), y)

    return trained(torch, mark, model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), loss)


def checkpointed(torch: Any, mark: Mark, reentrant: bool) -> Callable[[], None]:
    model, x, y = small(torch)
    checkpoint = import_module(f"{torch.__name__}.utils.checkpoint").checkpoint

    def loss() -> Any:
        hidden = checkpoint(model[1:4], model[0](x), use_reentrant=reentrant)
        return torch.nn.functional.cross_entropy(model[4](hidden), y)

    return trained(torch, mark, model, torch.optim.SGD(model.parameters(), lr=0.1), loss)


def hooked(torch: Any, mark: Mark) -> Callable[[], None]:
    model, x, y = small(torch)
    model[2].register_full_backward_hook(lambda module, inputs, outputs: None)
    model[4].weight.register_hook(lambda grad: grad.sign())
    model[0].register_forward_hook(lambda module, inputs, output: output.sin())
    return trained(torch, mark, model, torch.optim.SGD(model.parameters(), lr=0.1),
                   lambda: torch.nn.functional.cross_entropy(model(x), y))


def averaged(torch: Any, mark: Mark) -> Callable[[], None]:
    """Copies of parameters are no activations."""
    model, x, y = small(torch)
    step = trained(torch, mark, model, torch.optim.SGD(model.parameters(), lr=0.1),
                   lambda: torch.nn.functional.cross_entropy(model(x), y))
    copies: list[Any] = []

    def run() -> None:
        with torch.no_grad():
            copies[:] = [p.clone() for p in model.parameters()]
            mark("copies")
        step()
        with torch.no_grad():
            for copy, parameter in zip(copies, model.parameters(), strict=True):
                copy.lerp_(parameter, 0.1)
        mark("average")

    return run


def own_function(torch: Any, mark: Mark) -> Callable[[], None]:
    """What the forward of a Function uses and allocates is judged op by op, not as one step."""
    table = torch.ones(3, 3)

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, weight: Any) -> Any:
            ctx.hidden = x @ weight
            ctx.noise = torch.rand(3, 3) * table  # of which only ops inside of the function know
            ctx.save_for_backward(x, weight)
            return ctx.hidden.relu() @ weight

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            x, weight = ctx.saved_tensors
            return None, x.t() @ (grad @ weight.t()) + ctx.hidden.relu().t() @ grad

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(6, 6))

        def forward(self, x: Any) -> Any:
            return Twice.apply(x, self.weight)

    model, x = Model(), torch.randn(4, 6)
    return trained(torch, mark, model, torch.optim.SGD(model.parameters(), lr=0.1), lambda: model(x).sum())


def views_and_changes(torch: Any, mark: Mark) -> Callable[[], None]:
    """A graph of views that were written to keeps no memory after backward."""
    model, x, y = small(torch)
    zero = torch.zeros(5)

    def loss() -> Any:
        hidden = model[0](x).clone()
        hidden[:, 0] = zero
        hidden[1].sin_()
        return torch.nn.functional.cross_entropy(model[4](hidden.view(5, 2, 16).unbind(1)[0].t().contiguous().t()), y)

    return trained(torch, mark, model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), loss)


def two_networks(torch: Any, mark: Mark) -> Callable[[], None]:
    nn = torch.nn
    first = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 10))
    second = nn.Sequential(nn.Linear(10, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
    updates = [torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9) for model in (first, second)]
    real, judge = torch.randn(6, 10), nn.BCEWithLogitsLoss()
    yes, no = torch.ones(6, 1), torch.zeros(6, 1)

    def run() -> None:
        made = first(torch.randn(6, 4))
        updates[1].zero_grad()
        loss = judge(second(real), yes) + judge(second(made.detach()), no)
        mark("forward")
        loss.backward()
        updates[1].step()
        mark("second updated")
        updates[0].zero_grad()
        loss = judge(second(made), yes)
        mark("forward")
        loss.backward()
        updates[0].step()
        mark("first updated")

    return run


def moved(torch: Any, mark: Mark) -> Callable[[], None]:
    """A parameter that gets other memory is the same parameter."""
    model, x, y = small(torch)
    step = trained(torch, mark, model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
                   lambda: torch.nn.functional.cross_entropy(model(x), y))
    kept = []  # PyTorch's profile fails if a tensor gets an address again that it had before

    def run() -> None:
        step()
        for _ in range(2):
            for parameter in model.parameters():
                kept.append(parameter.data)
                parameter.data = parameter.data.clone()
            mark("moved")
        step()

    return run


def given_outputs(torch: Any, mark: Mark) -> Callable[[], None]:
    """What is written through `out=` depends on what it was computed from: spectral norm's vectors are no inputs."""
    model = torch.nn.utils.spectral_norm(torch.nn.Linear(6, 6))
    x = torch.randn(3, 6)
    return trained(torch, mark, model, torch.optim.SGD(model.parameters(), lr=0.1), lambda: model(x).sum())


def fused_update(torch: Any, mark: Mark) -> Callable[[], None]:
    model, x, y = small(torch)
    return trained(torch, mark, model, torch.optim.Adam(model.parameters(), fused=True),
                   lambda: torch.nn.functional.cross_entropy(model(x), y))


WHOLE_PROGRAMS: dict[str, Callable[[Any, Mark], Callable[[], None]]] = {
    "mixed precision": mixed_precision,
    "checkpoint": lambda torch, mark: checkpointed(torch, mark, False),
    "reentrant checkpoint": lambda torch, mark: checkpointed(torch, mark, True),
    "hooks": hooked, "averaged": averaged, "own function": own_function, "views": views_and_changes,
    "two networks": two_networks, "moved": moved, "given outputs": given_outputs, "fused update": fused_update,
}


def record_program(torch: Any, make: Callable[[Any, Mark], Callable[[], None]]) -> list[tuple[str, Any]]:
    """Bytes per category at each mark of two runs."""
    marks: list[tuple[str, int]] = []

    def mark(name: str) -> None:
        time.sleep(PAUSE_SECONDS)
        marks.append((name, time.time_ns()))
        time.sleep(PAUSE_SECONDS)

    torch.manual_seed(0)
    run = make(torch, mark)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True,
                                profile_memory=True, with_stack=True) as prof:
        run()
        run()
    profile = prof._memory_profile()
    return [(name, bytes_at(profile, moment)) for name, moment in marks]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", WHOLE_PROGRAMS)
def test_whole_programs(name: str) -> None:
    make = WHOLE_PROGRAMS[name]
    assert record_program(ours, make) == record_program(theirs, make)
