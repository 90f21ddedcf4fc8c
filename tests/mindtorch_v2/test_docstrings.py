"""Every example in a docstring runs and shows what it says."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import mindtorch_v2

MODULES = sorted(m.name for m in pkgutil.walk_packages(mindtorch_v2.__path__, "mindtorch_v2.")
                 if not m.name.endswith(("__main__", "_alias_in_children", "_recorder", "tensorboard")))


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0


def test_there_are_examples():
    assert sum(len(doctest.DocTestFinder().find(importlib.import_module(name))) > 0 for name in MODULES) > 10
