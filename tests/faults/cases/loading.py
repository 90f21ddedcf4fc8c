"""Checkpoints that are wrong, hostile or huge: `torch.load` gives the right numbers or an error."""

from __future__ import annotations

import gzip
import io
import itertools
import pathlib
import pickle
import struct
import zipfile
from typing import Any

from ..registry import ANY, case
from ..tools import peak_mb, raises

_ERRORS = (RuntimeError, ValueError, EOFError, pickle.UnpicklingError, NotImplementedError)


def _saved(obj: Any) -> bytes:
    import mindtorch_v2 as torch

    buffer = io.BytesIO()
    torch.save(obj, buffer)
    return buffer.getvalue()


def _with(raw: bytes, **records: bytes) -> bytes:
    """The archive with other contents of some records, named with `__` for `/` and `_` for `.`."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as old, zipfile.ZipFile(target, "w") as new:
        for info in old.infolist():
            name = info.filename.partition("/")[2].replace("/", "__").replace(".", "_")
            new.writestr(info.filename, records.get(name, old.read(info)))
    return target.getvalue()


def _load(raw: bytes, **options: Any) -> Any:
    import mindtorch_v2 as torch

    return torch.load(io.BytesIO(raw), **options)


@case(recorders=ANY)
def conjugates_and_negatives(directory: pathlib.Path) -> None:
    """A file that says that a tensor is the conjugate or the negative of its memory gives those numbers."""
    import mindtorch_v2 as torch

    raw = _saved(torch.tensor([1 + 2j]))
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        pickled = archive.read("archive/data.pkl")
    # The end of the arguments of _rebuild_tensor_v2 gets one more, {"conj": True} or {"neg": True}.
    place = pickled.rindex(b"tq")
    for flag, expected in ((b"conj", 1 - 2j), (b"neg", -1 - 2j)):
        flagged = (pickled[:place] + b"}X" + struct.pack("<I", len(flag)) + flag + b"\x88s" + pickled[place:])
        assert _load(_with(raw, data_pkl=flagged)).tolist() == [expected], flag


@case(recorders=ANY, memory_gb=2.0)
def windows_of_huge_sizes(directory: pathlib.Path) -> None:
    """Windows of many elements on little memory, and empty ones, are read; what NumPy cannot count is refused."""
    import mindtorch_v2 as torch

    for size, stride in (((1 << 40,), (0,)), ((1 << 30, 1 << 30), (0, 0)), ((0, 1 << 60), (1, 1)), ((1,), (1 << 61,))):
        tensor = torch.ones(1)
        raw = _saved(tensor)
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            pickled = archive.read("archive/data.pkl")
        crafted = _Crafted(pickled).sizes(size, stride)
        assert tuple(_load(_with(raw, data_pkl=crafted)).shape) == size
    crafted = _Crafted(pickled).sizes((1 << 62,), (0,))
    raises(NotImplementedError, lambda: _load(_with(raw, data_pkl=crafted)), "63 bits")
    crafted = _Crafted(pickled).sizes((2,), (1,))
    raises(RuntimeError, lambda: _load(_with(raw, data_pkl=crafted)), "out of bounds")


class _Crafted:
    """A pickle of a tensor of one element, with other sizes."""

    def __init__(self, pickled: bytes) -> None:
        self.pickled = pickled

    def sizes(self, size: tuple[int, ...], stride: tuple[int, ...]) -> bytes:
        import pickletools

        operations = list(pickletools.genops(self.pickled))
        place = next(i for i, (op, _, _) in enumerate(operations) if op.name == "BINPERSID") + 1
        start = operations[place + 1][2]  # after the offset
        end = next(pos for op, _, pos in operations[place + 1:] if op.name == "NEWFALSE")
        body = b"".join(pickle.dumps(values, 2)[2:-1] for values in (size, stride))
        # The memo numbers of the two tuples are not used again.
        return self.pickled[:start] + _without_memo(body) + self.pickled[end:]


def _without_memo(code: bytes) -> bytes:
    import pickletools

    found, operations = b"", list(pickletools.genops(code + b"."))
    for (op, _, start), (_, _, end) in itertools.pairwise(operations):
        if op.name not in ("BINPUT", "LONG_BINPUT"):
            found += code[start:end]
    return found


@case(recorders=ANY)
def byte_orders(directory: pathlib.Path) -> None:
    """The other byte order gives the same numbers; an unknown one is named."""
    import numpy as np

    import mindtorch_v2 as torch

    for dtype in (torch.float32, torch.int16, torch.complex64, torch.bfloat16, torch.uint8, torch.uint32):
        tensor = torch.tensor([1, 2, 3]).to(dtype)
        array = np.frombuffer(tensor.untyped_storage().bytes().tobytes(), np.uint8)
        width = tensor.element_size() // (2 if dtype.is_complex else 1)
        swapped = array.reshape(-1, width)[:, ::-1].tobytes()
        assert _load(_with(_saved(tensor), byteorder=b"big", data__0=swapped)).tolist() == tensor.tolist(), dtype
    raises((RuntimeError,), lambda: _load(_with(_saved(tensor), byteorder=b"middle")), "endianness")


def _bomb(size: int, record: str = "archive/data/0") -> bytes:
    import mindtorch_v2 as torch

    raw = _saved(torch.zeros(2, dtype=torch.uint8))
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            content = old.read(info)
            if info.filename == "archive/data.pkl":
                content = content.replace(b"K\x02t", b"J" + struct.pack("<i", size) + b"t")
            if info.filename == record:
                with new.open(info.filename, "w", force_zip64=True) as file:
                    for _ in range(size >> 20):
                        file.write(bytes(1 << 20))
                continue
            new.writestr(info.filename, content)
    return target.getvalue()


@case(recorders=ANY, memory_gb=3.0)
def a_zip_bomb(directory: pathlib.Path) -> None:
    """A gigabyte in a file of a megabyte is refused, with the limit, before it takes memory."""
    import mindtorch_v2 as torch

    torch.ones(1)
    before = peak_mb()
    raises(RuntimeError, lambda: _load(_bomb(1 << 30)), "The limit is")
    raises(RuntimeError, lambda: _load(_bomb(1 << 30, "archive/data.pkl")), "The limit is")
    assert peak_mb() - before < 200, peak_mb() - before


@case(recorders=ANY, memory_gb=3.0)
def a_gzip_bomb(directory: pathlib.Path) -> None:
    """A trace of a gigabyte of blanks in a megabyte is refused, with the limit."""
    import mtprof

    path = directory / "t.json.gz"
    with gzip.open(path, "wb", 9) as file:
        file.write(b'{"traceEvents": [')
        for _ in range(1 << 10):
            file.write(b" " * (1 << 20))
        file.write(b"]}")
    raises(ValueError, lambda: mtprof.load(path), "unpacks to more than")


@case(recorders=ANY, memory_gb=3.0)
def sizes_that_lie(directory: pathlib.Path) -> None:
    """Counts in a pickle that the file cannot have take no memory."""
    import mindtorch_v2 as torch

    raw = _saved(torch.zeros(2, dtype=torch.uint8))
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        pickled = archive.read("archive/data.pkl")
    for number in (0, 1, 3, 1 << 31, 1 << 40, 1 << 62, 1 << 70, -1):
        crafted = pickled.replace(b"K\x02t", pickle.dumps(number, 2)[2:-1] + b"t")
        assert crafted != pickled
        raises(_ERRORS, lambda crafted=crafted: _load(_with(raw, data_pkl=crafted)))


@case(recorders=ANY, memory_gb=3.0)
def pickles_that_ask_for_code(directory: pathlib.Path) -> None:
    """No global is imported, no function is called and no attribute is set because a file says so."""
    import sys

    import mindtorch_v2 as torch

    raw = _saved(1)
    flag = directory / "ran"
    hostile = [
        b"\x80\x02cos\nsystem\nX" + struct.pack("<I", len(f"touch {flag}")) + f"touch {flag}".encode() + b"\x85R.",
        b"\x80\x02cbuiltins\neval\nX\x05\x00\x00\x001/0+1\x85R.",
        b"\x80\x02cantigravity\nfly\n)R.",
        b"\x80\x02ctorch\nload\nX\x01\x00\x00\x00x\x85R.",
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n}X\x08\x00\x00\x00__code__K\x01sb.",
        b"\x80\x02ccollections\nOrderedDict\n)R}X\x09\x00\x00\x00__class__K\x01sb.",
        b"\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\xff.",
        b"\x80\x02(" * 100_000 + b".",
        b"\x80\x02]" + b"]a" * 50_000 + b".",
        b"\x80\x02\x8a\xff" + b"\xff" * 300 + b".",
        b"\x80\x02X\xff\xff\xff\x7f.",
        b"\x80\x02cbuiltins\nbytearray\nJ\xff\xff\xff\x7f\x85R.",
    ]
    before = set(sys.modules)
    for pickled in hostile:
        for kind in ("zip", "legacy"):
            head = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19." + pickle.dumps(1001, 2) + pickle.dumps({}, 2)
            file = _with(raw, data_pkl=pickled) if kind == "zip" else head + pickled + pickle.dumps([], 2)
            try:
                made = _load(file)
            except _ERRORS:
                continue
            assert not isinstance(made, torch.Tensor)
    assert not flag.exists()
    assert "antigravity" not in set(sys.modules) - before


@case(recorders=ANY, seconds=120)
def every_byte_changed(directory: pathlib.Path) -> None:
    """A checkpoint with any one byte changed gives an error of a known kind, or the object without that byte's part."""
    import mindtorch_v2 as torch

    raw = bytearray(_saved({"w": torch.arange(4.0), "b": torch.ones(2, dtype=torch.int16), "n": 3}))
    for place in range(0, len(raw), 2):
        for value in (0, 0xFF, raw[place] ^ 1):
            changed = bytes(raw[:place]) + bytes([value]) + bytes(raw[place + 1:])
            try:
                _load(changed)
            except (*_ERRORS, KeyError, AttributeError, TypeError, OSError) as error:
                assert not isinstance(error, (KeyError, AttributeError, TypeError)), (place, value, error)


