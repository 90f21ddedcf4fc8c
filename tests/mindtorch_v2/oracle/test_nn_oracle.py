"""Every layer against PyTorch: same seed, same weights; same output, gradients, state dict and repr."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

from harness import data  # noqa: E402
from nn_compare import Build, classes, compare  # noqa: E402

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
