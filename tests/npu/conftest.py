"""The simulator, built once; a fresh device for each test, and nothing left alive after it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from acl import Acl

from mindtorch_v2._backends.npu.sim import build


@pytest.fixture(scope="session")
def simulator() -> str:
    try:
        return str(build.library(os.environ.get("MINDTORCH_NPU_SIM_SANITIZE", "")))
    except build.SimulatorBuildError as error:
        pytest.skip(str(error))


@pytest.fixture
def acl(simulator: str) -> Iterator[Acl]:
    acl = Acl(simulator)
    for key, value in (
        ("model", "zero"),
        ("faults", ""),
        ("devices", "2"),
        ("memory", "256M"),
        ("poison", "1"),
        ("tail", "1"),
    ):
        acl.call("mtsimConfigure", key.encode(), value.encode())
    acl.call("aclInit", None)
    acl.call("aclrtSetDevice", 0)
    acl.lib.mtsimActivityEnable(0)
    acl.activities()
    yield acl
    acl.lib.mtsimActivityEnable(0)
    acl.call("mtsimConfigure", b"faults", b"")
    assert acl.lib.mtsimCheckGuards(0) == 0, acl.text()
    acl.call("aclFinalize")
    for kind in (4, 5, 6, 7, 8, 9, 10, 11):
        assert acl.lib.mtsimLiveHandles(kind) == 0, f"handles of kind {kind} were left"
