"""Training in mixed precision: losses, profiles, gradient scaling, autograd functions and checkpoints as PyTorch's."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import check_error, ours, theirs

# -- models that train -------------------------------------------------------------------------------------------------


def mlp(torch: Any) -> tuple[Any, Any, Any, Any]:
    nn = torch.nn
    model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4))
    return model, torch.randn(16, 8), torch.randint(0, 4, (16,)), nn.functional.cross_entropy


def transformer(torch: Any) -> tuple[Any, Any, Any, Any]:
    nn = torch.nn

    class Classifier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(11, 16)
            layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.head = nn.Linear(16, 3)

        def forward(self, tokens: Any) -> Any:
            return self.head(self.encoder(self.embedding(tokens)).mean(1))

    return Classifier(), torch.randint(0, 11, (6, 5)), torch.randint(0, 3, (6,)), nn.functional.cross_entropy


def cnn(torch: Any) -> tuple[Any, Any, Any, Any]:
    nn = torch.nn
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                          nn.Conv2d(8, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 2))
    return model, torch.randn(4, 3, 10, 10), torch.randn(4, 2), nn.functional.mse_loss


def lstm(torch: Any) -> tuple[Any, Any, Any, Any]:
    nn = torch.nn

    class Tagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.LSTM(6, 8, batch_first=True)
            self.head = nn.Linear(8, 2)

        def forward(self, x: Any) -> Any:
            return self.head(self.layers(x)[0])

    return Tagger(), torch.randn(3, 5, 6), torch.randn(3, 5, 2), nn.functional.smooth_l1_loss


MODELS: dict[str, Callable[[Any], Any]] = {"mlp": mlp, "transformer": transformer, "cnn": cnn, "lstm": lstm}


def train(torch: Any, name: str, low: str, steps: int = 5) -> tuple[list[float], list[np.ndarray], list[str]]:
    """Losses, parameters at the end, and dtypes on the way."""
    torch.manual_seed(0)
    model, x, y, loss_function = MODELS[name](torch)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses, dtypes = [], []
    for _ in range(steps):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=getattr(torch, low)):
            out = model(x)
            loss = loss_function(out, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        dtypes += [str(out.dtype), str(loss.dtype), *(str(p.grad.dtype) for p in model.parameters())]
    return losses, [p.detach().numpy() for p in model.parameters()], dtypes


@pytest.mark.parametrize(("name", "low"), [
    ("mlp", "bfloat16"), ("mlp", "float16"), ("transformer", "bfloat16"), ("cnn", "bfloat16"), ("cnn", "float16"),
    ("lstm", "bfloat16"),
])
def test_training_goes_the_same_way(name: str, low: str) -> None:
    got, want = train(ours, name, low), train(theirs, name, low)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-2, atol=1e-2)
    for one, other in zip(got[1], want[1], strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-2, atol=2e-2)
    assert got[2] == want[2]


def test_autocast_makes_a_difference() -> None:
    """The losses above would also agree if nothing were cast."""
    def loss(enabled: bool) -> float:
        ours.manual_seed(0)
        model, x, y, loss_function = mlp(ours)
        with ours.autocast("cpu", enabled=enabled):
            return loss_function(model(x), y).item()

    assert loss(True) != loss(False)


# -- profiles ----------------------------------------------------------------------------------------------------------


def profile(torch: Any, name: str) -> Any:
    torch.manual_seed(0)
    model, x, y, loss_function = MODELS[name](torch)

    def run() -> None:
        with torch.autocast("cpu"):
            loss = loss_function(model(x), y)
        loss.backward()

    run()
    with torch.profiler.profile() as prof:
        run()
    return prof


@pytest.mark.parametrize("name", MODELS)
def test_top_level_rows(name: str) -> None:
    def top(torch: Any) -> list[str]:
        return [e.name for e in profile(torch, name).events() if e.cpu_parent is None]

    assert top(ours) == top(theirs)


def casts_and_nesting(torch: Any) -> list[tuple[str, str]]:
    """Every row with the row it is in, for ops of all three lists and a weight that is used twice."""
    x, w, b = torch.ones(4, 4), torch.ones(4, 4, requires_grad=True), torch.ones(4)
    low = x.bfloat16()
    functional = torch.nn.functional
    image, kernel = torch.ones(1, 1, 5, 5), torch.ones(1, 1, 2, 2)
    with torch.profiler.profile() as prof, torch.autocast("cpu"):
        x @ w
        functional.linear(x, w, b)
        functional.linear(low, w)
        torch.mm(low, low)
        functional.conv2d(image, kernel)
        functional.kl_div(low, x, reduction="sum")
        functional.nll_loss(low, y := torch.zeros(4, dtype=torch.int64))
        functional.cross_entropy(low, y)
        torch.cat([low, x])
        torch.stack([low, low])
    return [(e.name, e.cpu_parent.name if e.cpu_parent else "") for e in prof.events()
            if e.name in ("aten::to", "aten::_to_copy", "aten::matmul", "aten::mm", "aten::linear", "aten::addmm",
                          "aten::conv2d", "aten::convolution", "aten::kl_div", "aten::nll_loss", "aten::cat",
                          "aten::cross_entropy_loss", "aten::stack")]


def test_casts_are_rows_inside_the_op() -> None:
    assert casts_and_nesting(ours) == casts_and_nesting(theirs)


# -- gradient scaling --------------------------------------------------------------------------------------------------


def scaled_training(torch: Any, optimizer_name: str, **options: Any) -> tuple[list[Any], list[np.ndarray]]:
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2)
    optimizer = getattr(torch.optim, optimizer_name)(model.parameters(), lr=0.05, **options)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=2)
    x = torch.randn(8, 4)
    seen: list[Any] = []
    for step in range(6):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = torch.nn.functional.mse_loss(model(x), torch.zeros(8, 2))
        scaler.scale(loss).backward()
        if step == 3:
            model.weight.grad[0, 0] = float("inf")
        if step in (1, 3, 4):
            scaler.unscale_(optimizer)
            seen.append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).isfinite()))
        scaler.step(optimizer)
        scaler.update()
        seen.append(scaler.get_scale())
        seen.append(scaler.state_dict())
    return seen, [p.detach().numpy() for p in model.parameters()]


@pytest.mark.parametrize(("name", "options"), [
    ("SGD", {}), ("Adam", {}), ("SGD", {"fused": True}), ("AdamW", {"fused": True}), ("Adagrad", {"fused": True}),
])
def test_scaled_training(name: str, options: dict[str, Any]) -> None:
    got, want = scaled_training(ours, name, **options), scaled_training(theirs, name, **options)
    assert got[0] == want[0]
    for one, other in zip(got[1], want[1], strict=True):
        np.testing.assert_allclose(one, other, rtol=5e-3, atol=5e-3)


def ready(torch: Any, scaled: bool = True, **options: Any) -> tuple[Any, Any, Any]:
    """A scaler, an optimizer with gradients, and its parameter."""
    weight = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    scaler = torch.amp.GradScaler("cpu", **options)
    if scaled:
        scaler.scale((weight * weight).sum()).backward()
    return scaler, optimizer, weight


def twice(method: str, again: str) -> Callable[[Any], None]:
    def call(torch: Any) -> None:
        scaler, optimizer, _ = ready(torch)
        getattr(scaler, method)(optimizer)
        getattr(scaler, again)(optimizer)

    return call


def half_gradients(torch: Any) -> None:
    scaler, _, _ = ready(torch)
    weight = torch.ones(2, dtype=torch.float16, requires_grad=True)
    weight.grad = torch.ones(2, dtype=torch.float16)
    scaler.unscale_(torch.optim.SGD([weight], lr=0.1))


def nothing_to_check(torch: Any) -> None:
    scaler, _, _ = ready(torch)
    scaler.step(torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1))


@pytest.mark.parametrize("call", [
    twice("unscale_", "unscale_"),
    twice("step", "unscale_"),
    twice("step", "step"),
    half_gradients,
    nothing_to_check,
    lambda torch: ready(torch, scaled=False)[0].update(),
    lambda torch: ready(torch, scaled=False)[0].unscale_(None),
    lambda torch: ready(torch)[0].update(),
    lambda torch: ready(torch)[0].update(torch.ones(2)),
    lambda torch: ready(torch)[0].step(ready(torch)[1], closure=None),
    lambda torch: ready(torch)[0].load_state_dict({}),
    lambda torch: ready(torch)[0].scale(3),
    lambda torch: torch.amp.GradScaler("cpu", growth_factor=1.0),
    lambda torch: torch.amp.GradScaler("cpu", backoff_factor=1.0),
    lambda torch: torch._amp_update_scale_(torch.ones(1), torch.zeros(1), torch.zeros(1), 2.0, 0.5, 1),
    lambda torch: torch._amp_foreach_non_finite_check_and_unscale_([torch.ones(2)], torch.zeros(2), torch.ones(1)),
    lambda torch: torch._amp_foreach_non_finite_check_and_unscale_([torch.ones(2).int()], torch.zeros(1),
                                                                   torch.ones(1)),
])
def test_what_a_scaler_refuses(call: Any) -> None:
    check_error(call)


def scaler_story(torch: Any) -> list[Any]:
    scaler, optimizer, weight = ready(torch, init_scale=4.0, growth_interval=1)
    seen: list[Any] = [weight.grad.tolist()]
    scaler.step(optimizer)
    scaler.update()
    seen += [scaler.state_dict(), weight.tolist(), weight.grad.tolist()]
    nested = scaler.scale([torch.ones(1), (torch.ones(2), torch.ones(1, dtype=torch.float16))])
    seen += [nested[0].tolist(), nested[1][0].tolist(), str(nested[1][1].dtype), type(nested[1]).__name__]
    scaler.update(3.0)
    seen.append(scaler.get_scale())
    scaler.update(torch.tensor(5.0))
    for copied in (copy.deepcopy(scaler), pickle.loads(pickle.dumps(scaler))):
        seen.append(copied.state_dict())
    other = torch.amp.GradScaler("cpu")
    other.set_growth_factor(4.0)
    other.set_backoff_factor(0.25)
    other.set_growth_interval(7)
    seen.append(other.state_dict())
    other.load_state_dict(scaler.state_dict())
    seen += [other.state_dict(), other.get_growth_factor(), other.get_backoff_factor(), other.get_growth_interval()]
    off = torch.amp.GradScaler("cpu", enabled=False)
    seen += [off.state_dict(), off.get_scale(), off.is_enabled(), off.scale(3)]
    with pytest.warns(UserWarning, match="Disabling"):
        seen.append(torch.amp.GradScaler().is_enabled())
    with pytest.warns(FutureWarning, match="deprecated"):
        seen.append(torch.cpu.amp.GradScaler().is_enabled())
    return seen


def test_a_scalers_life() -> None:
    assert scaler_story(ours) == scaler_story(theirs)


# -- autograd functions and checkpoints --------------------------------------------------------------------------------


def custom_function(torch: Any, cast_inputs: str | None, enabled: bool) -> list[str]:
    seen: list[str] = []

    class Multiply(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu", cast_inputs=cast_inputs and getattr(torch, cast_inputs))
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            seen.extend(str(value) for value in (a.dtype, b.dtype, (a @ b).dtype, torch.is_autocast_enabled("cpu")))
            return a @ b

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx: Any, grad: Any) -> Any:
            a, b = ctx.saved_tensors
            left, right = grad @ b.t(), a.t() @ grad
            seen.extend(str(value) for value in (grad.dtype, left.dtype, torch.is_autocast_enabled("cpu")))
            return left, right

    a, b = torch.ones(2, 2, requires_grad=True), torch.ones(2, 2, dtype=torch.bfloat16, requires_grad=True)
    if not enabled:
        b = b.detach().float().requires_grad_()
    with torch.autocast("cpu", enabled=enabled):
        out = Multiply.apply(a, b)
    out.float().sum().backward()
    return [*seen, str(out.dtype), str(a.grad.dtype), str(b.grad.dtype)]


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("cast_inputs", [None, "float32", "bfloat16"])
def test_custom_functions(cast_inputs: str | None, enabled: bool) -> None:
    assert custom_function(ours, cast_inputs, enabled) == custom_function(theirs, cast_inputs, enabled)


def checkpointed(torch: Any, reentrant: bool) -> tuple[list[str], Any]:
    torch.manual_seed(0)
    layer = torch.nn.Linear(3, 3)
    x = torch.ones(2, 3, requires_grad=True)
    seen: list[str] = []

    def run(value: Any) -> Any:
        out = layer(torch.tanh(layer(value)))
        seen.append(str(out.dtype))
        return out

    with torch.autocast("cpu", dtype=torch.float16):
        out = torch.utils.checkpoint.checkpoint(run, x, use_reentrant=reentrant, early_stop=False)
    out.float().sum().backward()
    return [*seen, str(torch.is_autocast_enabled("cpu"))], layer.weight.grad.numpy()


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints_recompute_in_the_precision_of_forward(reentrant: bool) -> None:
    got, want = checkpointed(ours, reentrant), checkpointed(theirs, reentrant)
    assert got[0] == want[0]
    np.testing.assert_allclose(got[1], want[1], rtol=1e-2, atol=1e-2)
