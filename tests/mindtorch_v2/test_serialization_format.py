"""The checkpoint format by itself: round trips, safety, damaged files, atomic writes.

The tensors of these tests are their own records: ``describe`` and ``build`` have nothing to do.
"""

from __future__ import annotations

import collections
import io
import os
import pickle
import struct
import sys
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mindtorch_v2._serialization import (
    StorageRecord,
    TensorRecord,
    _zip_reader,
    read_archive,
    reduce_device,
    reduce_dtype,
    reduce_size,
    torch_global,
    write_archive,
)


class Size(tuple):
    pass


class DType(str):
    pass


class Device(tuple):
    pass


class Point:
    """Stands for a class of the user."""

    def __init__(self, x: int) -> None:
        self.x = x


def describe(obj: object) -> TensorRecord | StorageRecord | None:
    return obj if isinstance(obj, (TensorRecord, StorageRecord)) else None


def extra_reduce(obj: object) -> Any:
    if isinstance(obj, DType):
        return reduce_dtype(str(obj))
    if isinstance(obj, Device):
        return reduce_device(*obj)
    return reduce_size(obj) if isinstance(obj, Size) else None


def save(target: Any, obj: object, **options: Any) -> None:
    write_archive(target, obj, describe=describe, extra_reduce=extra_reduce, **options)


def load(source: Any, **options: Any) -> Any:
    options.setdefault("build", lambda record: record)
    return read_archive(
        source, build_dtype=DType, build_device=lambda *parts: Device(parts), build_size=Size, **options
    )


def tensor(values: Any, dtype_name: str = "float32", key: str | None = None, **facts: Any) -> TensorRecord:
    dtype = getattr(ml_dtypes, dtype_name, None) or np.dtype(dtype_name)
    array = np.array(values).astype(dtype)
    data = np.ascontiguousarray(array).reshape(-1)
    storage = StorageRecord(key or str(id(data)), dtype_name, "cpu", data)
    stride = tuple(step // array.itemsize for step in np.ascontiguousarray(array).strides) if array.ndim else ()
    return TensorRecord(storage, 0, array.shape, stride, **facts)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.pt"


def rewrite(path: Path, change: Callable[[str, bytes], bytes | None]) -> None:
    """Replace records of an archive; None leaves one out."""
    with zipfile.ZipFile(path) as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, payload in records.items():
            changed = change(name.partition("/")[2], payload)
            if changed is not None:
                archive.writestr(name, changed)


def put_pickle(path: Path, pickled: bytes) -> None:
    """A sound archive with a pickle of our choice."""
    save(path, tensor([1.0, 2.0]))
    rewrite(path, lambda name, payload: pickled if name == "data.pkl" else payload)


# Round trips


@pytest.mark.parametrize(
    "dtype_name",
    ["float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int8", "int16", "int32", "int64",
     "uint8", "uint16", "uint32", "uint64", "bool", "complex64", "complex128"],
)
@pytest.mark.parametrize("mmap", [False, True])
def test_every_dtype(path: Path, dtype_name: str, mmap: bool) -> None:
    saved = tensor([[0, 1, 2], [3, 0, 1]], dtype_name)
    save(path, saved)
    loaded = load(path, mmap=mmap)
    assert loaded.storage.dtype_name == dtype_name
    assert loaded.storage.data.dtype == saved.storage.data.dtype
    assert loaded.to_array().tolist() == saved.to_array().tolist()
    loaded.storage.data[0] = 1  # what was loaded belongs to the caller
    assert load(path).to_array().tolist() == saved.to_array().tolist()


def test_plain_objects(path: Path) -> None:
    obj = {
        "none": None,
        "numbers": [1, -(2**70), 300, 70000, 1.5, True, 2j],
        "text": "é\ud800",
        "bytes": [b"", b"\x00\xff", bytearray(b"x"), bytearray()],
        "sets": {1, 2},
        "ordered": collections.OrderedDict(a=1),
        "counter": collections.Counter("aab"),
        "tuples": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)],
        "many": list(range(3000)),
        5: {"nested": [{}]},
    }
    save(path, obj)
    loaded = load(path)
    assert loaded == obj
    assert type(loaded["ordered"]) is collections.OrderedDict


