"""For all tests: none of them depends on how busy the machine is, and `make test` is quick."""

from __future__ import annotations

import gc
import os
import signal
from typing import Any

import pytest

from length import LONG, examples

try:
    from hypothesis import HealthCheck, settings
except ImportError:  # some parts are tested where it is not installed
    pass
else:
    # A long run by hand draws new examples. Elsewhere they are the same each time: a failure is that of the change.
    settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow],
                              max_examples=examples(100), derandomize=not LONG or "CI" in os.environ)
    settings.load_profile("any machine")


def pytest_configure() -> None:
    # In the background of a script SIGINT is ignored, and children inherit that. Tests interrupt themselves and others.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[Any]) -> None:
    if not LONG:
        for item in items:
            if item.get_closest_marker("long"):
                item.add_marker(pytest.mark.skip(reason="it is slow: make test-long"))


@pytest.fixture(scope="module", autouse=True)
def nothing_old_is_looked_at() -> None:
    """What was imported and made before stays: the garbage collector need not walk it in every test."""
    gc.collect()
    gc.freeze()
