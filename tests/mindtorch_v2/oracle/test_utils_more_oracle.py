"""`torch.testing.make_tensor` and corners of `torch.utils` beside PyTorch's."""

from __future__ import annotations

import importlib

import pytest
from harness import assert_same, check_error

import mindtorch_v2 as ours

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "int8", "uint8", "bool", "complex64"]
OPTIONS = [{}, {"low": 0.5, "high": 2}, {"noncontiguous": True}, {"exclude_zero": True, "low": 0, "high": 2}]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("number", range(len(OPTIONS)))
@pytest.mark.parametrize("shape", [(3, 4), (0,), ()])
def test_make_tensor(dtype, number, shape):
    made = []
    for module in (ours, torch):
        module.manual_seed(0)
        testing = importlib.import_module(f"{module.__name__}.testing")
        made.append(testing.make_tensor(shape, dtype=getattr(module, dtype), device="cpu", **OPTIONS[number]))
    assert_same(made[0], made[1], "made", 0.0)
    assert 0 in shape or made[0].stride() == made[1].stride()
    assert made[0].requires_grad == made[1].requires_grad


ERRORS = [
    lambda t: t.testing.make_tensor(2, dtype=t.int64, device="cpu", requires_grad=True),
    lambda t: t.testing.make_tensor(2, dtype=t.float32, device="cpu", low=2, high=1),
    lambda t: t.testing.make_tensor(2, dtype=t.float32, device="cpu", low=float("nan")),
    lambda t: t.testing.make_tensor(2, dtype=t.uint8, device="cpu", low=300, high=400),
    lambda t: t.testing.make_tensor(2, dtype=t.float32, device="cpu", noncontiguous=True,
                                    memory_format=t.contiguous_format),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_make_tensor_errors(number):
    check_error(ERRORS[number])


def test_requires_grad():
    assert ours.testing.make_tensor(2, 3, dtype=ours.float32, device="cpu", requires_grad=True).requires_grad


def test_what_is_absent_says_so():
    with pytest.raises(NotImplementedError, match="does not download"):
        ours.utils.model_zoo.load_url("https://example.org/weights.pt")
    with pytest.raises(NotImplementedError, match=r"cpp_extension\.load"):
        ours.utils.cpp_extension.load("name", ["file.cpp"])


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_checkpoint_sequential(use_reentrant):
    found = []
    for module in (ours, torch):
        checkpoint = importlib.import_module(f"{module.__name__}.utils.checkpoint")
        module.manual_seed(0)
        model = module.nn.Sequential(*[module.nn.Sequential(module.nn.Linear(4, 4), module.nn.Dropout(0.3))
                                       for _ in range(5)])
        x = module.ones(3, 4, requires_grad=True)
        out = checkpoint.checkpoint_sequential(model, 2, x, use_reentrant=use_reentrant)
        out.sin().sum().backward()
        found.append([out, x.grad, *(p.grad for p in model.parameters())])
    for got, want in zip(*found, strict=True):
        assert_same(got, want, "checkpointed")


def test_view_by_keyword():
    x = ours.arange(4, dtype=ours.int32)
    assert ours.equal(x.view(dtype=ours.float32), x.view(ours.float32))
    assert x.view(size=(2, 2)).shape == (2, 2)


def test_storage_parts_and_files(tmp_path):
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(16)))
    found = []
    for module in (ours, torch):
        storage = module.UntypedStorage.from_file(str(path), False, 16)
        part = storage[4:12]
        tensor = module.asarray(part, dtype=module.uint8)
        found.append((storage.nbytes(), part.nbytes(), storage[3], tensor, tensor.view(dtype=module.int32)))
    for got, want in zip(*found, strict=True):
        assert_same(got, want, "storage")
    assert path.read_bytes() == bytes(range(16))