def test_attributes_of_an_ordered_dict_survive(path: Path) -> None:
    state = collections.OrderedDict(weight=tensor([1.0]))
    state._metadata = {"": {"version": 1}}  # type: ignore[attr-defined]
    save(path, state)
    assert load(path)._metadata == {"": {"version": 1}}


def test_dtype_device_size(path: Path) -> None:
    save(path, [DType("bfloat16"), Device(("npu", 1)), Device(("cpu",)), Size((2, 3))])
    loaded = load(path)
    assert loaded == ["bfloat16", ("npu", 1), ("cpu",), (2, 3)]
    assert [type(item) for item in loaded] == [DType, Device, Device, Size]


def test_shared_storage_is_written_once_and_comes_back_shared(path: Path) -> None:
    whole = tensor(range(6), key="shared")
    # Described anew each time, as a real describe does: only the key says that it is the same storage.
    again = StorageRecord("shared", "float32", "cpu", whole.storage.data)
    column = TensorRecord(again, 1, (3,), (2,))
    save(path, [whole, column, whole])
    with zipfile.ZipFile(path) as archive:
        assert [name for name in archive.namelist() if "/data/" in name] == ["model/data/0"]
    first, second, third = load(path)
    assert first.storage is second.storage
    assert third is first
    first.storage.data[1] = 100
    assert second.to_array().tolist() == [100, 3, 5]


@pytest.mark.parametrize("mmap", [False, True])
def test_views_lead_to_the_owner_of_their_storage(path: Path, mmap: bool) -> None:
    whole = tensor(range(6))
    views = [whole, TensorRecord(whole.storage, 1, (3,), (2,)), TensorRecord(whole.storage, 0, (0, 2), (2, 1))]
    save(path, [*views, tensor(range(100)), tensor([]), tensor([1, 2], "uint16")])
    owners = []
    for record in load(path, mmap=mmap):
        array = record.to_array()
        while isinstance(array.base, np.ndarray):
            array = array.base
        owners.append(array)
    assert owners[0] is owners[1] is owners[2]
    assert [owner.nbytes for owner in owners] == [24, 24, 24, 400, 0, 4]


def test_untyped_storage_shared_by_two_dtypes(path: Path) -> None:
    data = np.arange(8, dtype=np.uint8)
    wide = TensorRecord(StorageRecord("s", "uint16", "cpu", data.view(np.uint16)), 0, (4,), (1,))
    wider = TensorRecord(StorageRecord("s", "uint32", "cpu", data.view(np.uint32)), 0, (2,), (1,))
    save(path, [wide, wider])
    first, second = load(path)
    first.storage.data[:] = 0
    assert second.to_array().tolist() == [0, 0]


def test_two_views_of_different_type_are_refused(path: Path) -> None:
    first = tensor([1.0], "float32", key="s")
    second = tensor([1], "int32", key="s")
    with pytest.raises(RuntimeError, match="view the same data as different types"):
        save(path, [first, second])
    assert not path.exists()


