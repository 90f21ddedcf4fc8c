"""Settings of `save` and `load`, and what file objects and files must have, beside PyTorch."""

from __future__ import annotations

import importlib
import io
import pickle
import zipfile

import pytest
from harness import check_error

import mindtorch_v2 as ours

theirs = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")
BOTH = [ours, theirs]


def config(module):
    return importlib.import_module(f"{module.__name__}.utils.serialization").config


def saved(module, what, **options):
    target = io.BytesIO()
    module.save(what, target, **options)
    target.seek(0)
    return target


@pytest.mark.parametrize("writer", BOTH)
@pytest.mark.parametrize("reader", BOTH)
def test_without_sums(writer, reader):
    with config(writer).patch("save.compute_crc32", False):
        assert not writer.serialization.get_crc32_options()
        file = saved(writer, {"a": writer.arange(40.0), "b": writer.ones(3)})
    assert {info.CRC for info in zipfile.ZipFile(file).infolist()} == {0}
    file.seek(0)
    assert reader.load(file)["a"].tolist() == list(range(40))


@pytest.mark.parametrize("writer", BOTH)
@pytest.mark.parametrize("reader", BOTH)
def test_alignment(writer, reader, tmp_path):
    path = tmp_path / "file.pt"
    with config(writer).patch({"save.storage_alignment": 4096}):
        writer.save([writer.ones(2), writer.full((3,), 2.0)], path)
    raw = path.read_bytes()
    begins = [place for place in range(0, len(raw), 4096) if raw[place : place + 8] in (
        b"\0\0\x80?" * 2, b"\0\0\0@" * 2)]
    assert len(begins) == 2
    for mmap in (False, True):
        assert [one.tolist() for one in reader.load(path, mmap=mmap)] == [[1, 1], [2, 2, 2]]


@pytest.mark.parametrize("module", BOTH)
def test_the_assumed_byte_order(module):
    source, target = zipfile.ZipFile(saved(module, module.tensor([1, 256], dtype=module.int16))), io.BytesIO()
    with zipfile.ZipFile(target, "w") as copy:
        for name in source.namelist():
            if not name.endswith("byteorder"):
                copy.writestr(name, source.read(name))
    orders = module.serialization.LoadEndianness
    found = []
    for order in (None, orders.LITTLE, orders.BIG, orders.NATIVE):
        module.serialization.set_default_load_endianness(order)
        try:
            assert config(module).load.endianness is module.serialization.get_default_load_endianness() is order
            target.seek(0)
            found.append(module.load(target).tolist())
        finally:
            module.serialization.set_default_load_endianness(None)
    assert found == [[1, 256], [1, 256], [256, 1], [1, 256]]


class Plain:
    """A file object with the least that `load` asks for."""

    def __init__(self, file):
        self.read, self.readline, self.seek, self.tell = file.read, file.readline, file.seek, file.tell


@pytest.mark.parametrize("module", BOTH)
@pytest.mark.parametrize("is_zip", [True, False])
def test_a_file_object_that_says_little(module, is_zip):
    file = saved(module, [module.ones(2)], _use_new_zipfile_serialization=is_zip)
    assert module.load(Plain(file))[0].tolist() == [1, 1]


@pytest.mark.parametrize("module", BOTH)
def test_warnings(module):
    with pytest.warns(UserWarning, match="pickle_load_args only works"):
        module.load(saved(module, module.ones(1)), weights_only=True, encoding="latin1")
    with pytest.warns(UserWarning, match="Detected pickle protocol 4"), pytest.raises(pickle.UnpicklingError):
        module.load(saved(module, [1], pickle_protocol=4))


def set_unknown(t):
    config(t).save.no_such_setting = 3


MISTAKES = [
    set_unknown,
    lambda t: t.serialization.get_unsafe_globals_in_checkpoint(
        saved(t, [t.ones(1)], _use_new_zipfile_serialization=False)),
    lambda t: t.load(io.BytesIO(pickle.dumps({"a": 1})), weights_only=False),
]


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_mistakes(number):
    check_error(MISTAKES[number])
