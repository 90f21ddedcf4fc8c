"""What several tests need: a recorded training run in a file, and both ways to run a backward pass."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2 as mt
from mindtorch_v2 import nn, optim
from mindtorch_v2._autograd import engine
from mindtorch_v2._dispatch.native import WALK
from mindtorch_v2.profiler import profile, record_function, schedule

RECORDINGS: dict[str, dict[str, Any]] = {
    "shapes_and_memory.json": {"record_shapes": True, "profile_memory": True},
    "stacks_and_modules.json.gz": {"with_stack": True, "with_modules": True, "with_flops": True},
}


def record_training(path: Path, **options: Any) -> None:
    """Train on one thread and work on another, and write what two of the four steps did."""
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    points, labels = mt.randn(32, 8), mt.randint(0, 4, (32,))

    def work_aside() -> None:
        turned = points.t()
        with record_function("aside"):
            mt.mm(turned, points)

    plan = schedule(wait=1, warmup=1, active=2, repeat=1)
    with (
        ThreadPoolExecutor(1, thread_name_prefix="helper") as pool,
        profile(schedule=plan, on_trace_ready=lambda p: p.export_chrome_trace(path), **options) as recording,
    ):
        for _ in range(4):
            other = pool.submit(work_aside)
            with record_function("forward"):
                loss = nn.functional.cross_entropy(model(points), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            other.result()
            recording.step()


@pytest.fixture(scope="session", params=RECORDINGS)
def training_trace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a recorded training run, once for each way of recording."""
    path = tmp_path_factory.mktemp("trace") / request.param
    record_training(path, **RECORDINGS[request.param])
    return path


@pytest.fixture(params=["c", "python"])
def walk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The twin that runs backward passes; the tests of what these do use it to run with both."""
    if request.param == "python":
        monkeypatch.setattr(engine, "drain", None)
        monkeypatch.setattr(engine, "count_waiting", engine.count_dependencies)
    elif WALK is None:
        pytest.skip("the C extension is not built: make native")
    return request.param
