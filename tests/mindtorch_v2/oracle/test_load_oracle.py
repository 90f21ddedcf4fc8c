"""`torch.load` of files that PyTorch wrote: the same values, shapes, strides, flags and sharing, in both formats."""

from __future__ import annotations

import collections
import io
import pickle
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import mindtorch_v2 as ours

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

DTYPES = ["uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
          "complex128", "bool", "uint16", "uint32", "uint64", "float8_e5m2", "float8_e4m3fn"]
SIMPLE = frozenset(DTYPES[:12])


def _conjugates() -> Any:
    base = torch.tensor([[1 + 2j, 3 - 1j], [0.5j, 2.0 + 0j]])
    return {"base": base, "conj": base.conj(), "turned": base.conj().t(), "row": base.conj()[1]}


def _trained() -> Any:
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(4, 3)).sum().backward()
    optimizer.step()
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict()}


def _marked(tensor: Any, **attributes: Any) -> Any:
    vars(tensor).update(attributes)
    return tensor


def _hooked() -> Any:
    tensor = torch.ones(2, requires_grad=True)
    tensor.register_hook(abs)
    return tensor


CASES = {
    "conjugates": _conjugates,
    "negative": lambda: torch.tensor([1 + 2j, 3 - 1j]).conj().imag,
    "negative of a conjugate": lambda: torch._neg_view(torch.tensor([1 + 2j, 3 - 1j]).conj()),
    "conjugate of a double": lambda: torch.tensor([1 + 2j], dtype=torch.complex128).conj(),
    "parameter of a conjugate": lambda: torch.nn.Parameter(torch.tensor([1 + 2j]).conj()),
    "parameter of a negative": lambda: torch.nn.Parameter(torch.tensor([1 + 2j, 5j]).conj().imag),
    "huge conjugate": lambda: torch.tensor([1 + 2j]).expand(1 << 50).conj(),
    "huge": lambda: torch.ones(1).expand(1 << 40, 1 << 20),
    "huge bytes": lambda: torch.ones(1, dtype=torch.uint8).expand((1 << 63) - 1),
    "huge and empty": lambda: torch.empty(1 << 40, 0, 1 << 18),
    "huge step": lambda: torch.ones(3).as_strided((2, 1), (1, 1 << 40)),
    "expanded": lambda: torch.arange(3.0)[:, None].expand(3, 4),
    "scalar": lambda: torch.tensor(3.0),
    "empty": lambda: torch.ones(5)[5:],
    "strided": lambda: torch.arange(20.0).view(4, 5)[1:, ::2],
    "channels last": lambda: torch.arange(24.0).view(1, 2, 3, 4).to(memory_format=torch.channels_last),
    "bytes of another type": lambda: torch.arange(4.0).view(torch.int32),
    "meta": lambda: torch.empty(3, 4, device="meta"),
    "requires grad": lambda: torch.ones(2, requires_grad=True),
    "not a leaf": lambda: torch.ones(2, requires_grad=True) * 2,
    "hooks": _hooked,
    "parameter": lambda: torch.nn.Parameter(torch.ones(2)),
    "frozen parameter": lambda: torch.nn.Parameter(torch.ones(2), requires_grad=False),
    "parameter with an attribute": lambda: _marked(torch.nn.Parameter(torch.ones(2)), note=3),
    "tensor with an attribute": lambda: _marked(torch.ones(2), note=[1, "a"]),
    "buffer": lambda: torch.nn.Buffer(torch.ones(2)),
    "sparse": lambda: torch.eye(3).to_sparse(),
    "uncoalesced": lambda: torch.sparse_coo_tensor([[0, 0], [1, 1]], [1.0, 2.0], (2, 3)),
    "compressed": lambda: torch.eye(3).to_sparse_csr(),
    "compressed columns": lambda: torch.eye(3).to_sparse_csc(),
    "hybrid": lambda: torch.sparse_coo_tensor([[0, 2]], [[1.0, 2.0], [3.0, 4.0]], (3, 2)),
    "typed storage": lambda: torch.arange(3.0).storage(),
    "untyped storage": lambda: torch.arange(3.0).untyped_storage(),
    "tensor and its storage": lambda: (lambda x: [x, x.storage()])(torch.arange(3.0)),
    "training": _trained,
    "plain": lambda: [1 << 70, -(1 << 70), 2**31, -5, 1.5, float("inf"), True, None, "é", b"ab", bytearray(b"x"),
                      {1, 2}, 1 + 2j, collections.OrderedDict(a=1), collections.Counter("aab"), (1,)],
    "names": lambda: [torch.Size([1, 2]), torch.device("cpu"), torch.float32, torch.uint16, torch.strided],
    "random state": lambda: torch.Generator().manual_seed(3).get_state(),
}


def saved(obj: Any, legacy: bool = False) -> io.BytesIO:
    buffer = io.BytesIO()
    torch.save(obj, buffer, _use_new_zipfile_serialization=not legacy)
    buffer.seek(0)
    return buffer


