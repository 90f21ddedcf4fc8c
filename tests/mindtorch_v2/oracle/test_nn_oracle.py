"""Every layer against PyTorch: same seed, same weights; same output, gradients, state dict and repr."""

from __future__ import annotations

import re
import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

from harness import assert_same, check_error, data, floating, make, ours, theirs, values, weights  # noqa: E402

Build = Callable[[Any], Any]


class Fixed:
    """Contents of an input that must not require grad."""

    def __init__(self, given: Any) -> None:
        self.given = given


def classes(*shape: int, high: int) -> Any:
    """Class numbers below `high`."""
    return np.random.default_rng(3).integers(0, high, shape), "int64"


def signs(*shape: int) -> Any:
    """-1 and 1."""
    return np.random.default_rng(4).integers(0, 2, shape) * 2.0 - 1.0, "float32"


def observe(torch: Any, build: Build, given: tuple[Any, ...], training: bool) -> dict[str, Any]:
    """All there is to see of a layer on one of the two modules."""
    torch.manual_seed(11)
    layer = build(torch)
    layer.train(training)
    found: dict[str, Any] = {"repr": repr(layer), "keys": list(layer.state_dict())}
    found.update({f"initial {name}": tensor.clone() for name, tensor in layer.state_dict().items()})
    inputs = [make(torch, g.given, False) if isinstance(g, Fixed) else make(torch, g, True) for g in given]
    torch.manual_seed(12)
    output = layer(*inputs)
    found["output"] = output
    if floating(output) and output.requires_grad:
        torch.autograd.backward(output, weights(torch, [output])[0])
        for i, tensor in enumerate(inputs):
            if tensor.requires_grad:
                found[f"gradient of input {i}"] = tensor.grad
        for name, parameter in layer.named_parameters():
            found[f"gradient of {name}"] = parameter.grad
    found.update({f"final {name}": tensor for name, tensor in layer.state_dict().items()})
    return found


