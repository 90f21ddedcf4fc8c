"""Devices, streams, events, copies, random numbers."""

from __future__ import annotations

import copy
import io
import pickle
import threading
from typing import Any

import pytest

import mindtorch_v2 as torch


def test_there_is_a_simulated_npu() -> None:
    assert torch.npu.is_available()
    assert torch.npu.unavailable_reason() is None
    assert torch.npu.device_count() == 2
    assert torch.npu.is_simulated()
    assert "simulator" in torch.npu.get_device_name()
    properties = torch.npu.get_device_properties()
    assert properties.total_memory > 0
    assert properties.cube_core_num > 0
    assert torch.accelerator.current_accelerator() == torch.device("npu")
    assert torch.npu.can_device_access_peer(0, 1)


def test_devices_by_number_context_and_thread() -> None:
    assert torch.ones(2, device="npu:1").device == torch.device("npu:1")
    with torch.npu.device(1):
        assert torch.npu.current_device() == 1
        assert torch.ones(2, device="npu").device.index == 1
    assert torch.ones(2, device="npu").device.index == 0
    seen: list[object] = []

    def work() -> None:
        seen.append(torch.npu.current_device())
        seen.append((torch.ones(3, device="npu:1") * 2).tolist())

    torch.npu.set_device(1)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [0, [2.0, 2.0, 2.0]]
    with pytest.raises(RuntimeError, match="Invalid NPU device ordinal 7"):
        torch.ones(1, device="npu:7")


def test_copies_between_host_and_devices() -> None:
    x = torch.arange(24.0).view(2, 3, 4)
    for view in (x, x.transpose(0, 2), x[:, 1:], x[0, :, ::2], x[:, :0], torch.tensor(3.5)):
        there = view.to("npu:0")
        assert torch.equal(there.cpu(), view)
        across = there.to("npu:1")
        assert across.device.index == 1
        assert torch.equal(across.cpu(), view)
    made = torch.zeros(2, 3, 4, device="npu", dtype=torch.float16)
    made.copy_(x)
    assert made.cpu().float().tolist() == x.tolist()
    back = torch.empty(2, 3, 4)
    back.copy_(made)
    assert torch.equal(back, x)
    with pytest.raises(RuntimeError, match=r"Expected all tensors to be on the same device.*npu:0 and cpu"):
        made + x
    with pytest.raises(RuntimeError, match="npu:0 and npu:1"):
        made + made.to("npu:1")


def test_results_are_not_stored_across_devices() -> None:
    here, there, host = torch.ones(3, device="npu:0"), torch.ones(3, device="npu:1"), torch.ones(3)
    for out in (there, host):
        with pytest.raises(RuntimeError, match=r"Expected all tensors to be on the same device.*npu:0 and"):
            torch.add(here, here, out=out)
        with pytest.raises(RuntimeError, match="Attempted to set the storage of a tensor on device"):
            out.set_(here)
        assert out.tolist() == [1.0, 1.0, 1.0]
    assert torch.arange(3, out=there).device.index == 1
    assert there.tolist() == [0.0, 1.0, 2.0]


def test_views_share_memory_and_ops_honour_strides() -> None:
    x = torch.arange(12.0, device="npu").view(3, 4)
    x.t()[1].mul_(10)
    assert x[:, 1].tolist() == [10.0, 50.0, 90.0]
    y = x[:, ::2] + x.t()[:2, :].t()
    host = x.cpu()
    assert torch.equal(y.cpu(), host[:, ::2] + host.t()[:2, :].t())
    x[1:, 2:] = -1
    assert x.cpu()[2].tolist() == [8.0, 90.0, -1.0, -1.0]
    assert x.expand(2, 3, 4).sum(0).cpu().tolist() == (x.cpu() * 2).tolist()


def test_pinned_memory_and_copies_that_do_not_wait() -> None:
    host = torch.arange(50000.0).pin_memory()
    assert host.is_pinned()
    assert not torch.ones(3).is_pinned()
    there = host.to("npu", non_blocking=True)
    twice = (there * 2).to("cpu", non_blocking=True)
    torch.npu.synchronize()
    assert torch.equal(twice, host * 2)
    assert torch.npu.host_memory_stats()["allocated_bytes.current"] >= host.nbytes
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        there.pin_memory()


