"""Every example in a docstring of mtprof runs and shows what it says."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import mtprof

MODULES = sorted(m.name for m in pkgutil.walk_packages(mtprof.__path__, "mtprof.")
                 if not m.name.endswith(("__main__", "_kineto_scan")))


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