def test_facts_of_tensors(path: Path) -> None:
    save(
        path,
        {
            "plain": tensor([1.0], requires_grad=True),
            "parameter": tensor([[1.0]], requires_grad=True, is_parameter=True),
            "frozen": tensor([1.0], is_parameter=True, state={"tag": "x"}),
            "with attributes": tensor([1.0], state={"note": 1}),
            "flags": tensor([1j], "complex64", is_conj=True, is_neg=True),
            "flags of a new type": tensor([1], "uint16", is_neg=True),
            "scalar": tensor(3.0),
            "empty": tensor(np.zeros((0, 3))),
            "elsewhere": TensorRecord(StorageRecord("n", "float32", "npu:0", np.ones(2, np.float32)), 1, (1,), (1,)),
        },
    )
    loaded = load(path)
    facts = {name: (t.name, t.requires_grad, t.state, t.is_conj, t.is_neg) for name, t in loaded.items()}
    assert facts == {
        "plain": ("Tensor", True, None, False, False),
        "parameter": ("Parameter", True, None, False, False),
        "frozen": ("Parameter", False, {"tag": "x"}, False, False),
        "with attributes": ("Tensor", False, {"note": 1}, False, False),
        "flags": ("Tensor", False, None, True, True),
        "flags of a new type": ("Tensor", False, None, False, True),
        "scalar": ("Tensor", False, None, False, False),
        "empty": ("Tensor", False, None, False, False),
        "elsewhere": ("Tensor", False, None, False, False),
    }
    # The storage of a flagged tensor holds what it held when it was saved; who makes a tensor of it flips signs.
    assert loaded["flags"].to_array().tolist() == [1j]
    assert loaded["flags of a new type"].to_array().tolist() == [1]
    assert loaded["scalar"].to_array().shape == ()
    assert loaded["empty"].to_array().shape == (0, 3)
    assert loaded["elsewhere"].storage.location == "npu:0"
    assert loaded["elsewhere"].offset == 1


def test_meta_tensors_have_no_data(path: Path) -> None:
    storage = StorageRecord("m", "float32", "meta", np.empty(0, np.float32))
    save(path, [TensorRecord(storage, 0, (10**6, 10**6), (10**6, 1)), TensorRecord(storage, 0, (2,), (1,), True, True)])
    big, parameter = load(path)
    assert (big.storage.location, big.size) == ("meta", (10**6, 10**6))
    assert (parameter.name, parameter.requires_grad) == ("Parameter", True)


def test_bare_storages(path: Path) -> None:
    typed = StorageRecord("a", "float32", "cpu", np.ones(3, np.float32))
    untyped = StorageRecord("b", "untyped", "cpu", np.arange(5, dtype=np.uint8))
    save(path, {"typed": typed, "untyped": untyped, "tensor": TensorRecord(typed, 0, (3,), (1,))})
    loaded = load(path)
    assert loaded["typed"] is loaded["tensor"].storage
    assert loaded["untyped"].data.tolist() == [0, 1, 2, 3, 4]
    wrapped = load(path, build_storage=lambda record: [record])
    assert wrapped["typed"][0] is wrapped["tensor"].storage


def test_file_objects(path: Path) -> None:
    buffer = io.BytesIO()
    save(buffer, tensor([1.0, 2.0]))
    buffer.seek(0)
    assert load(buffer).to_array().tolist() == [1, 2]
    assert not buffer.closed
    with path.open("wb", buffering=0) as file:
        save(file, tensor([3.0]))
    with path.open("rb") as file:
        assert load(file).to_array().tolist() == [3]
        assert not file.closed


def test_the_other_byte_order(path: Path) -> None:
    other = {"little": b"big", "big": b"little"}[sys.byteorder]
    for dtype_name, number_bytes in (("float32", 4), ("complex64", 4), ("bfloat16", 2), ("uint16", 2), ("bool", 1)):
        saved = tensor([0, 1, 1], dtype_name)
        save(path, saved)

        def turned(name: str, payload: bytes, width: int = number_bytes) -> bytes:
            if name == "byteorder":
                return other
            if name.startswith("data/"):
                return np.frombuffer(payload, f"u{width}").byteswap().tobytes()
            return payload

        rewrite(path, turned)
        assert load(path).to_array().tolist() == saved.to_array().tolist(), dtype_name


# The zip file


def layout(path: Path) -> list[tuple[str, int]]:
    """Name and position of every payload."""
    raw = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
    lengths = [struct.unpack_from("<HH", raw, info.header_offset + 26) for info in infos]
    return [
        (info.filename, info.header_offset + 30 + sum(length)) for info, length in zip(infos, lengths, strict=True)
    ]


