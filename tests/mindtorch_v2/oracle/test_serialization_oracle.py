"""Checkpoints exchanged with PyTorch: it reads ours (safely), and we read its files."""

from __future__ import annotations

import collections
import io
import pickletools
import zipfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mindtorch_v2._serialization import (
    StorageRecord,
    TensorRecord,
    read_archive,
    reduce_device,
    reduce_dtype,
    reduce_size,
    write_archive,
)

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

DTYPE_NAMES = [
    "float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int8", "int16", "int32", "int64",
    "uint8", "uint16", "uint32", "uint64", "bool", "complex64", "complex128",
]


def storage_array(storage: Any, dtype_name: str) -> np.ndarray:
    """The memory of an untyped storage of PyTorch as NumPy elements, not copied."""
    raw = torch.empty(0, dtype=torch.uint8).set_(storage).numpy()
    if dtype_name == "untyped":
        return raw
    return raw.view(getattr(ml_dtypes, dtype_name, None) or np.dtype(dtype_name))


def describe(obj: Any) -> TensorRecord | None:
    """PyTorch's own tensors described as ours will be, which lets one object go through both writers."""
    if not isinstance(obj, torch.Tensor):
        return None
    dtype_name = str(obj.dtype).removeprefix("torch.")
    if obj.device.type == "meta":
        storage = StorageRecord("meta", dtype_name, "meta", np.empty(0, np.uint8))
    else:
        untyped = obj.untyped_storage()
        storage = StorageRecord(str(untyped._cdata), dtype_name, "cpu", storage_array(untyped, dtype_name))
    return TensorRecord(
        storage,
        obj.storage_offset(),
        tuple(obj.shape),
        obj.stride(),
        requires_grad=obj.requires_grad,
        is_parameter=isinstance(obj, torch.nn.Parameter),
        state=vars(obj) or None,
        is_conj=obj.is_conj(),
        is_neg=obj.is_neg(),
    )


def extra_reduce(obj: Any) -> Any:
    if isinstance(obj, torch.dtype):
        return reduce_dtype(str(obj).removeprefix("torch."))
    if isinstance(obj, torch.device):
        return reduce_device(obj.type, obj.index)
    return reduce_size(tuple(obj)) if isinstance(obj, torch.Size) else None


def our_save(obj: Any, target: Any) -> None:
    write_archive(target, obj, describe=describe, extra_reduce=extra_reduce)


def build(record: TensorRecord) -> Any:
    """A PyTorch tensor on the memory that we read."""
    dtype = getattr(torch, record.storage.dtype_name)
    if record.storage.location == "meta":
        tensor = torch.empty_strided(record.size, record.stride, dtype=dtype, device="meta")
    else:
        raw = torch.from_numpy(record.storage.data.view(np.uint8))
        tensor = torch.empty(0, dtype=dtype).set_(raw.untyped_storage(), record.offset, record.size, record.stride)
    flags = {name: True for name, is_set in (("conj", record.is_conj), ("neg", record.is_neg)) if is_set}
    torch._utils.set_tensor_metadata(tensor, flags)
    if record.is_parameter:
        tensor = torch.nn.Parameter(tensor, record.requires_grad)
    else:
        tensor.requires_grad_(record.requires_grad)
    vars(tensor).update(record.state or {})
    return tensor


def our_load(source: Any, **options: Any) -> Any:
    return read_archive(
        source,
        build=build,
        build_dtype=lambda name: getattr(torch, name),
        build_device=torch.device,
        build_size=torch.Size,
        **options,
    )


def torch_load(source: Any, **options: Any) -> Any:
    return torch.load(source, weights_only=True, **options)


def same(left: Any, right: Any) -> bool:
    """Whether two trees are equal, in types and layout too."""
    if type(left) is not type(right):
        return False
    if isinstance(left, torch.Tensor):
        facts = [
            (t.dtype, t.shape, t.stride(), t.storage_offset(), t.requires_grad, t.device, vars(t))
            for t in (left, right)
        ]
        if facts[0] != facts[1] or left.device.type == "meta":
            return facts[0] == facts[1]
        a, b = (torch.empty(t.numel(), dtype=t.dtype).copy_(t.detach().reshape(-1)) for t in (left, right))
        return bool(torch.equal(a.view(torch.uint8), b.view(torch.uint8)))
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def model_and_optimizer(optimizer_name: str) -> dict[str, Any]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))
    optimizer = getattr(torch.optim, optimizer_name)(model.parameters(), lr=0.1)
    for _ in range(2):
        model(torch.randn(5, 3)).square().sum().backward()
        optimizer.step()
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}