def test_streams_and_events() -> None:
    stream = torch.npu.Stream()
    assert torch.npu.current_stream() == torch.npu.default_stream() != stream
    x = torch.ones(512, 512, device="npu")
    begin, end = (torch.npu.Event(enable_timing=True) for _ in range(2))
    assert torch.npu.Event().query()
    stream.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(stream):
        assert torch.npu.current_stream() == stream
        begin.record()
        for _ in range(20):
            x = x @ x * 1e-3
        end.record()
    assert torch.npu.current_stream() == torch.npu.default_stream()
    assert begin.elapsed_time(end) > 0
    assert end.query()
    stream.synchronize()
    assert stream.query()
    assert end.recorded_time() >= begin.recorded_time()
    with pytest.raises(ValueError, match="enable_timing=True"):
        torch.npu.Event().elapsed_time(end)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(stream)


def test_files_pickles_and_copies_keep_the_device() -> None:
    x = torch.arange(6.0, device="npu:1").view(2, 3)
    assert pickle.loads(pickle.dumps(x)).device == x.device
    assert copy.deepcopy(x).device == x.device
    file = io.BytesIO()
    torch.save({"whole": x, "row": x[1]}, file)
    for where, wanted in ((None, "npu:1"), ("cpu", "cpu"), ("npu:0", "npu:0"), ({"npu:1": "npu:0"}, "npu:0"),
                          (lambda storage, place: storage, "cpu")):
        file.seek(0)
        found = torch.load(file, map_location=where)
        assert str(found["whole"].device) == wanted
        assert found["row"].tolist() == [3.0, 4.0, 5.0]


def test_random_numbers() -> None:
    torch.npu.manual_seed(7)
    first = torch.randn(100, device="npu")
    state = torch.npu.get_rng_state()
    second = torch.rand(100, device="npu")
    torch.npu.set_rng_state(state)
    assert torch.equal(torch.rand(100, device="npu"), second)
    torch.manual_seed(7)
    assert torch.equal(torch.randn(100, device="npu"), first)
    assert torch.npu.initial_seed() == 7
    generator = torch.Generator("npu").manual_seed(3)
    values = torch.randint(0, 5, (2000,), generator=generator, device="npu")
    assert sorted(set(values.tolist())) == [0, 1, 2, 3, 4]
    assert sorted(torch.randperm(50, device="npu").tolist()) == list(range(50))
    assert abs(torch.nn.functional.dropout(torch.ones(20000, device="npu"), 0.25).mean().item() - 1) < 0.05
    with pytest.raises(RuntimeError, match="Expected a 'npu' device type for generator but found 'cpu'"):
        torch.rand(2, device="npu", generator=torch.Generator())


def test_autocast_is_the_devices_own() -> None:
    x, weight = torch.randn(4, 4, device="npu"), torch.randn(4, 4, device="npu", requires_grad=True)
    with torch.autocast("npu", dtype=torch.bfloat16):
        assert (x @ weight).dtype is torch.bfloat16
        assert (x.cpu() @ x.cpu()).dtype is torch.float32
        assert torch.npu.is_autocast_enabled()
        (x @ weight).float().sum().backward()
    assert weight.grad is not None
    assert weight.grad.dtype is torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (x @ weight).dtype is torch.float32


def test_an_op_that_is_missing_names_itself() -> None:
    with pytest.raises(NotImplementedError, match=r"aten::_fft_r2c.*MINDTORCH_NPU_FALLBACK=1"):
        torch.fft.rfft(torch.ones(4, device="npu"))


def test_the_cpu_helps_out_if_it_is_asked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINDTORCH_NPU_FALLBACK", "1")
    with pytest.warns(UserWarning, match="aten::i0 is not on the NPU and runs on the CPU"):
        found = torch.i0(torch.tensor([1.0, 3.0], device="npu"))
    assert found.device.type == "npu"
    assert found.cpu().tolist() == torch.i0(torch.tensor([1.0, 3.0])).tolist()
    with pytest.raises(NotImplementedError, match="there are no sparse tensors on npu:0"):
        torch.nn.functional.embedding(torch.tensor([1], device="npu"),
                                      torch.ones(2, 2, device="npu", requires_grad=True), sparse=True).sum().backward()