def test_records_and_alignment(path: Path) -> None:
    save(path, [tensor([1.0]), tensor(range(100), "int64"), tensor([1], "uint8")])
    assert [name for name, _ in layout(path)] == [
        "model/data.pkl",
        "model/.format_version",
        "model/.storage_alignment",
        "model/byteorder",
        "model/data/0",
        "model/data/1",
        "model/data/2",
        "model/version",
        "model/.data/serialization_id",
    ]
    assert {position % 64 for _, position in layout(path)} == {0}
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}
        assert archive.read("model/version") == b"3\n"
        assert archive.read("model/.format_version") == b"1"
        assert archive.read("model/.storage_alignment") == b"64"
        assert archive.read("model/byteorder") == sys.byteorder.encode()
        assert archive.read("model/.data/serialization_id").isdigit()


def test_64_bit_fields_keep_the_alignment(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 1000)
    saved = [tensor(range(100)), tensor(range(1000)), tensor(range(10))]
    save(path, saved)
    monkeypatch.undo()
    assert {position % 64 for _, position in layout(path)} == {0}
    assert [t.size for t in load(path, mmap=True)] == [(100,), (1000,), (10,)]


@pytest.mark.parametrize(
    ("file_name", "root"), [("a.b.pt", "a.b"), ("plain", "plain"), ("x y.pt", "x y"), ("é.pt", "archive")]
)
def test_root_folder(tmp_path: Path, file_name: str, root: str) -> None:
    save(tmp_path / file_name, 1)
    with zipfile.ZipFile(tmp_path / file_name) as archive:
        assert archive.namelist()[0] == f"{root}/data.pkl"


def test_equal_objects_give_equal_files(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        save(tmp_path / folder / "m.pt", {"w": tensor([1.0, 2.0])})
    assert (tmp_path / "one/m.pt").read_bytes() == (tmp_path / "two/m.pt").read_bytes()


# Atomic writes


class Unpicklable:
    def __reduce__(self) -> Any:
        raise ValueError("no way")


def test_a_failing_write_leaves_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(path, "old")
    before = path.read_bytes()
    with pytest.raises(ValueError, match="no way"):
        save(path, [tensor([1.0]), Unpicklable()])

    def full_disk(self: zipfile.ZipFile, *_: object, **__: object) -> Any:
        if len(self.infolist()) == 4:
            raise OSError("disk full")
        return original(self, *_, **__)

    original = zipfile.ZipFile.open
    monkeypatch.setattr(zipfile.ZipFile, "open", full_disk)
    with pytest.raises(OSError, match="disk full"):
        save(path, tensor([1.0]))
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_a_failing_write_to_a_file_object_is_no_archive() -> None:
    class FullDisk(io.BytesIO):
        def write(self, data: Any) -> int:
            if self.tell() > 1000:
                raise OSError("disk full")
            return super().write(data)

    target = FullDisk()
    with pytest.raises(OSError, match="disk full"):
        save(target, tensor(range(5000)))
    assert not zipfile.is_zipfile(io.BytesIO(target.getvalue()))


def test_replacing_keeps_permissions_and_links(tmp_path: Path, path: Path) -> None:
    save(path, 1)
    path.chmod(0o640)
    link = tmp_path / "latest.pt"
    link.symlink_to(path.name)
    save(link, 2)
    assert link.is_symlink()
    assert load(path) == 2
    assert path.stat().st_mode & 0o777 == 0o640


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"Parent directory .*nowhere does not exist"):
        save(tmp_path / "nowhere" / "m.pt", 1)
    with pytest.raises(RuntimeError, match="is a directory"):
        save(tmp_path, 1)


def test_describe_must_match_its_data(path: Path) -> None:
    with pytest.raises(ValueError, match="one-dimensional and of float32"):
        save(path, StorageRecord("a", "float32", "cpu", np.zeros(3)))


# Damaged files