def facts(library: Any, value: Any) -> Any:
    """What can be compared of a value of one library."""
    if isinstance(value, library.Tensor):
        kind = (type(value).__name__, str(value.dtype).rpartition(".")[2], tuple(value.shape), value.requires_grad)
        note = {name: one for name, one in vars(value).items() if not name.startswith("_")}
        if value.device.type == "meta":
            return *kind, value.stride()
        if str(value.layout) == "torch.sparse_coo":
            return *kind, value.is_coalesced(), value._indices().tolist(), value._values().tolist()
        if str(value.layout) != "torch.strided":
            return *kind, str(value.layout), value.values().tolist(), value.to_dense().tolist()
        if value.numel() > 1000:
            return *kind, value.stride(), value.flatten()[0].item() if value.dim() == 1 else value[0, 0].item()
        if value.numel() == 0:
            return kind
        return *kind, note, value.stride(), value.storage_offset(), value.tolist()
    if type(value) in (list, tuple):
        return [facts(library, one) for one in value]
    if isinstance(value, dict):
        return type(value).__name__, [(key, facts(library, one)) for key, one in value.items()]
    if "Storage" in type(value).__name__:
        return type(value).__name__, str(value.dtype).rpartition(".")[2], value.tolist()
    return repr(value)


def compare(make: Callable[[], Any], legacy: bool, weights_only: bool) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TypedStorage is deprecated, sparse invariants are not checked
        file = saved(make(), legacy)
        expected = facts(torch, torch.load(file, weights_only=weights_only))
        file.seek(0)
        loaded = ours.load(file, weights_only=weights_only)
        assert facts(ours, loaded) == expected
    return loaded


@pytest.mark.parametrize("weights_only", [True, False], ids=["safe", "trusting"])
@pytest.mark.parametrize("legacy", [False, True], ids=["zip", "legacy"])
@pytest.mark.parametrize("name", CASES)
def test_same_as_pytorch(name: str, legacy: bool, weights_only: bool) -> None:
    if legacy and name == "untyped storage":
        pytest.skip("PyTorch cannot read back what it writes of it in the old format")
    compare(CASES[name], legacy, weights_only)


@pytest.mark.parametrize("legacy", [False, True], ids=["zip", "legacy"])
@pytest.mark.parametrize("name", DTYPES)
def test_dtypes(name: str, legacy: bool) -> None:
    if legacy and name not in SIMPLE:
        pytest.skip("PyTorch cannot read back what it writes of this dtype in the old format")
    compare(lambda: torch.arange(6).to(getattr(torch, name))[1:], legacy, True)


@pytest.mark.parametrize("legacy", [False, True], ids=["zip", "legacy"])
def test_what_was_shared_is_shared(legacy: bool) -> None:
    base = torch.arange(10.0)
    loaded = compare(lambda: {"base": base, "view": base[2:], "turned": base.view(2, 5).t()}, legacy, True)
    loaded["base"].add_(1)
    assert loaded["view"].tolist() == list(range(3, 11))
    assert loaded["turned"][0].tolist() == [1, 6]
    conjugate = torch.tensor([1 + 2j, 3j]).conj()
    loaded = compare(lambda: [conjugate, conjugate[1:]], legacy, True)
    loaded[0].mul_(2)
    assert loaded[1].tolist() == [-6j]


class Marked(ours.Tensor):
    """A subclass to load into."""


def test_subclasses() -> None:
    class Theirs(torch.Tensor):
        __module__ = "somewhere"
        __qualname__ = "Marked"

    module = types.ModuleType("somewhere")
    module.Marked = Theirs  # type: ignore[attr-defined]
    sys.modules["somewhere"] = module
    try:
        file = saved(_marked(torch.arange(3.0).as_subclass(Theirs), note=5))
    finally:
        del sys.modules["somewhere"]
    with pytest.raises(Exception, match=r"somewhere\.Marked was not an allowed global"):
        ours.load(file)
    file.seek(0)
    with ours.serialization.safe_globals([(Marked, "somewhere.Marked")]):
        loaded = ours.load(file)
    assert type(loaded) is Marked
    assert loaded.tolist() == [0, 1, 2]
    assert loaded.note == 5


@pytest.mark.parametrize(("make", "message"), [
    (lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8), "quantized tensors"),
    (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "nested tensors"),
    (lambda: torch.ones(3).to(torch.complex32), "complex32 is not supported"),
    (lambda: torch.zeros(3, dtype=torch.uint8).view(torch.bits8), "bits8 is not supported"),
    (lambda: torch.ones(1).expand(1 << 61), "63 bits"),
], ids=["quantized", "nested", "complex32", "bits8", "too huge"])
def test_what_is_refused_says_so(make: Any, message: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file = saved(make())
    with pytest.raises(NotImplementedError, match=message):
        ours.load(file)


def test_a_cut_legacy_file_is_noticed() -> None:
    whole = saved({"x": torch.arange(4.0), "y": torch.ones(3)}, legacy=True).getvalue()
    for end in range(15, len(whole), 3):
        with pytest.raises((RuntimeError, EOFError, pickle.UnpicklingError)):
            ours.load(io.BytesIO(whole[:end]))
