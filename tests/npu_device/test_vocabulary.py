"""The names that programs written for torch_npu use."""

from __future__ import annotations

from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._torch_npu import profiler as npu_profiler
from mindtorch_v2.utils.data import DataLoader, TensorDataset


def test_every_name_can_be_asked_for() -> None:
    for name in dir(torch.npu):
        assert getattr(torch.npu, name) is not None or name == "__spec__"


def test_marks_and_ranges_are_scopes() -> None:
    with torch.profiler.profile() as prof:
        number = torch.npu.mstx.range_start("range", domain="mine")
        torch.npu.mstx.mark("mark")
        torch.npu.mstx.range_end(number, domain="mine")
    assert [event.name for event in prof.events() if event["kind"] == "scope"] == ["range", "mark"]


def test_old_classes_say_their_device() -> None:
    x = torch.ones(2, device="npu")
    assert x.type() == torch.typename(x) == "torch.npu.FloatTensor"
    assert isinstance(x, torch.npu.FloatTensor)
    assert not isinstance(x, torch.FloatTensor)
    assert x.type("torch.DoubleTensor").type() == x.type(torch.DoubleTensor).type() == "torch.DoubleTensor"
    assert x.cpu().type("torch.npu.HalfTensor").type() == x.type(torch.npu.HalfTensor).type() == "torch.npu.HalfTensor"
    assert x.type(torch.float16).type() == "torch.npu.HalfTensor"
    assert torch.npu.LongTensor([1, 2]).type() == "torch.npu.LongTensor"


Pair = namedtuple("Pair", "x y")


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_pins_its_batches(workers: int) -> None:
    loader = DataLoader(TensorDataset(torch.arange(6.0), torch.arange(6)), batch_size=2, pin_memory=True,
                        num_workers=workers,
                        collate_fn=lambda rows: {"pair": Pair(*map(torch.stack, zip(*rows))), "n": 1})
    seen = []
    for batch in loader:
        pair = batch["pair"]
        assert isinstance(pair, Pair)
        assert pair.x.is_pinned()
        assert pair.y.is_pinned()
        seen += pair.y.to("npu", non_blocking=True).tolist()
    assert seen == list(range(6))


def test_counters_of_cores_are_refused_where_torch_npu_collects_them() -> None:
    levels, metrics = npu_profiler.ProfilerLevel, npu_profiler.AiCMetrics
    config = npu_profiler._ExperimentalConfig(profiler_level=levels.Level0, aic_metrics=metrics.PipeUtilization)
    assert config.aic_metrics is metrics.AiCoreNone
    with pytest.raises(NotImplementedError, match="counters of the cores"):
        npu_profiler._ExperimentalConfig(profiler_level=levels.Level1, aic_metrics=metrics.PipeUtilization)


def test_the_profiler_of_torch_npu(tmp_path: Path) -> None:
    from mindtorch_v2._torch_npu.profiler import dynamic_profile
    from mindtorch_v2._torch_npu.profiler.profiler import analyse

    with pytest.raises(RuntimeError, match="no recording"):
        analyse(str(tmp_path))
    with npu_profiler.profile(with_stack=True,
                              on_trace_ready=npu_profiler.tensorboard_trace_handler(str(tmp_path))) as prof:
        prof.enable_profiler_in_child_thread(record_shapes=True)
        (torch.ones(3, device="npu") + 1).sum()
    analyse(str(tmp_path))
    with pytest.raises(NotImplementedError, match="Db"):
        analyse(str(tmp_path), export_type=[npu_profiler.ExportType.Db])
    prof.export_stacks(str(tmp_path / "stacks"), metric="self_npu_time_total")
    assert "test_the_profiler_of_torch_npu" in (tmp_path / "stacks").read_text()
    with pytest.raises(NotImplementedError, match="switched on from outside"):
        dynamic_profile.init("somewhere")


def test_modules_of_torch_npu_under_the_alias(program: Any) -> None:
    done = program("""
import mindtorch_v2.torch_alias
mindtorch_v2.torch_alias.enable(force=True)
import torch, torch_npu, torch_npu.npu.amp, torch_npu.profiler.profiler
from torch_npu.npu.memory import memory_allocated
print(torch_npu.npu is torch.npu, torch_npu.npu.amp is torch.npu.amp, memory_allocated is torch.npu.memory_allocated)
""")
    assert done.stdout == "True True True\n", done.stderr


def test_a_forked_child_records_its_host(program: Any) -> None:
    done = program("""
import os, warnings
import mindtorch_v2 as torch
torch.ones(3, device="npu")
if os.fork() == 0:
    warnings.simplefilter("error")
    with torch.profiler.profile() as prof:
        torch.ones(2) + 1
    print("aten::add" in [event.name for event in prof.events()], torch.profiler.supported_activities(), flush=True)
    os._exit(0)
os.wait()
""")
    assert done.stdout == "True {<ProfilerActivity.CPU: 0>}\n", done.stderr


def test_a_program_for_cuda_on_the_npu(program: Any) -> None:
    done = program("""
import mindtorch_v2.torch_alias
mindtorch_v2.torch_alias.enable(force=True)
import torch
from torch.cuda.amp import GradScaler
from torch_npu.contrib import transfer_to_npu
from torch.profiler import ProfilerActivity, profile
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
torch.cuda.manual_seed_all(3)
model = torch.nn.Linear(4, 4).cuda()
x = torch.randn(2, 4).cuda(non_blocking=True)
print(device, model.weight.is_cuda, x.device, torch.ones(2, device="cuda").device)
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
    with torch.autocast("cuda"):
        print(model(x).dtype, torch.cuda.amp.autocast is torch.npu.amp.autocast)
    print(torch.amp.GradScaler("cuda").is_enabled())
    torch.cuda.synchronize()
print({event["device_type"] for event in prof.events()} == {"CPU", "NPU"}, torch.cuda.memory_allocated() > 0)
""")
    assert done.stdout == "npu:0 True npu:0 npu:0\ntorch.float16 True\nTrue\nTrue True\n", done.stderr


def test_a_copy_to_the_npu_need_not_be_waited_for() -> None:
    x = torch.ones(4).pin_memory()
    for non_blocking in (False, True):
        with torch.profiler.profile() as prof:
            there = x.npu(non_blocking=non_blocking)
        names = [event.name for event in prof.events()]
        assert "aclrtMemcpyAsync" in names
        assert ("aclrtSynchronizeStream" in names) is not non_blocking
        assert there.tolist() == [1.0] * 4