@case(recorders=ANY)
def every_cut(directory: pathlib.Path) -> None:
    """A checkpoint that ends early, in both formats, raises an error of a known kind."""
    import mindtorch_v2 as torch

    raw = _saved({"w": torch.arange(4.0)})
    for end in range(0, len(raw) - 1, 3):
        raises((*_ERRORS, OSError), lambda end=end: _load(raw[:end]))


@case(recorders=ANY)
def a_save_that_fails_keeps_the_old_file(directory: pathlib.Path) -> None:
    """An object that cannot be pickled, a full disk or a name that is a directory leave the old file as it was."""
    import resource

    import mindtorch_v2 as torch

    path = directory / "model.pt"
    torch.save(torch.ones(3), path)
    before = path.read_bytes()
    raises(Exception, lambda: torch.save({"f": lambda: None, "t": torch.ones(2)}, path))
    raises(RuntimeError, lambda: torch.save(torch.ones(2), directory))
    raises(RuntimeError, lambda: torch.save(torch.ones(2), directory / "no" / "where.pt"), "no")
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
    raises(OSError, lambda: torch.save(torch.ones(1_000_000), path))
    assert path.read_bytes() == before
    assert [item.name for item in directory.iterdir()] == ["model.pt"]


@case(recorders=ANY)
def names_of_240_bytes(directory: pathlib.Path) -> None:
    """Files with long names, in any script, are written and read, and leave nothing beside them."""
    import mindtorch_v2 as torch

    with torch.profiler.profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        torch.ones(2) + 1
    for letter in "aé語😀":
        stem = letter * (230 // len(letter.encode()))
        torch.save(torch.ones(2), directory / f"{stem}.pt")
        assert torch.load(directory / f"{stem}.pt").tolist() == [1, 1]
        prof.export_chrome_trace(directory / f"{stem}.json")
        prof.save(directory / f"{stem}.mtp")
        prof.export_memory_timeline(str(directory / f"{stem}.html"), "cpu")
        prof.export_stacks(str(directory / f"{stem}.txt"))
    assert len(list(directory.iterdir())) == 20
