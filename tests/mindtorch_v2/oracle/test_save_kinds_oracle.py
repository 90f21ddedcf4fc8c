"""What PyTorch's files can hold beside tensors: wrappers, state in slots, names, places of a program's own."""

from __future__ import annotations

import collections
import importlib
import io
import mmap
import pickle
import struct
import sys
import types
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from harness import ours, theirs

HERE = sys.modules[__name__]
BOTH = pytest.mark.parametrize("torch", [ours, theirs], ids=["ours", "pytorch"])


def file_of(torch: Any, what: Any, **options: Any) -> io.BytesIO:
    target = io.BytesIO()
    torch.save(what, target, **options)
    target.seek(0)
    return target


def known(kind: Any) -> Any:
    """A class as pickles find it: in this module."""
    kind.__qualname__ = kind.__name__
    setattr(HERE, kind.__name__, kind)
    return kind


def wrapper_class(torch: Any) -> Any:
    class Wrapped(torch.Tensor):
        @staticmethod
        def __new__(cls: Any, inner: Any) -> Any:
            made = torch.Tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype)
            made.inner = inner
            return made

        @classmethod
        def __torch_dispatch__(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*[one.inner if isinstance(one, cls) else one for one in args], **(kwargs or {}))

    return known(Wrapped)


@BOTH
def test_tensors_without_memory(torch: Any) -> None:
    one = wrapper_class(torch)(torch.arange(3.0))
    read = torch.load(file_of(torch, {"a": one}), weights_only=False)["a"]
    assert type(read) is type(one)
    assert read.shape == (3,)
    assert read.inner.tolist() == [0, 1, 2]
    assert pickle.loads(pickle.dumps(one)).inner.tolist() == [0, 1, 2]
    with pytest.raises(pickle.UnpicklingError, match="Wrapped"):
        torch.load(file_of(torch, one))
    with torch.serialization.safe_globals([type(one)]):
        assert type(torch.load(file_of(torch, one))) is type(one)
    assert one.view(torch.int32).dtype == torch.int32


@BOTH
def test_state_of_subclasses(torch: Any) -> None:
    class Slots(torch.Tensor):
        __slots__ = ["kept"]

    class Chosen(torch.Tensor):
        def __getstate__(self) -> Any:
            return {"said": 5}

        def __setstate__(self, state: Any) -> None:
            self.told = state

    slots, chosen = torch.ones(2).as_subclass(known(Slots)), torch.ones(2).as_subclass(known(Chosen))
    slots.kept, slots.loose = 4, 1
    read = torch.load(file_of(torch, slots), weights_only=False)
    assert (read.kept, read.loose) == (4, 1)
    assert torch.load(file_of(torch, chosen), weights_only=False).told == {"said": 5}


@pytest.mark.parametrize("what", ["Tensor", "nn.functional.relu", "nn.Linear", "autograd.Function",
                                  "optim.lr_scheduler.StepLR", "utils._pytree.TreeSpec", "nn.init.xavier_normal_",
                                  "distributions.Normal"])
def test_names_in_files(what: str) -> None:
    """PyTorch finds classes and functions that we write, and the other way round."""
    importlib.import_module("torch.utils._pytree"), importlib.import_module("mindtorch_v2.utils._pytree")
    ours_one: Any = ours
    theirs_one: Any = theirs
    for part in what.split("."):
        ours_one, theirs_one = getattr(ours_one, part), getattr(theirs_one, part)
    assert theirs.load(file_of(ours, [ours_one]), weights_only=False) == [theirs_one]
    assert ours.load(file_of(theirs, [theirs_one]), weights_only=False) == [ours_one]


@BOTH
def test_places_of_a_program(torch: Any) -> None:
    serialization = torch.serialization
    before = list(serialization._package_registry)
    try:
        serialization.register_package(6, lambda one: "odd" if one.nbytes() == 12 else None,
                                       lambda one, place: one if place == "odd" else None)
        file = file_of(torch, [torch.ones(3), torch.ones(2)])
        assert b"odd" in file.getvalue()
        assert torch.load(file)[0].tolist() == [1, 1, 1]
    finally:
        serialization._package_registry[:] = before
    file.seek(0)
    with pytest.raises(RuntimeError, match=r"how to restore data location of .*UntypedStorage \(tagged with odd"):
        torch.load(file)
    file.seek(0)
    assert len(torch.load(file, map_location="cpu")) == 2


