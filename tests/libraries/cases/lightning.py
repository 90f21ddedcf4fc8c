"""Lightning: a Trainer with callbacks, checkpoints and the PyTorch profiler."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from lightning.pytorch.profilers import PyTorchProfiler

from ..harness import Figures, case, summary

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class _Model(lightning.LightningModule):
    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.net = torch.nn.Sequential(torch.nn.Linear(8, width), torch.nn.ReLU(), torch.nn.Dropout(0.1),
                                       torch.nn.Linear(width, 1))
        self.seen: list[float] = []

    def training_step(self, batch: Any, number: int) -> Any:
        x, y = batch
        loss = torch.nn.functional.mse_loss(self.net(x), y)
        self.log("train", loss)
        self.seen.append(float(loss.detach()))
        return loss

    def validation_step(self, batch: Any, number: int) -> None:
        x, y = batch
        self.log("held_out", torch.nn.functional.mse_loss(self.net(x), y))

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.Adam(self.parameters(), lr=1e-2)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)]


def _loader(shuffle: bool) -> Any:
    x = torch.linspace(-1, 1, 64).reshape(8, 8).repeat(4, 1)
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4,
                                       shuffle=shuffle)


def _trainer(folder: str, **options: Any) -> Any:
    return lightning.Trainer(default_root_dir=folder, accelerator="cpu", devices=1, logger=False,
                             enable_progress_bar=False, enable_model_summary=False, **options)


@case("lightning", "fit", quick=True)
def fit() -> Figures:
    lightning.seed_everything(1, verbose=False)
    model = _Model()
    with tempfile.TemporaryDirectory() as folder:
        keeper = ModelCheckpoint(folder, monitor="held_out", save_last=True)
        trainer = _trainer(folder, max_epochs=3, gradient_clip_val=0.5, callbacks=[keeper, EarlyStopping("held_out")])
        trainer.fit(model, _loader(True), _loader(False))
        held_out = float(trainer.callback_metrics["held_out"])
        again = _Model.load_from_checkpoint(keeper.last_model_path, weights_only=False)
        more = _trainer(folder, max_epochs=4, enable_checkpointing=False)
        resumed = _Model()
        more.fit(resumed, _loader(False), ckpt_path=keeper.last_model_path, weights_only=False)
    return {"losses": model.seen, "held_out": [held_out], "loaded": summary(again.net[0].weight),
            "resumed": resumed.seen}


@case("lightning", "profiler")
def profiler() -> Figures:
    """Lightning's own use of the profiler leaves a trace and a table with the optimizer's row."""
    lightning.seed_everything(1, verbose=False)
    with tempfile.TemporaryDirectory() as folder:
        watch = PyTorchProfiler(dirpath=folder, filename="prof", export_to_chrome=True, row_limit=40,
                                sort_by_key="cpu_time_total")
        _trainer(folder, max_steps=6, profiler=watch, enable_checkpointing=False).fit(_Model(), _loader(False))
        text = next(Path(folder).glob("*prof*.txt")).read_text()
        traces = list(Path(folder).glob("*.json"))
        return {"optimizer": [float("Optimizer.step#Adam.step" in text)], "linear": [float("aten::linear" in text)],
                "traces": [float(len(traces) > 0)]}