def various() -> dict[str, Any]:
    base = torch.arange(24.0)
    tagged = torch.ones(2)
    tagged.note = {"by": "hand"}
    labelled = torch.nn.Parameter(torch.ones(2))
    labelled.label = "first"
    return {
        "base": base,
        "view": base.view(2, 3, 4).permute(2, 0, 1)[1:, :, ::2],
        "expanded": torch.ones(1).expand(5),
        "scalar": torch.tensor(2.5),
        "empty": torch.empty(0, 3),
        "after empty": torch.ones(3),
        "leaf": torch.ones(2, requires_grad=True),
        "parameter": torch.nn.Parameter(torch.ones(2, 2)),
        "frozen": torch.nn.Parameter(torch.ones(2), requires_grad=False),
        "labelled": labelled,
        "tagged": tagged,
        "conj": torch.tensor([1 + 2j]).conj(),
        "neg": torch.tensor([1 + 2j]).conj().imag,
        "meta": torch.empty(3, 4, device="meta"),
        "dtypes": [getattr(torch, name) for name in DTYPE_NAMES],
        "devices": [torch.device("cpu"), torch.device("cuda", 1)],
        "size": torch.Size([1, 2]),
        "plain": [None, True, 1, 2**40, 1.5, 2j, "é", b"abc", bytearray(b"x"), {1}, (1, 2, 3, 4)],
        "counter": collections.Counter("aab"),
    }


CASES = {
    "adam": lambda: model_and_optimizer("Adam"),
    "sgd": lambda: model_and_optimizer("SGD"),
    "rmsprop": lambda: model_and_optimizer("RMSprop"),
    "linear": lambda: torch.nn.Linear(3, 2).state_dict(),
    "various": various,
    "number": lambda: 1,
    **{name: lambda name=name: torch.tensor([[0, 1, 2]]).to(getattr(torch, name)) for name in DTYPE_NAMES},
}


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_ours_read_by_torch(tmp_path: Path, case: str, mmap: bool) -> None:
    obj = CASES[case]()
    our_save(obj, tmp_path / "m.pt")
    assert same(torch_load(tmp_path / "m.pt", mmap=mmap), obj)


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_torchs_read_by_us(tmp_path: Path, case: str, mmap: bool) -> None:
    obj = CASES[case]()
    torch.save(obj, tmp_path / "m.pt")
    assert same(our_load(tmp_path / "m.pt", mmap=mmap), obj)


@pytest.mark.parametrize("case", CASES)
def test_ours_read_by_us(case: str) -> None:
    obj = CASES[case]()
    buffer = io.BytesIO()
    our_save(obj, buffer)
    buffer.seek(0)
    assert same(our_load(buffer), obj)


@pytest.mark.parametrize("case", ["adam", "linear", "float8_e5m2"])
def test_same_file_as_torch(tmp_path: Path, case: str) -> None:
    """The same records at the same places, and the same instructions in the pickle."""
    obj = CASES[case]()
    (tmp_path / "torch").mkdir()
    our_save(obj, tmp_path / "m.pt")
    torch.save(obj, tmp_path / "torch/m.pt")
    readers = [torch._C.PyTorchFileReader(str(path)) for path in (tmp_path / "m.pt", tmp_path / "torch/m.pt")]
    ours, theirs = (zipfile.ZipFile(path) for path in (tmp_path / "m.pt", tmp_path / "torch/m.pt"))
    with ours, theirs:
        assert ours.namelist() == theirs.namelist()
        programs = [
            [(opcode.name, argument) for opcode, argument, _ in pickletools.genops(archive.read("m/data.pkl"))]
            for archive in (ours, theirs)
        ]
        # Memo numbers may differ where Python's two picklers remember different things.
        without_memo = [
            [step for step in program if "PUT" not in step[0] and "GET" not in step[0]] for program in programs
        ]
        assert without_memo[0] == without_memo[1]
        for name in ours.namelist():
            record = name.removeprefix("m/")
            if record not in ("data.pkl", ".data/serialization_id"):
                assert ours.read(name) == theirs.read(name), name
            assert readers[0].get_record_offset(record) % 64 == 0