@BOTH
def test_one_memory_of_two_types(torch: Any) -> None:
    one = torch.ones(4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for legacy in (False, True):
            for pair in ([one, one.view(torch.int32)], [one.storage(), one.view(torch.int32).storage()]):
                with pytest.raises(RuntimeError, match="view the same data as different types"):
                    file_of(torch, pair, _use_new_zipfile_serialization=not legacy)


@BOTH
def test_builtins_by_their_names_today(torch: Any) -> None:
    assert sorted(torch.serialization.get_unsafe_globals_in_checkpoint(file_of(torch, [print, range(3)]))) == [
        "builtins.print", "builtins.range"]
    with torch.serialization.safe_globals([range]):
        assert torch.load(file_of(torch, range(3))) == range(3)


@BOTH
def test_a_shared_map_writes_to_the_file(torch: Any, tmp_path: Path) -> None:
    path = tmp_path / "file.pt"
    torch.save(torch.zeros(4), path)
    with torch.serialization.set_default_mmap_options(mmap.MAP_SHARED):
        torch.load(path, mmap=True).fill_(3)
    torch.load(path, mmap=True).fill_(5)
    assert torch.load(path, mmap=True).tolist() == [3] * 4
    with pytest.raises(ValueError, match=r"expected mmap.MAP_PRIVATE or mmap.MAP_SHARED"):
        torch.serialization.set_default_mmap_options(55)


@BOTH
def test_changed_source_is_noticed(torch: Any, tmp_path: Path) -> None:
    def written(name: str, more: str) -> types.ModuleType:
        path = tmp_path / f"{name}.py"
        path.write_text(f"class Net(BASE):\n    def __init__(self):\n        super().__init__()\n{more}")
        module = types.ModuleType("changing")
        module.__dict__.update(BASE=torch.nn.Module, __file__=str(path))
        sys.modules["changing"] = module
        exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
        return module

    try:
        file = file_of(torch, written("first", "").Net(), _use_new_zipfile_serialization=False)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            torch.load(file, weights_only=False)
        written("second", "        self.more = 1\n")
        file.seek(0)
        with pytest.warns(torch.serialization.SourceChangeWarning, match="has changed"):
            torch.load(file, weights_only=False)
    finally:
        del sys.modules["changing"]


@BOTH
def test_files_that_cannot_go_back(torch: Any) -> None:
    class Forward(io.BytesIO):
        def tell(self) -> int:
            raise io.UnsupportedOperation("tell")

    class Least:
        def read(self, count: int = -1) -> bytes:
            return b""

    advice = "You can only torch.load from a file that is seekable. Please pre-load the data into a buffer"
    with pytest.raises(io.UnsupportedOperation, match=advice):
        torch.load(Forward(b"PK"))
    with pytest.raises(AttributeError, match=advice):
        torch.load(Least())


@BOTH
def test_records_one_by_one(torch: Any) -> None:
    target = io.BytesIO()
    writer = torch.PyTorchFileWriter(target)
    writer.write_record("a", b"abc", 3)
    writer.write_record("b", "text", 4)
    writer.write_end_of_file()
    assert writer.archive_name() == "archive"
    reader = torch._C.PyTorchFileReader(io.BytesIO(target.getvalue()))
    assert set(reader.get_all_records()) == writer.get_all_written_records()
    assert (reader.get_record("a"), reader.has_record("b"), reader.has_record("c")) == (b"abc", True, False)
    begin = reader.get_record_offset("b")
    assert target.getvalue()[begin:begin + 4] == b"text"
    assert begin % 64 == 0
    with pytest.raises(RuntimeError, match="file not found"):
        reader.get_record("c")


@BOTH
def test_a_writer_that_is_dropped_ends_its_file(torch: Any) -> None:
    target = io.BytesIO()
    writer = torch.PyTorchFileWriter(target)
    writer.write_record("a", b"abc", 3)
    del writer
    assert torch._C.PyTorchFileReader(io.BytesIO(target.getvalue())).get_record("a") == b"abc"


@BOTH
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_old_files_of_every_protocol(torch: Any, protocol: int) -> None:
    file = file_of(torch, [torch.ones(2)], pickle_protocol=protocol, _use_new_zipfile_serialization=False)
    assert torch.load(file, weights_only=False)[0].tolist() == [1, 1]


def old_file_with_parts(torch: Any) -> io.BytesIO:
    """As PyTorch wrote it before 0.4: storages that are parts of one."""
    file = io.BytesIO()

    parts = {"first": ("a", 0, 2), "second": ("b", 1, 2)}

    class Parts(pickle.Pickler):
        def persistent_id(self, obj: Any) -> Any:
            part = parts.get(obj) if isinstance(obj, str) else None
            return None if part is None else ("storage", torch.FloatStorage, "k", "cpu", 3, part)

    facts = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}
    for part in (torch.serialization.MAGIC_NUMBER, 1001, facts):
        pickle.dump(part, file, 2)
    Parts(file, 2).dump(["first", "second", "first"])
    pickle.dump(["k"], file, 2)
    file.write(struct.pack("<q3f", 3, 5, 6, 7))
    file.seek(0)
    return file


