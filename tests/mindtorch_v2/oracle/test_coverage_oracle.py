"""The checked-in list of names is PyTorch's."""

from __future__ import annotations

import json

import pytest
from public_names import LIST, public_names

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")


@pytest.mark.filterwarnings("ignore")
def test_the_list_of_names_is_pytorchs():
    assert json.loads(LIST.read_text(encoding="utf-8")) == public_names()