def compare(build: Build, *given: Any, training: bool = True) -> None:
    """A layer behaves the same on both."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        want = observe(theirs, build, given, training)
        got = observe(ours, build, given, training)
    assert got.keys() == want.keys()
    for label, expected in want.items():
        if expected is None or got[label] is None:
            assert got[label] is expected, label
        elif label in ("repr", "keys"):
            assert got[label] == expected, label
        else:
            assert_same(got[label], expected, label, tolerance=1e-6 if label.startswith("initial") else None)


ACTIVATIONS: dict[str, Build] = {
    "Threshold": lambda t: t.nn.Threshold(0.1, 20.0),
    "ReLU": lambda t: t.nn.ReLU(),
    "RReLU": lambda t: t.nn.RReLU(0.1, 0.3),
    "Hardtanh": lambda t: t.nn.Hardtanh(-0.5, 0.7),
    "ReLU6": lambda t: t.nn.ReLU6(),
    "Sigmoid": lambda t: t.nn.Sigmoid(),
    "Hardsigmoid": lambda t: t.nn.Hardsigmoid(),
    "Tanh": lambda t: t.nn.Tanh(),
    "SiLU": lambda t: t.nn.SiLU(),
    "Mish": lambda t: t.nn.Mish(),
    "Hardswish": lambda t: t.nn.Hardswish(),
    "ELU": lambda t: t.nn.ELU(1.3),
    "CELU": lambda t: t.nn.CELU(1.3),
    "SELU": lambda t: t.nn.SELU(),
    "GLU": lambda t: t.nn.GLU(),
    "GELU": lambda t: t.nn.GELU(),
    "GELU tanh": lambda t: t.nn.GELU("tanh"),
    "Hardshrink": lambda t: t.nn.Hardshrink(),
    "LeakyReLU": lambda t: t.nn.LeakyReLU(0.2),
    "LogSigmoid": lambda t: t.nn.LogSigmoid(),
    "Softplus": lambda t: t.nn.Softplus(2.0, 3.0),
    "Softshrink": lambda t: t.nn.Softshrink(0.3),
    "PReLU": lambda t: t.nn.PReLU(),
    "PReLU channels": lambda t: t.nn.PReLU(3, init=0.1),
    "Softsign": lambda t: t.nn.Softsign(),
    "Tanhshrink": lambda t: t.nn.Tanhshrink(),
    "Softmin": lambda t: t.nn.Softmin(dim=1),
    "Softmax": lambda t: t.nn.Softmax(dim=-1),
    "Softmax implicit": lambda t: t.nn.Softmax(),
    "LogSoftmax": lambda t: t.nn.LogSoftmax(dim=1),
    "Identity": lambda t: t.nn.Identity(3, unused=True),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("training", [True, False])
def test_activation(name: str, training: bool) -> None:
    if name == "RReLU" and training:
        pytest.skip("aten::rrelu does not draw slopes yet")
    compare(ACTIVATIONS[name], data(2, 3, 4), training=training)


@pytest.mark.parametrize("name", ["ReLU", "ReLU6", "SiLU", "ELU", "CELU", "SELU", "LeakyReLU", "Hardtanh", "Mish",
                                  "Hardswish", "Hardsigmoid"])
def test_activation_in_place(name: str) -> None:
    # The layer overwrites what came before it, here the result of a multiplication.
    def build(torch: Any) -> Any:
        class Overwrite(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.act = getattr(torch.nn, name)(inplace=True)

            def forward(self, x: Any) -> Any:
                made = x * 1.5
                assert self.act(made) is made
                return made

        return Overwrite()

    compare(build, data(3, 4))


def test_softmax2d() -> None:
    compare(lambda t: t.nn.Softmax2d(), data(2, 3, 2, 2))


LAYERS: dict[str, tuple[Build, tuple[Any, ...]]] = {
    "Linear": (lambda t: t.nn.Linear(4, 3), (data(2, 4),)),
    "Linear 3d": (lambda t: t.nn.Linear(4, 3), (data(2, 5, 4),)),
    "Linear no bias": (lambda t: t.nn.Linear(4, 3, bias=False), (data(2, 4),)),
    "Linear large": (lambda t: t.nn.Linear(64, 48), (data(8, 64),)),
    "Linear double": (lambda t: t.nn.Linear(4, 3, dtype=t.float64), (data(2, 4, dtype="float64"),)),
    "Bilinear": (lambda t: t.nn.Bilinear(4, 3, 2), (data(5, 4), data(5, 3))),
    "Embedding": (lambda t: t.nn.Embedding(7, 5), (classes(3, 4, high=7),)),
    "Embedding padding": (lambda t: t.nn.Embedding(7, 5, padding_idx=-2), (classes(3, 4, high=7),)),
    "Embedding scaled": (lambda t: t.nn.Embedding(7, 5, scale_grad_by_freq=True), (classes(3, 4, high=7),)),
    "Embedding max norm": (lambda t: t.nn.Embedding(7, 5, max_norm=1.0), (classes(3, 4, high=7),)),
    "Embedding pretrained": (lambda t: t.nn.Embedding.from_pretrained(t.ones(7, 2), freeze=False),
                             (classes(3, high=7),)),
    "LayerNorm": (lambda t: t.nn.LayerNorm(4), (data(2, 3, 4),)),
    "LayerNorm 2d": (lambda t: t.nn.LayerNorm((3, 4), eps=1e-3), (data(2, 3, 4),)),
    "LayerNorm no bias": (lambda t: t.nn.LayerNorm(4, bias=False), (data(2, 3, 4),)),
    "LayerNorm plain": (lambda t: t.nn.LayerNorm(4, elementwise_affine=False), (data(2, 3, 4),)),
    "RMSNorm": (lambda t: t.nn.RMSNorm(4), (data(2, 3, 4),)),
    "RMSNorm eps": (lambda t: t.nn.RMSNorm(4, eps=0.1, elementwise_affine=False), (data(2, 3, 4),)),
    "GroupNorm": (lambda t: t.nn.GroupNorm(2, 6), (data(2, 6, 3),)),
    "GroupNorm plain": (lambda t: t.nn.GroupNorm(2, 6, affine=False), (data(2, 6, 3),)),
    "BatchNorm1d": (lambda t: t.nn.BatchNorm1d(3), (data(5, 3),)),
    "BatchNorm1d 3d": (lambda t: t.nn.BatchNorm1d(3), (data(5, 3, 2),)),
    "BatchNorm1d average": (lambda t: t.nn.BatchNorm1d(3, momentum=None), (data(5, 3),)),
    "BatchNorm1d untracked": (lambda t: t.nn.BatchNorm1d(3, track_running_stats=False), (data(5, 3),)),
    "BatchNorm1d no bias": (lambda t: t.nn.BatchNorm1d(3, bias=False), (data(5, 3),)),
    "BatchNorm2d": (lambda t: t.nn.BatchNorm2d(3, affine=False), (data(2, 3, 4, 2),)),
    "BatchNorm3d": (lambda t: t.nn.BatchNorm3d(3), (data(2, 3, 2, 2, 2),)),
    "Dropout": (lambda t: t.nn.Dropout(0.3), (data(5, 6),)),
    "Dropout1d": (lambda t: t.nn.Dropout1d(0.5), (data(5, 6, 2),)),
    "Dropout1d unbatched": (lambda t: t.nn.Dropout1d(0.5), (data(6, 2),)),
    "Dropout2d": (lambda t: t.nn.Dropout2d(0.5), (data(2, 6, 2, 2),)),
    "Dropout3d": (lambda t: t.nn.Dropout3d(0.5), (data(2, 6, 2, 2, 2),)),
    "Dropout3d unbatched": (lambda t: t.nn.Dropout3d(0.5), (data(6, 2, 2, 2),)),
    "AlphaDropout": (lambda t: t.nn.AlphaDropout(0.3), (data(5, 6),)),
    "FeatureAlphaDropout": (lambda t: t.nn.FeatureAlphaDropout(0.3), (data(5, 6, 2),)),
    "Flatten": (lambda t: t.nn.Flatten(), (data(2, 3, 4),)),
    "Unflatten": (lambda t: t.nn.Unflatten(1, (2, 3)), (data(2, 6),)),
    "CosineSimilarity": (lambda t: t.nn.CosineSimilarity(dim=1), (data(4, 3), data(4, 3, seed=1))),
    "PairwiseDistance": (lambda t: t.nn.PairwiseDistance(p=2), (data(4, 3), data(4, 3, seed=1))),
    "PairwiseDistance 1": (lambda t: t.nn.PairwiseDistance(p=1, keepdim=True), (data(4, 3), data(4, 3, seed=1))),
    "Sequential": (lambda t: t.nn.Sequential(OrderedDict(a=t.nn.Linear(4, 5), b=t.nn.ReLU(), c=t.nn.Linear(5, 2))),
                   (data(3, 4),)),
    "nested": (lambda t: t.nn.Sequential(t.nn.Sequential(t.nn.Linear(4, 4), t.nn.Tanh()), t.nn.BatchNorm1d(4)),
               (data(3, 4),)),
}
LAYERS.update({
    f"{mode}Pad{n}d": ((lambda t, mode=mode, n=n: getattr(t.nn, f"{mode}Pad{n}d")(1)), (data(2, 2, *[4] * n),))
    for mode in ("Zero", "Reflection", "Replication", "Circular") for n in (1, 2, 3)
})
LAYERS["ConstantPad2d"] = (lambda t: t.nn.ConstantPad2d((1, 0, 2, 1), 3.5), (data(2, 3, 4),))


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("training", [True, False])
def test_layer(name: str, training: bool) -> None:
    build, given = LAYERS[name]
    compare(build, *given, training=training)


LOGITS, PROBABILITIES = data(4, 3), data(4, 3, low=0.05, high=0.95, seed=2)
LOSSES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "L1Loss": (lambda t, **k: t.nn.L1Loss(**k), (data(4, 3), data(4, 3, seed=1))),
    "MSELoss": (lambda t, **k: t.nn.MSELoss(**k), (data(4, 3), data(4, 3, seed=1))),
    "SmoothL1Loss": (lambda t, **k: t.nn.SmoothL1Loss(beta=0.7, **k), (data(4, 3), data(4, 3, seed=1))),
    "SmoothL1Loss zero": (lambda t, **k: t.nn.SmoothL1Loss(beta=0.0, **k), (data(4, 3), data(4, 3, seed=1))),
    "HuberLoss": (lambda t, **k: t.nn.HuberLoss(delta=0.7, **k), (data(4, 3), data(4, 3, seed=1))),
    "CrossEntropyLoss": (lambda t, **k: t.nn.CrossEntropyLoss(**k), (LOGITS, classes(4, high=3))),
    "CrossEntropyLoss 3d": (lambda t, **k: t.nn.CrossEntropyLoss(ignore_index=1, **k),
                            (data(4, 3, 2), classes(4, 2, high=3))),
    "CrossEntropyLoss weights": (
        lambda t, **k: t.nn.CrossEntropyLoss(weight=t.tensor([1.0, 2.0, 0.5]), label_smoothing=0.1, **k),
        (LOGITS, classes(4, high=3))),
    "CrossEntropyLoss probabilities": (lambda t, **k: t.nn.CrossEntropyLoss(**k), (LOGITS, PROBABILITIES)),
    "NLLLoss": (lambda t, **k: t.nn.NLLLoss(weight=t.tensor([1.0, 2.0, 0.5]), **k), (LOGITS, classes(4, high=3))),
    "BCELoss": (lambda t, **k: t.nn.BCELoss(**k), (PROBABILITIES, data(4, 3, low=0, high=1))),
    "BCELoss weights": (lambda t, **k: t.nn.BCELoss(weight=t.tensor([1.0, 2.0, 0.5]), **k),
                        (PROBABILITIES, data(4, 3, low=0, high=1))),
    "BCEWithLogitsLoss": (lambda t, **k: t.nn.BCEWithLogitsLoss(pos_weight=t.tensor([1.0, 2.0, 0.5]), **k),
                          (LOGITS, data(4, 3, low=0, high=1))),
    "KLDivLoss": (lambda t, **k: t.nn.KLDivLoss(**k), (LOGITS, PROBABILITIES)),
    "KLDivLoss log": (lambda t, **k: t.nn.KLDivLoss(log_target=True, **k), (LOGITS, data(4, 3, seed=5))),
    "PoissonNLLLoss": (lambda t, **k: t.nn.PoissonNLLLoss(full=True, **k), (LOGITS, data(4, 3, low=0, high=5))),
    "PoissonNLLLoss plain": (lambda t, **k: t.nn.PoissonNLLLoss(log_input=False, **k),
                             (PROBABILITIES, data(4, 3, low=0, high=5))),
    "GaussianNLLLoss": (lambda t, **k: t.nn.GaussianNLLLoss(full=True, **k),
                        (LOGITS, data(4, 3, seed=1), data(4, 3, low=0.1, high=1.0))),
    "HingeEmbeddingLoss": (lambda t, **k: t.nn.HingeEmbeddingLoss(**k), (LOGITS, signs(4, 3))),
    "SoftMarginLoss": (lambda t, **k: t.nn.SoftMarginLoss(**k), (LOGITS, Fixed(signs(4, 3)))),
    "MarginRankingLoss": (lambda t, **k: t.nn.MarginRankingLoss(0.3, **k), (data(4), data(4, seed=1), signs(4))),
    "CosineEmbeddingLoss": (lambda t, **k: t.nn.CosineEmbeddingLoss(0.1, **k), (LOGITS, data(4, 3, seed=1), signs(4))),
    "TripletMarginLoss": (lambda t, **k: t.nn.TripletMarginLoss(swap=True, **k),
                          (LOGITS, data(4, 3, seed=1), data(4, 3, seed=2))),
    "TripletMarginWithDistanceLoss": (
        lambda t, **k: t.nn.TripletMarginWithDistanceLoss(distance_function=t.nn.PairwiseDistance(1.0), swap=True, **k),
        (LOGITS, data(4, 3, seed=1), data(4, 3, seed=2))),
    "MultiLabelSoftMarginLoss": (lambda t, **k: t.nn.MultiLabelSoftMarginLoss(**k),
                                 (LOGITS, data(4, 3, low=0, high=1))),
    "MultiMarginLoss": (lambda t, **k: t.nn.MultiMarginLoss(p=2, **k), (LOGITS, classes(4, high=3))),
    "MultiLabelMarginLoss": (lambda t, **k: t.nn.MultiLabelMarginLoss(**k),
                             (LOGITS, values([[0, -1, 1], [1, 2, -1], [-1, 0, 1], [2, 1, 0]], "int64"))),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_loss(name: str, reduction: str) -> None:
    build, given = LOSSES[name]
    compare(lambda t: build(t, reduction=reduction), *given)


def test_kl_batchmean() -> None:
    compare(lambda t: t.nn.KLDivLoss(reduction="batchmean"), LOGITS, PROBABILITIES)


@pytest.mark.parametrize(("size_average", "reduce"), [(True, None), (False, None), (None, False), (False, True)])
def test_old_reduction_flags(size_average: bool | None, reduce: bool | None) -> None:
    texts = []
    for module in (theirs, ours):
        with pytest.warns(UserWarning, match="size_average and reduce args will be deprecated") as caught:
            loss = module.nn.MSELoss(size_average=size_average, reduce=reduce)
        texts.append((str(caught[0].message), loss.reduction))
        with pytest.warns(UserWarning, match="size_average and reduce args"):
            module.nn.functional.mse_loss(module.ones(2), module.zeros(2), size_average, reduce)
    assert texts[0] == texts[1]


REPRS: list[Build] = [
    lambda t: t.nn.ModuleList([t.nn.ReLU(), t.nn.ReLU(), t.nn.Sequential(t.nn.Tanh(), t.nn.Tanh())]),
    lambda t: t.nn.ModuleList(),
    lambda t: t.nn.ModuleDict({"a": t.nn.ReLU(inplace=True), "b": t.nn.Dropout(0.1)}),
    lambda t: t.nn.ParameterList([t.ones(2, 3), t.nn.Parameter(t.ones(1)), 3]),
    lambda t: t.nn.ParameterDict({"a": t.ones(2, 3), "b": t.nn.Parameter(t.ones(1)), "c": "x"}),
    lambda t: t.nn.Parameter(t.ones(2)),
    lambda t: t.nn.Parameter(t.ones(2, dtype=t.int64), requires_grad=False),
    lambda t: t.nn.Embedding(3, 2, padding_idx=0, max_norm=2.0, norm_type=1.0, scale_grad_by_freq=True, sparse=True),
    lambda t: t.nn.BCEWithLogitsLoss(pos_weight=t.ones(2)),
    lambda t: t.nn.Hardtanh(inplace=True),
    lambda t: t.nn.Threshold(1, 2, inplace=True),
    lambda t: t.nn.Sequential(),
    lambda t: t.nn.Module(),
]


@pytest.mark.parametrize("build", REPRS)
def test_repr(build: Build) -> None:
    assert repr(build(ours)) == repr(build(theirs))


def broken_load(torch: Any, change: Callable[[Any, Any], None]) -> None:
    """Load a changed state dict into a small net."""
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    state = net.state_dict()
    change(torch, state)
    net.load_state_dict(state)


@pytest.mark.parametrize("change", [
    lambda t, s: s.pop("0.weight"),
    lambda t, s: s.update({"2.weight": t.ones(1), "bare": t.ones(1), "0.extra": t.ones(1)}),
    lambda t, s: s.update({"0.weight": t.ones(5, 5), "1.running_mean": t.ones(2)}),
    lambda t, s: [s.pop("0.weight"), s.pop("1.num_batches_tracked"), s.update({"x": t.ones(1), "0.bias": t.ones(1)})],
    lambda t, s: s.update({"0.weight": 3}),
])
def test_load_error_texts(change: Any) -> None:
    texts = []
    for module in (theirs, ours):
        with pytest.raises(RuntimeError) as raised:
            broken_load(module, change)
        texts.append(str(raised.value))
    assert texts[1] == texts[0]


def test_batch_norm_reads_version_1() -> None:
    for module in (theirs, ours):
        net = module.nn.BatchNorm1d(3)
        state = {name: tensor for name, tensor in net.state_dict().items() if name != "num_batches_tracked"}
        assert str(net.load_state_dict(state)) == "<All keys matched successfully>"


def setter(name: str, value: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda torch: setattr(torch.nn.Linear(2, 2), name, value(torch))


@pytest.mark.parametrize("action", [
    setter("weight", lambda t: t.ones(2)),
    setter("weight", lambda t: 3),
    lambda t: t.nn.Linear(2, 2).register_parameter("a.b", None),
    lambda t: t.nn.Linear(2, 2).register_parameter("forward", None),
    lambda t: t.nn.Linear(2, 2).register_parameter("x", 3),
    lambda t: t.nn.Linear(2, 2).register_buffer("weight", None),
    lambda t: t.nn.Linear(2, 2).register_buffer("x", "y"),
    lambda t: t.nn.Linear(2, 2).add_module("", t.nn.ReLU()),
    lambda t: t.nn.Linear(2, 2).add_module("x", 3),
    lambda t: t.nn.Linear(2, 2).missing,
    lambda t: t.nn.Linear(2, 2).get_parameter("missing"),
    lambda t: t.nn.Linear(2, 2).get_submodule("weight"),
    lambda t: t.nn.Linear(2, 2).to(t.int64),
    lambda t: t.nn.Linear(2, 2).train(3),
    lambda t: t.nn.Dropout(1.5),
    lambda t: t.nn.GroupNorm(2, 3),
    lambda t: t.nn.BatchNorm1d(3)(t.ones(3)),
    lambda t: t.nn.BatchNorm1d(3)(t.ones(1, 3)),
    lambda t: t.nn.BatchNorm2d(3)(t.ones(2, 3)),
    lambda t: t.nn.CircularPad1d(1)(t.ones(2, 3, 4, 5)),
    lambda t: t.nn.Embedding(3, 2, padding_idx=5),
    lambda t: t.nn.Unflatten(1, (2, "x")),
    lambda t: t.nn.TripletMarginLoss(margin=-1.0),
    lambda t: t.nn.functional.mse_loss(t.ones(2), t.ones(2), reduction="none of these"),
    lambda t: t.nn.functional.binary_cross_entropy(t.ones(2), t.ones(3)),
    lambda t: t.nn.functional.dropout(t.ones(2), -0.5),
    lambda t: t.nn.Sequential(t.nn.ReLU())[5],
    lambda t: t.nn.Module()(1),
])
def test_error_texts(action: Callable[[Any], Any]) -> None:
    texts = []
    for module in (theirs, ours):
        with pytest.raises(Exception) as raised:  # noqa: PT011
            action(module)
        texts.append((raised.type.__name__, re.sub(r"\s+", " ", str(raised.value))))
    assert texts[1] == texts[0]


def test_wrong_input_type() -> None:
    check_error(lambda torch: torch.nn.Linear(2, 2)(3))


def test_functional_signature_of_direct_ops() -> None:
    for name in ours.nn.functional.DIRECT:
        assert hasattr(theirs.nn.functional, name), name
    for name in ours.nn.functional.__all__:
        assert hasattr(theirs.nn.functional, name), name
    for name in ours.nn.__all__:
        assert hasattr(theirs.nn, name), name


@pytest.mark.parametrize("function", [
    lambda F, x: F.normalize(x, dim=1),
    lambda F, x: F.normalize(x, p=1.0, dim=0),
    lambda F, x: F.softmax(x, 1, dtype=None),
    lambda F, x: F.gelu(x, approximate="tanh"),
    lambda F, x: F.pad(x, (1, 2)),
    lambda F, x: F.cosine_similarity(x, x + 1, dim=1),
    lambda F, x: F.logsigmoid(x),
    lambda F, x: F.softplus(x, beta=2),
    lambda F, x: F.layer_norm(x, (4,)),
    lambda F, x: F.rms_norm(x, (4,)),
    lambda F, x: F.mse_loss(x, x * 2, weight=x.detach().abs()),
    lambda F, x: F.l1_loss(x, x * 2, weight=x.detach().abs(), reduction="sum"),
    lambda F, x: F.huber_loss(x, x * 2, weight=x.detach().abs()),
    lambda F, x: F.gumbel_softmax(x, hard=True),
    lambda F, x: F.gumbel_softmax(x, tau=0.5),
])
def test_functional(function: Callable[..., Any]) -> None:
    results = []
    for module in (theirs, ours):
        x = make(module, data(3, 4), True)
        module.manual_seed(5)
        out = function(module.nn.functional, x)
        grad = module.autograd.grad(out, x, weights(module, [out])[0])[0]
        results.append((out, grad))
    for got, want, label in zip(results[1], results[0], ("output", "gradient"), strict=True):
        assert_same(got, want, label)


def full_backward_trace(torch: Any) -> list[Any]:
    """What full backward hooks see in a two-layer net."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh())
    seen: list[Any] = []
    for i, layer in enumerate(net):
        layer.register_full_backward_pre_hook(lambda m, go, i=i: seen.append((i, "pre", go[0])))
        layer.register_full_backward_hook(lambda m, gi, go, i=i: seen.append((i, "post", gi[0], go[0])))
    x = make(torch, data(4, 3), True)
    net(x).sum().backward()
    return [*seen, x.grad, net[0].weight.grad]