@BOTH
def test_storages_that_are_parts(torch: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # The names of classes below torch mean the library that reads.
        one, two, again = torch.load(old_file_with_parts(theirs))
        assert (one.tolist(), two.tolist()) == ([5, 6], [6, 7])
        assert one.data_ptr() + 4 == two.data_ptr()
        one[1] = 9
        assert (two[0], again[1]) == (9, 9)


@BOTH
@pytest.mark.parametrize("legacy", [False, True])
def test_files_fill_memory_themselves(torch: Any, legacy: bool) -> None:
    class Filling(io.BytesIO):
        calls = 0

        def readinto(self, target: Any) -> int:
            Filling.calls += 1
            return super().readinto(target)

    found = torch.load(Filling(file_of(torch, torch.arange(40), _use_new_zipfile_serialization=not legacy).getvalue()))
    assert found.tolist() == list(range(40))
    assert Filling.calls


@BOTH
def test_the_unpickler_of_a_program(torch: Any) -> None:
    """A program's unpickler is asked for every name, and may give another one."""
    asked = []

    class Renaming(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            asked.append(name)
            return super().find_class(module, {"OrderedDict": "Counter"}.get(name, name))

    module = types.SimpleNamespace(Unpickler=Renaming, load=pickle.load, __name__="renaming")
    found = torch.load(file_of(torch, collections.OrderedDict(a=torch.ones(2))), pickle_module=module)
    assert type(found) is collections.Counter
    assert found["a"].tolist() == [1, 1]
    assert "_rebuild_tensor_v2" in asked


@BOTH
def test_windows_on_meta(torch: Any) -> None:
    base = torch.arange(6.0)
    found = torch.load(file_of(torch, [base, base[2:4]]), map_location="meta")
    assert [(one.device.type, one.storage_offset(), one.stride()) for one in found] == [
        ("meta", 0, (1,)), ("meta", 2, (1,))]


@BOTH
def test_names_that_would_be_refused(torch: Any) -> None:
    kind = wrapper_class(torch)
    file = file_of(torch, [kind(torch.ones(2)), Fraction(1, 2), torch.ones(1, dtype=torch.uint16)])
    names = torch.serialization.get_unsafe_globals_in_checkpoint(file)
    assert sorted(names) == sorted([f"{kind.__module__}.{kind.__qualname__}", "fractions.Fraction"])


@BOTH
def test_empty_memory_has_no_type(torch: Any) -> None:
    empty = torch.tensor([])
    found = torch.load(file_of(torch, [empty, empty.view(torch.uint8)]))
    assert [str(one.dtype) for one in found] == ["torch.float32", "torch.uint8"]
