"""The module of PyTorch that a layer belongs to, if it is not the file that defines it.

Files that hold whole modules name classes by module, and programs import them from there.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

# By file: the modules that its classes belong to.
HOMES: dict[str, dict[str, str]] = {
    "_parameter_containers": {"container": "ParameterDict ParameterList"},
    "attention": {"activation": "MultiheadAttention"},
    "lazy_layers": {
        "batchnorm": "LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d",
        "conv": "LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d",
        "instancenorm": "LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d",
        "linear": "LazyLinear",
    },
    "leftovers": {
        "container": "Container",
        "loss": "NLLLoss2d",
        "normalization": "CrossMapLRN2d",
        "pooling": "FractionalMaxPool2d FractionalMaxPool3d",
    },
    "linear_cross_entropy": {"loss": "LinearCrossEntropyLoss"},
    "pixelshuffle": {"channelshuffle": "ChannelShuffle"},
    "rnn_cell": {"rnn": "GRUCell LSTMCell RNNCell RNNCellBase"},
    "transformer_layers": {"transformer": "TransformerDecoderLayer TransformerEncoderLayer"},
}

# Names of other modules that each of PyTorch's modules of layers may have, so that libraries take them from there.
BORROWED = {name: module for module, names in {
    "..parameter": "Parameter UninitializedBuffer UninitializedParameter",
    ".lazy": "LazyModuleMixin",
    ".module": "Module",
    ".utils": "_ntuple _pair _quadruple _reverse_repeat_tuple _single _triple",
}.items() for name in names.split()}


def settle(file: str) -> None:
    """Set the module of the classes of a file, which is given by its module's name."""
    package, _, short = file.rpartition(".")
    package = sys.modules[package].__name__  # the outside name while the package stands in for `torch`
    for home, names in HOMES[short].items():
        for name in names.split():
            getattr(sys.modules[file], name).__module__ = f"{package}.{home}"


def elsewhere(module: str) -> Callable[[str], Any]:
    """A `__getattr__` for a module to which names of other files belong; these are read when one is asked for."""
    package, _, home = module.rpartition(".")
    files = {name: file for file, homes in HOMES.items() for name in homes.get(home, "").split()}

    def find(name: str) -> Any:
        if name in BORROWED:
            return getattr(importlib.import_module(BORROWED[name], package), name)
        if name not in files:
            raise AttributeError(f"module '{module.replace('mindtorch_v2', 'torch', 1)}' has no attribute '{name}'")
        return getattr(importlib.import_module(f"{package}.{files[name]}"), name)

    return find