@pytest.mark.parametrize("case", ["adam", "various", "linear"])
def test_torch_computes_our_offsets(tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With this option PyTorch does not look up where storages begin; in debug mode it checks what it computed."""
    obj = CASES[case]()
    # The length of the name matters: with this one, sixteen bytes more or less move the payload to another boundary.
    path = tmp_path / "checkpoint-000100.pt"
    our_save(obj, path)
    monkeypatch.setenv("TORCH_SERIALIZATION_DEBUG", "1")
    torch.utils.serialization.config.load.calculate_storage_offsets = True
    try:
        for mmap in (False, True):
            assert same(torch_load(path, mmap=mmap), obj)
    finally:
        torch.utils.serialization.config.load.calculate_storage_offsets = False


def test_shared_storages_stay_shared(tmp_path: Path) -> None:
    weight = torch.nn.Parameter(torch.zeros(4, 4))
    obj = {"whole": weight, "row": weight.detach()[1], "again": weight}
    our_save(obj, tmp_path / "ours.pt")
    torch.save(obj, tmp_path / "theirs.pt")
    for loaded in (torch_load(tmp_path / "ours.pt"), our_load(tmp_path / "theirs.pt"), our_load(tmp_path / "ours.pt")):
        loaded["row"].fill_(7)
        assert loaded["whole"].detach().sum() == 28
        assert loaded["again"] is loaded["whole"]


def test_bare_storages(tmp_path: Path) -> None:
    tensor = torch.arange(3.0)
    torch.save({"storage": tensor.untyped_storage()}, tmp_path / "m.pt")
    record = our_load(tmp_path / "m.pt")["storage"]
    assert (record.dtype_name, record.data.view(np.float32).tolist()) == ("untyped", [0, 1, 2])
    write_archive(tmp_path / "m.pt", record, describe=lambda obj: obj if obj is record else None)
    theirs = torch_load(tmp_path / "m.pt")._untyped_storage  # without asking, which warns of deprecation
    assert theirs.tolist() == tensor.untyped_storage().tolist()


def test_whole_module(tmp_path: Path) -> None:
    """weights_only=False: the classes below torch are found by the caller."""
    module = torch.nn.Linear(3, 2)
    torch.save(module, tmp_path / "m.pt")

    def resolve(dotted_module: str, name: str) -> Any:
        assert (dotted_module, name) == ("torch.nn.modules.linear", "Linear")
        return torch.nn.Linear

    loaded = our_load(tmp_path / "m.pt", weights_only=False, resolve_torch_name=resolve)
    assert torch.equal(loaded(torch.ones(1, 3)), module(torch.ones(1, 3)))
    with pytest.raises(Exception, match=r"torch\.nn\.modules\.linear\.Linear was not an allowed global") as ours:
        our_load(tmp_path / "m.pt")
    with pytest.raises(Exception, match=r"torch\.nn\.modules\.linear\.Linear was not an allowed global") as theirs:
        torch_load(tmp_path / "m.pt")
    assert ours.type is theirs.type


def test_truncated_file_of_torch(tmp_path: Path) -> None:
    torch.save(torch.ones(2000), tmp_path / "m.pt")
    raw = (tmp_path / "m.pt").read_bytes()
    (tmp_path / "m.pt").write_bytes(raw[:-100])
    with pytest.raises(RuntimeError, match="failed finding central directory"):
        our_load(tmp_path / "m.pt")
    with pytest.raises((RuntimeError, OSError)):  # which of them depends on the file's length
        torch_load(tmp_path / "m.pt")


def test_sparse_tensors_are_named_as_missing(tmp_path: Path) -> None:
    torch.save(torch.eye(2).to_sparse(), tmp_path / "m.pt")
    with pytest.raises(NotImplementedError, match="sparse tensors"):
        our_load(tmp_path / "m.pt")
