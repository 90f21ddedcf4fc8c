"""`torch.optim`: optimizers and learning rate schedules."""

from __future__ import annotations

import importlib
from typing import Any

from .._backends.cpu.heap import touch_reserve
from .._dispatch.dispatcher import make_ready
from . import lr_scheduler, optimizer
from ._adafactor import Adafactor
from ._muon import Muon
from .adadelta import Adadelta
from .adagrad import Adagrad
from .adam import Adam, AdamW
from .adamax import Adamax
from .asgd import ASGD
from .lbfgs import LBFGS
from .nadam import NAdam
from .optimizer import Optimizer
from .radam import RAdam
from .rmsprop import RMSprop
from .rprop import Rprop
from .sgd import SGD
from .sparse_adam import SparseAdam

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SparseAdam",
    "lr_scheduler",
    "optimizer",
    "swap_in_optimizer_params_and_state",
]

# What the steps of SGD and Adam use.
make_ready("add_.Tensor", "mul_.Tensor", "lerp_.Scalar", "addcmul_", "addcdiv_", "sqrt", "div.Tensor", "zeros_like",
           "zero_", "lift_fresh", "detach_", "to.dtype_layout", "item", "_local_scalar_dense")
touch_reserve()  # for the gradients and averages of the first step

Adafactor.__module__ = Muon.__module__ = __name__  # as files name them
AdamW.__module__ = f"{__name__}.adamw"


def __getattr__(name: str) -> Any:
    # Loaded when first asked for: what a program with an ordinary optimizer does not need.
    if name in ("swa_utils", "_functional", "adamw"):
        return importlib.import_module(f"{__name__}.{name}")
    if name == "swap_in_optimizer_params_and_state":
        return importlib.import_module(f"{__name__}._stateless").swap_in_optimizer_params_and_state
    raise AttributeError(f"module 'torch.optim' has no attribute '{name}'")