FACTORS = """
import warnings
import mindtorch_v2 as torch
from mindtorch_v2 import linalg, fft

warnings.simplefilter("ignore")
a = torch.randn(4, 4)
a = a @ a.t() + 4 * torch.eye(4)
programs = [
    linalg.cholesky, linalg.inv, linalg.det, lambda x: linalg.slogdet(x)[1], lambda x: linalg.solve(x, x * 2),
    lambda x: linalg.eigh(x)[0], lambda x: linalg.svd(x)[1], lambda x: linalg.qr(x)[1],
    lambda x: fft.fft(x).abs(), lambda x: fft.irfft(fft.rfft(x)),
    lambda x: torch.view_as_real(fft.fft2(x).t()[::2] * x[::2]),
    lambda x: torch.view_as_real(linalg.lu_solve(*linalg.lu_factor(fft.fft(x)), x + 0j, left=False).resolve_conj()),
]
for program in programs:
    found = []
    for where in ("cpu", "npu"):
        x = a.clone().to(where).requires_grad_()
        made = program(x)
        assert made.device.type == where
        made.pow(2).sum().backward()
        found.append((made.detach().cpu(), x.grad.cpu()))
    for here, there in zip(*found):
        torch.testing.assert_close(there, here, rtol=1e-4, atol=1e-4)
strided = torch.view_as_complex(torch.arange(12.0).view(6, 2)).npu()[::2]
assert strided.cpu().tolist() == [1j, 4 + 5j, 8 + 9j]
print("done")
"""


def test_factorisations_and_transforms_run_on_the_cpu_if_asked_to(program: Any) -> None:
    done = program(FACTORS, MINDTORCH_NPU_FALLBACK="1")
    assert done.stdout == "done\n", done.stderr


@pytest.mark.parametrize("call", [
    lambda d: torch.ones(2, 3, device=d) @ torch.ones(2, 3, device=d),
    lambda d: torch.ones(2, 3, device=d) + torch.ones(2, 4, device=d),
    lambda d: torch.cat([torch.ones(2, 3, device=d), torch.ones(3, 2, device=d)]),
    lambda d: torch.ones(2, 3, device=d).sum(5),
    lambda d: torch.nn.functional.cross_entropy(torch.ones(2, 3, device=d), torch.zeros(3, dtype=torch.long, device=d)),
    lambda d: torch.nn.functional.conv2d(torch.ones(1, 2, 4, 4, device=d), torch.ones(1, 3, 2, 2, device=d)),
    lambda d: torch.ones(2, 3, device=d).topk(9),
])
def test_wrong_arguments_give_the_same_errors_as_on_the_cpu(call) -> None:
    with pytest.raises(Exception) as host:  # noqa: PT011
        call("cpu")
    with pytest.raises(host.type) as there:
        call("npu")
    assert str(there.value)[:40] == str(host.value)[:40]


@pytest.mark.parametrize("make", [
    lambda **named: torch.empty(2, **named), lambda **named: torch.zeros(2, **named),
    lambda **named: torch.tensor([1.0, 2.0], **named), lambda **named: torch.rand(2, **named),
    lambda **named: torch.ones_like(torch.ones(2), **named), lambda **named: torch.full((2,), 1.0, **named),
    lambda **named: torch.arange(2, **named), lambda **named: torch.linspace(0, 1, 2, **named),
    lambda **named: torch.ones(2).new_tensor([1.0, 2.0], **named), lambda **named: torch.ones(2).new_zeros(2, **named),
    lambda **named: torch.empty_strided((2,), (1,), **named)])
def test_factories_make_pinned_memory(make) -> None:
    made = make(pin_memory=True)
    assert (made.is_pinned(), made.shape) == (True, (2,))
    assert not make().is_pinned()
    with pytest.raises(RuntimeError, match="Only dense CPU tensors can be pinned"):
        make(pin_memory=True, device="npu")