def test_truncated(path: Path) -> None:
    save(path, tensor(range(100)))
    raw = path.read_bytes()
    for length in (4, 100, len(raw) // 2, len(raw) - 10):
        path.write_bytes(raw[:length])
        with pytest.raises(RuntimeError, match=r"failed (finding central directory|reading zip archive).*model\.pt"):
            load(path)


@pytest.mark.parametrize("name", ["data/0", "data.pkl", "version"])
def test_missing_member(path: Path, name: str) -> None:
    save(path, tensor([1.0]))
    rewrite(path, lambda found, payload: None if found == name else payload)
    with pytest.raises(RuntimeError, match=rf"failed locating file {name}: file not found.*model\.pt"):
        load(path)


def test_optional_members(path: Path) -> None:
    save(path, tensor([1.0]))
    optional = ("byteorder", ".format_version", ".storage_alignment", ".data/serialization_id")
    rewrite(path, lambda name, payload: None if name in optional else payload)
    assert load(path).to_array().tolist() == [1]


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("change", [lambda payload: payload[:-4], lambda payload: payload + b"1234"])
def test_storage_of_another_size(path: Path, change: Callable[[bytes], bytes], mmap: bool) -> None:
    save(path, tensor([1.0, 2.0]))
    rewrite(path, lambda name, payload: change(payload) if name == "data/0" else payload)
    with pytest.raises(RuntimeError, match=r"model\.pt: record size .* does not match expected size \(8 bytes"):
        load(path, mmap=mmap)


def test_changed_bytes_are_noticed(path: Path) -> None:
    save(path, tensor([1.0, 1234.5]))
    raw = bytearray(path.read_bytes())
    raw[bytes(raw).index(struct.pack("=f", 1234.5))] ^= 1
    path.write_bytes(raw)
    with pytest.raises(RuntimeError, match="failed reading file data/0: Bad CRC-32"):
        load(path)


def test_compressed_record_shorter_than_it_says(path: Path) -> None:
    save(path, tensor([1.0, 2.0]))
    with zipfile.ZipFile(path) as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, payload in records.items():
            archive.writestr(name, payload)
    assert load(path).to_array().tolist() == [1, 2]
    with pytest.raises(RuntimeError, match=r"model\.pt: record data/0 is compressed"):
        load(path, mmap=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, payload in records.items():
            archive.writestr(name, payload[:4] if name == "model/data/0" else payload)
        archive.getinfo("model/data/0").file_size = 8  # in the directory, which is written last
    with pytest.raises(RuntimeError, match="failed reading file data/0: 4 bytes instead of 8"):
        load(path)


@pytest.mark.parametrize(
    ("name", "payload", "error", "message"),
    [
        ("version", b"99\n", RuntimeError, "version 99, but the maximum supported version"),
        ("version", b"new", RuntimeError, "version is no number"),
        ("byteorder", b"middle", ValueError, r"model\.pt: Unknown endianness type: middle"),
        ("byteorder", b"middle", RuntimeError, "probably corrupted"),
    ],
)
def test_unknown_records(path: Path, name: str, payload: bytes, error: type[Exception], message: str) -> None:
    save(path, 1)
    rewrite(path, lambda found, old: payload if found == name else old)
    with pytest.raises(error, match=message):
        load(path)


@pytest.mark.parametrize(
    ("raw", "error", "message"),
    [
        (b"", EOFError, "is empty"),
        (b"hello world", pickle.UnpicklingError, "Invalid magic number"),
        (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02", pickle.UnpicklingError, "the pickle is damaged"),
        (bytes(257) + b"ustar", NotImplementedError, "before version 0.2"),
    ],
)
def test_other_files(path: Path, raw: bytes, error: type[Exception], message: str) -> None:
    path.write_bytes(raw)
    with pytest.raises(error, match=rf"model\.pt.*{message}"):
        load(path)


def test_torchscript(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("m/constants.pkl", b"")
    with pytest.raises(NotImplementedError, match="TorchScript"):
        load(path)


def test_mmap_needs_a_path() -> None:
    with pytest.raises(ValueError, match="f must be a file path in order to use the mmap argument"):
        load(io.BytesIO(), mmap=True)


def test_files_are_closed_after_errors(path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        for raw in (b"hello", b"PK\x03\x04", b""):
            path.write_bytes(raw)
            with pytest.raises((RuntimeError, pickle.UnpicklingError, EOFError)):
                load(path)
        open_files = {os.path.realpath(f"/proc/self/fd/{number}") for number in _open_descriptors()}
        assert str(path) not in open_files


def _open_descriptors() -> list[str]:
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("open files are listed in /proc, which this system has not")
    return os.listdir("/proc/self/fd")


# Files that mean harm


class Call:
    """Pickles as a call of any function."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.reduction = (function, arguments)

    def __reduce__(self) -> Any:
        return self.reduction


ran: list[str] = []


def run_me(text: str) -> str:
    ran.append(text)
    return text


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (os.system, r"Trying to load unsupported GLOBAL (posix|nt)\.system whose module (posix|nt) is blocked"),
        (run_me, r"Unsupported global: GLOBAL .*run_me was not an allowed global by default"),
        (eval, r"Unsupported global: GLOBAL eval was not an allowed global"),
        (getattr, r"Unsupported global: GLOBAL getattr was not an allowed global"),
    ],
)
def test_calls_of_other_functions(path: Path, function: Callable[..., Any], message: str) -> None:
    ran.clear()
    put_pickle(path, pickle.dumps(Call(function, "echo"), protocol=2))
    with pytest.raises(pickle.UnpicklingError, match=message) as caught:
        load(path)
    assert str(caught.value).startswith("Weights only load failed")
    assert "model.pt" in str(caught.value)
    assert ran == []


def text_code(text: str) -> bytes:
    return b"X" + struct.pack("<I", len(text)) + text.encode()


ORDERED_DICT = b"ccollections\nOrderedDict\n"
STORAGE = b"(" + text_code("storage") + b"ctorch\nFloatStorage\n" + text_code("0") + text_code("cpu") + b"K\x02tQ"
REBUILD = b"ctorch._utils\n_rebuild_tensor_v2\n"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        # Attributes of what is allowed: the class, a rebuild function, a tensor.
        (ORDERED_DICT + b"N}" + text_code("keys") + b"K\x01s\x86b", "Can only build Tensor, Parameter, OrderedDict"),
        (REBUILD + b"}" + text_code("a") + b"K\x01sb", "Can only build Tensor, Parameter, OrderedDict"),
        (b"]}b", "Can only build Tensor, Parameter, OrderedDict"),
        # Calls of values, and of methods by way of names with dots.
        (b"K\x01)R", "Trying to call reduce for unrecognized function 1"),
        (text_code("abc") + b")R", "Trying to call reduce for unrecognized function 'abc'"),
        (b"ccollections\nOrderedDict.fromkeys\n", "OrderedDict.fromkeys was not an allowed global"),
        (b"ctorch\nSize.__class__\n", "torch.Size.__class__ was not an allowed global"),
        (b"ctorch.hub\nload\n", "torch.hub.load was not an allowed global"),
        # Instructions that data does not need.
        (b"cos\nsystem\n", "os.system whose module os is blocked"),
        (b"(ios\nsystem\n", "Unsupported operand 105"),
        (b"(cbuiltins\nset\no", "Unsupported operand 111"),
        (text_code("os") + text_code("system") + b"\x93", "Unsupported operand 147"),
        (b"\x82\x01", "Unsupported operand 130"),
        (ORDERED_DICT + b")\x81", "Can only create new object for nn.Parameter or classes"),
        (b"Pabc\n", "Unsupported operand 80"),
        # Containers that are none.
        (b"}K\x01a", "Can only append to lists"),
        (b"]K\x01K\x02s", "Can only SETITEMS for dict"),
        (b"}]K\x01s", "unhashable"),
        (b"}(K\x01u", "a key without a value"),
        # Codecs are found by name, and some import modules; a number would be an amount of memory.
        (b"c_codecs\nencode\n" + text_code("a") + text_code("rot13") + b"\x86R", "allowed for latin1 only"),
        (b"c__builtin__\nbytearray\nJ\xff\xff\xff\x7f\x85R", "a bytearray is made of bytes"),
        (b"c__builtin__\nbytes\nJ\xff\xff\xff\x7f\x85R", "cannot be called as the pickle does"),
        # Storages and tensors that are none.
        (text_code("a") + b"Q", "Only persistent_load of storage is allowed"),
        (b"(" + text_code("module") + b"NNNNtQ", "Only persistent_load of storage is allowed"),
        (b"(" + text_code("storage") + b"NNNNtQ", "not the id of a storage"),
        (REBUILD + b")R", "cannot be called as the pickle does"),
        (REBUILD + b"(NK\x00))\x89NtR", "a tensor needs a storage"),
        (b"ctorch._utils\n_rebuild_parameter\n(K\x01\x88NtR", "a parameter needs a tensor"),
        (REBUILD + b"(" + STORAGE + b"J\xff\xff\xff\xffK\x01\x85K\x01\x85\x89NtR", "not a tensor: offset -1"),
        (REBUILD + b"(" + STORAGE + b"K\x00K\x02\x85J\xff\xff\xff\xff\x85\x89NtR", "not a tensor"),
        (REBUILD + b"(" + STORAGE + b"K\x00K\x02\x85)\x89NtR", "not a tensor"),
        (REBUILD + b"(" + STORAGE + b"K\x00N)\x89NtR", "a size must be a tuple of integers"),
        # Damage.
        (b"", "takes a value where there is none"),
        (b"h\x05", "never stored"),
        (b"t", "looks for a mark"),
        (b"X\xff\xff\x00\x00abc", "the pickle is damaged"),
    ],
)
def test_crafted_pickles(path: Path, code: bytes, message: str) -> None:
    put_pickle(path, b"\x80\x02" + code + b".")
    with pytest.raises(pickle.UnpicklingError, match=message):
        load(path)


def test_a_tensor_cannot_reach_outside_its_storage(path: Path) -> None:
    for offset, size, stride in ((0, 3, 1), (2, 1, 1), (0, 2, 2), (0, 255, 255)):
        window = b"K" + bytes([offset]) + b"K" + bytes([size]) + b"\x85K" + bytes([stride]) + b"\x85"
        put_pickle(path, b"\x80\x02" + REBUILD + b"(" + STORAGE + window + b"\x89NtR.")
        with pytest.raises(RuntimeError, match="out of bounds for storage 0 of size 2"):
            load(path)


def test_small_text_of_large_values(path: Path) -> None:
    """Forty nested lists of two references each: their full text has 2**40 parts."""
    code = b"]" + b"".join(b"q%c](h%ch%ce" % (n, n, n) for n in range(40))
    put_pickle(path, b"\x80\x02" + code + b"\x85Q.")
    with pytest.raises(pickle.UnpicklingError, match="Only persistent_load of storage"):
        load(path)


def test_cut_pickles_end_in_an_error(path: Path) -> None:
    save(path, {"w": tensor([1.0]), "p": tensor([1.0], is_parameter=True), "x": [1, "a", 2.5]})
    with zipfile.ZipFile(path) as archive:
        whole = archive.read("model/data.pkl")
    for length in range(len(whole)):
        put_pickle(path, whole[:length])
        with pytest.raises((pickle.UnpicklingError, RuntimeError)):
            load(path)


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_other_protocols_are_for_trusted_files(path: Path) -> None:
    save(path, {"w": tensor([1.0])}, pickle_protocol=4)
    with pytest.raises(pickle.UnpicklingError, match=r"Unsupported operand 149"):
        load(path)
    assert load(path, weights_only=False)["w"].to_array().tolist() == [1]


# What the caller trusts


def test_allowed_classes(path: Path) -> None:
    save(path, [Point(3), collections.defaultdict(list, a=[1])])
    with pytest.raises(pickle.UnpicklingError, match=r"Point was not an allowed global"):
        load(path)
    allowed = {
        (Point.__module__, "Point"): Point,
        ("collections", "defaultdict"): collections.defaultdict,
        ("builtins", "list"): list,
    }
    point, grouped = load(path, allowed=allowed)
    assert (type(point), point.x) == (Point, 3)
    assert grouped == {"a": [1]}
    assert grouped.default_factory is list


def test_blocked_modules_cannot_be_allowed(path: Path) -> None:
    put_pickle(path, b"\x80\x02cos\ngetcwd\n)R.")
    with pytest.raises(pickle.UnpicklingError, match=r"os\.getcwd whose module os is blocked"):
        load(path, allowed={("os", "getcwd"): os.getcwd})


def test_trusted_files_may_do_anything(path: Path) -> None:
    ran.clear()
    save(path, [Call(run_me, "hello"), Point(2), tensor([1.0], is_parameter=True)])
    text, point, parameter = load(path, weights_only=False)
    assert (text, ran, point.x, parameter.name) == ("hello", ["hello"], 2, "Parameter")


def test_names_below_torch_are_resolved_by_the_caller(path: Path) -> None:
    def as_torch(obj: object) -> Any:
        return torch_global("torch.geometry", "Point") if obj is Point else None

    write_archive(path, Point(4), describe=describe, extra_reduce=as_torch)
    names: list[tuple[str, str]] = []

    def resolve(module: str, name: str) -> Any:
        names.append((module, name))
        return Point

    assert load(path, weights_only=False, resolve_torch_name=resolve).x == 4
    assert names == [("torch.geometry", "Point")]
    with pytest.raises(pickle.UnpicklingError, match=r"needs torch\.geometry\.Point"):
        load(path, weights_only=False)


def test_errors_of_the_caller_are_not_taken_for_damage(path: Path) -> None:
    def build(record: TensorRecord) -> Any:
        raise TypeError("a mistake in build")

    save(path, tensor([1.0]))
    with pytest.raises(TypeError, match="a mistake in build"):
        load(path, build=build)


def test_unsupported_kinds_of_tensors(path: Path) -> None:
    put_pickle(path, b"\x80\x02ctorch._utils\n_rebuild_nested_tensor\n.")
    with pytest.raises(NotImplementedError, match=r"model\.pt: nested tensors"):
        load(path)


@pytest.mark.parametrize("record", ["data/0", "data.pkl"])
def test_bombs(path: Path, record: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that unpacks to much more than its size is refused before memory is taken, unless a limit allows it."""
    size = 40_000_000
    monkeypatch.setattr(_zip_reader, "_LEAST_LIMIT_BYTES", size // 2)
    save(path, tensor(np.zeros(2, np.float32)))
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    root = next(iter(members)).partition("/")[0]
    members[f"{root}/{record}"] = bytes(size)
    pickled = members[f"{root}/data.pkl"]
    members[f"{root}/data.pkl"] = pickled.replace(b"K\x02t", b"J" + struct.pack("<i", size // 4) + b"t")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    assert path.stat().st_size < 1_000_000
    with pytest.raises(RuntimeError, match=rf"{record} would unpack to {size} bytes.*MINDTORCH_LOAD_LIMIT_BYTES"):
        load(path)
    monkeypatch.setenv("MINDTORCH_LOAD_LIMIT_BYTES", "many")
    with pytest.raises(ValueError, match="should be a number of bytes, and is 'many'"):
        load(path)
    if record == "data/0":
        monkeypatch.setenv("MINDTORCH_LOAD_LIMIT_BYTES", str(2 * size))
        assert load(path).size == (2,)


def test_legacy_files_name_only_what_is_allowed(path: Path) -> None:
    """Looking for the storages of an old file imports and calls nothing."""
    magic = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
    head = magic + pickle.dumps(1001, 2) + pickle.dumps({}, 2)
    path.write_bytes(head + b"\x80\x02cos\nabort\n)R." + pickle.dumps([], 2))
    with pytest.raises(pickle.UnpicklingError, match="os is blocked"):
        load(path)
    path.write_bytes(head + b"\x80\x02X\xff\xff\xff\x7f")
    with pytest.raises(pickle.UnpicklingError, match=r"model\.pt: the pickle is damaged"):
        load(path)
    path.write_bytes(magic + pickle.dumps(7, 2))
    with pytest.raises(RuntimeError, match="Invalid protocol version: 7"):
        load(path)
    with pytest.raises(RuntimeError, match="mmap can only be used with files saved"):
        load(path, mmap=True)