def test_full_backward_hooks() -> None:
    want, got = full_backward_trace(theirs), full_backward_trace(ours)
    assert len(got) == len(want)
    for mine, expected in zip(got, want, strict=True):
        pairs = zip(mine, expected, strict=True) if isinstance(expected, tuple) else [(mine, expected)]
        for a, b in pairs:
            assert_same(a, b, "hook")


@pytest.mark.parametrize("norm_type", [1.0, 2.0, float("inf")])
@pytest.mark.parametrize("foreach", [None, False])
def test_clip_grad(norm_type: float, foreach: bool | None) -> None:
    results = []
    for module in (theirs, ours):
        parameters = [module.nn.Parameter(module.zeros(3)), module.nn.Parameter(module.zeros(2, 2)),
                      module.nn.Parameter(module.zeros(1))]
        parameters[0].grad = make(module, data(3), False)
        parameters[1].grad = make(module, data(2, 2), False)
        norm = module.nn.utils.clip_grad_norm_(parameters, 0.7, norm_type, foreach=foreach)
        clipped = [p.grad.clone() for p in parameters[:2]]
        module.nn.utils.clip_grad_value_(parameters, 0.2, foreach=foreach)
        results.append([norm, *clipped, *[p.grad for p in parameters[:2]]])
    for got, want in zip(results[1], results[0], strict=True):
        assert_same(got, want, "clipped")


def test_parameters_to_vector_and_back() -> None:
    for module in (theirs, ours):
        module.manual_seed(0)
        net = module.nn.Linear(3, 2)
        vector = module.nn.utils.parameters_to_vector(net.parameters())
        assert tuple(vector.shape) == (8,)
        module.nn.utils.vector_to_parameters(vector.detach() * 2, net.parameters())
        assert net.bias.tolist() == pytest.approx((vector[6:] * 2).tolist())
