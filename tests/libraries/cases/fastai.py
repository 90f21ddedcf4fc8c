"""fastai: a learner with its loop, callbacks and one-cycle schedule."""

from __future__ import annotations

import torch
from fastai.callback.schedule import Learner  # the schedule's methods are patched into it
from fastai.data.core import DataLoaders
from fastai.data.load import DataLoader
from fastai.losses import CrossEntropyLossFlat
from fastai.metrics import accuracy
from fastai.torch_core import TensorBase, set_seed

from ..harness import Figures, case, summary


def _learner() -> Learner:
    set_seed(4)
    x = torch.randn(64, 6)
    y = (x.sum(1) > 0).long()
    rows = list(zip(x, y))
    loaders = DataLoaders(DataLoader(rows[:48], bs=8, shuffle=True, num_workers=0),
                          DataLoader(rows[48:], bs=8, num_workers=0))
    model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(),
                                torch.nn.Linear(16, 2))
    return Learner(loaders, model, loss_func=CrossEntropyLossFlat(), metrics=accuracy)


@case("fastai", "one_cycle", quick=True)
def one_cycle() -> Figures:
    learner = _learner()
    with learner.no_bar(), learner.no_logging():
        learner.fit_one_cycle(2, 1e-2)
    return {"losses": [float(value) for value in learner.recorder.losses],
            "values": [float(value) for row in learner.recorder.values for value in row],
            "weights": summary(learner.model[0].weight)}


@case("fastai", "subclass")
def subclass() -> Figures:
    """Its tensors keep their class through ops."""

    class Picture(TensorBase):
        pass

    one = Picture(torch.arange(6.0).reshape(2, 3))
    made = (one * 2 + 1).mean(0)
    return {"kept": [float(type(made) is Picture), float(type(one[0]) is Picture)], "value": summary(made)}
