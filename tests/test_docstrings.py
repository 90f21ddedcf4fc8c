"""Every module can be imported, and every example in a docstring gives the shown result."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import mindtorch_v2
import mtprof

# `transfer_to_npu` gives names of CUDA another meaning when it is imported: its test has a process of its own.
WITHOUT = ("__main__", "_alias_in_children", "_recorder", "_kineto_scan", "tensorboard", "transfer_to_npu")
FOUND = [module for package in (mindtorch_v2, mtprof)
         for module in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
         if not module.name.endswith(WITHOUT)]


def has_example(module: pkgutil.ModuleInfo) -> bool:
    """Whether the text has one: to look for examples in all objects of a module takes far longer."""
    loader = module.module_finder.find_spec(module.name, None).loader
    return ">>>" in (loader.get_source(module.name) or "")


EXAMPLES = sorted(module.name for module in FOUND if has_example(module))


def test_every_module_can_be_imported() -> None:
    for module in FOUND:
        importlib.import_module(module.name)


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_examples() -> None:
    for package in ("mindtorch_v2.", "mtprof."):
        assert sum(name.startswith(package) for name in EXAMPLES) > 10
