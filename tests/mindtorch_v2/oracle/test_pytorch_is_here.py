"""The version of PyTorch that the tests beside this one compare with; without it, they are not collected."""

from __future__ import annotations

import pytest


def test_version():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed, so nothing is compared with it: make oracle")
    assert torch.__version__.startswith("2.13."), "the comparisons were written for PyTorch 2.13"
