"""torchmetrics, einops and TensorBoard's writer: small tools that programs use beside a model."""

from __future__ import annotations

import tempfile
from pathlib import Path

import einops
import numpy as np
import torch
import torchmetrics
from einops.layers.torch import Rearrange

from ..harness import Figures, case, summary


@case("torchmetrics", "metrics", quick=True)
def metrics() -> Figures:
    generator = np.random.default_rng(0)
    scores = torch.from_numpy(generator.random((20, 4))).float().softmax(1)
    labels = torch.from_numpy(generator.integers(0, 4, 20))
    figures = {}
    for name in ("Accuracy", "F1Score", "Precision", "Recall", "AUROC", "ConfusionMatrix", "CohenKappa"):
        metric = getattr(torchmetrics, name)(task="multiclass", num_classes=4)
        for part in (slice(0, 8), slice(8, 20)):
            metric.update(scores[part], labels[part])
        figures[name] = summary(metric.compute())
    for name in ("MeanSquaredError", "R2Score", "PearsonCorrCoef", "SpearmanCorrCoef"):
        metric = getattr(torchmetrics, name)()
        metric.update(scores[:, 0], scores[:, 1])
        figures[name] = summary(metric.compute())
    return figures


@case("torchmetrics", "einops")
def rearranged() -> Figures:
    x = torch.arange(48.0).reshape(2, 3, 2, 4).requires_grad_()
    made = einops.rearrange(x, "b c h w -> b (h w) c")
    einops.reduce(made, "b n c -> b c", "max").sum().backward()
    return {"made": summary(made), "gradient": summary(x.grad), "layer": summary(Rearrange("b c h w -> b c (h w)")(x)),
            "product": summary(einops.einsum(made, made, "b i c, b j c -> b i j"))}


@case("torchmetrics", "tensorboard")
def tensorboard() -> Figures:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    with tempfile.TemporaryDirectory() as folder:
        with SummaryWriter(folder) as writer:
            for step in range(3):
                writer.add_scalar("loss", 1.0 / (step + 1), step)
            writer.add_histogram("weights", torch.arange(10.0), 0)
            writer.add_image("picture", torch.rand(3, 4, 4), 0)
            writer.add_text("note", "hello", 0)
            writer.add_hparams({"lr": 0.1}, {"score": 1.0})
        found = EventAccumulator(str(next(Path(folder).glob("events*")))).Reload()
        return {"loss": [one.value for one in found.Scalars("loss")], "tags": [float(len(found.Tags()["histograms"]))]}
