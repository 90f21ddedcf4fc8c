"""Storages beside PyTorch: other sizes and other memory, with the tensors on them; casts; bytes of others; mistakes."""

from __future__ import annotations

import copy
import io
import struct
import warnings

import pytest
from harness import check_error

import mindtorch_v2 as ours

theirs = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")
pytestmark = pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")


def grown(t):
    x = t.arange(4.0)
    y, z, plain = x[1:], x.view(t.int32), x.data
    storage = x.untyped_storage()
    storage.resize_(64)
    x[3] = 7
    return (y.tolist(), z[3].item(), plain.tolist(), storage.nbytes(), y.untyped_storage().nbytes(),
            y.untyped_storage().data_ptr() == storage.data_ptr(), y.storage_offset())


def resized_with_views(t):
    x = t.arange(4.0)
    y = x[1:]
    x.resize_(10)
    x[3] = 7
    return y.tolist(), y.untyped_storage().nbytes(), x[:4].tolist(), x.untyped_storage().nbytes()


def cut(t):
    x = t.arange(4.0)
    storage = x.untyped_storage()
    y = t.tensor([]).set_(storage, 0, (2,), (1,))
    del x
    storage.resize_(8)
    y[0] = 5
    return y.tolist(), storage.nbytes(), storage.tolist()


def set_makes_room(t):
    storage = t.UntypedStorage(8).fill_(0)
    first = t.tensor([]).set_(storage, 0, (2,), (1,))
    second = t.tensor([]).set_(storage, 1, (4,), (1,))
    second.fill_(3)
    return first.tolist(), storage.nbytes(), second.tolist()


def shared(t):
    x = t.ones(3)
    y, c = x[1:], t.ones(2, dtype=t.complex64)
    flipped = c.conj()
    flipped.share_memory_()
    x.share_memory_()
    x[1] = 9
    c[0] = 2j
    return x.is_shared(), y.is_shared(), y.tolist(), c.is_shared(), flipped.tolist()


def shared_storage(t):
    x = t.ones(3)
    storage = x.untyped_storage()
    same = storage.share_memory_() is storage
    x[0] = 4
    return same, x.is_shared(), storage.is_shared(), storage.tolist(), storage.filename


def through_a_descriptor(t):
    storage = t.UntypedStorage(4).fill_(3)
    other = t.UntypedStorage._new_shared_fd_cpu(*storage._share_fd_cpu_())
    other[0] = 9
    return storage.tolist(), other.is_shared(), other.nbytes()


def views_and_grad(t):
    x = t.ones(3, requires_grad=True)
    y = x * 2
    z = y[1:]
    y.untyped_storage().resize_(64)
    (z * y.sum()).sum().backward()
    return x.grad.tolist()


CALLS = [
    grown, resized_with_views, cut, set_makes_room, shared, shared_storage, through_a_descriptor, views_and_grad,
    lambda t: t.UntypedStorage(4).resize_(8).nbytes(),
    lambda t: t.UntypedStorage._new_shared(10).is_shared(), lambda t: t.FloatStorage._new_shared(3).nbytes(),
    lambda t: t.ComplexFloatStorage.from_buffer(struct.pack(">4f", 1, 2, 3, 4), "big").tolist(),
    lambda t: t.UntypedStorage.from_buffer(bytearray([1, 2, 3, 4]), byte_order="big", dtype=t.int16).tolist(),
    lambda t: t.TypedStorage.from_buffer(bytearray(8), dtype=t.float32, byte_order="native").tolist(),
    lambda t: t.BoolStorage.from_buffer(bytearray([0, 2]), "big").tolist(),
    lambda t: [getattr(t.UntypedStorage([0, 1, 2]), name)().tolist() for name in (
        "float", "double", "half", "bfloat16", "int", "long", "short", "char", "byte", "bool", "complex_float")],
    lambda t: t.UntypedStorage([1]).type(), lambda t: t.UntypedStorage([1]).is_hpu,
    lambda t: t.FloatStorage(1)._get_legacy_storage_class().__name__,
    lambda t: t.typename(t.FloatStorage(1)),
]


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_calls(number):
    assert CALLS[number](ours) == CALLS[number](theirs)


def put(index, value):
    return lambda t: t.UntypedStorage([1, 2, 3]).__setitem__(index, value)


MISTAKES = [
    put(5, 1), put(0, "a"), put(0, 1.5), put(slice(None, None, 2), 7), lambda t: t.UntypedStorage(3).fill_(7.5),
    lambda t: t.UntypedStorage(3).copy_(t.UntypedStorage(2)),
    lambda t: t.FloatStorage([1, 2]).copy_(t.DoubleStorage([1, 2])),
    lambda t: t.FloatStorage.from_buffer(bytearray(8), byte_order="native", dtype=t.float32),
    lambda t: t.UntypedStorage.from_file("/no/such/file", False, 4),
    lambda t: t.UntypedStorage._new_shared(4).resize_(8), lambda t: t.UntypedStorage(4).resize_(-1),
    lambda t: t.from_numpy(t.zeros(3).numpy().copy()).untyped_storage().resize_(4),
]


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_mistakes(number):
    check_error(lambda t: MISTAKES[number](t), words=False)


def test_a_number_of_more_than_a_byte_is_cut():
    found = []
    for t in (ours, theirs):
        storage = t.UntypedStorage([1, 2, 3])
        storage[0] = 300
        found.append(storage.tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("module", [ours, theirs])
def test_from_file(module, tmp_path):
    name = str(tmp_path / "memory")
    shared = module.UntypedStorage.from_file(name, shared=True, nbytes=8)
    shared[0] = 77
    assert (tmp_path / "memory").read_bytes() == bytes([77, 0, 0, 0, 0, 0, 0, 0])
    assert (shared.filename, shared.is_shared(), shared.resizable()) == (name, True, False)
    alone = module.UntypedStorage.from_file(name, shared=False, nbytes=8)
    alone[0] = 1
    assert (alone.filename, shared[0]) == (None, 77)
    assert module.from_file(name, shared=True, size=2, dtype=module.int32).untyped_storage().filename == name
    with pytest.raises(RuntimeError, match="smaller than the required mapping size"):
        module.UntypedStorage.from_file(name, shared=False, nbytes=16)


USES = [
    lambda t, s: t.FloatStorage(2), lambda t, s: t.zeros(2).storage(), lambda t, s: t.TypedStorage.from_buffer(
        b"abcd", "native", dtype=t.float32), lambda t, s: t.zeros(2).untyped_storage(),
    lambda t, s: copy.deepcopy(t.zeros(2)), lambda t, s: t.save(t.zeros(2), io.BytesIO()),
    lambda t, s: t.zeros(2).set_(t.zeros(2).untyped_storage()), lambda t, s: t.Tensor(s), lambda t, s: s.fill_(1),
    lambda t, s: s[0], lambda t, s: s.device, lambda t, s: s.is_cuda, lambda t, s: len(s),
    *(lambda t, s, name=name: getattr(s, name)() for name in (
        "nbytes", "element_size", "size", "untyped", "data_ptr", "clone", "is_shared", "cpu", "pickle_storage_type"))]


def warned(torch):
    """What each call warns of, if all are to warn."""
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        storage = torch.FloatStorage([1, 2])
    torch.storage._set_always_warn_typed_storage_removal(True)
    try:
        for call in USES:
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                call(torch, storage)
            seen.append([str(one.message) for one in told])
    finally:
        torch.storage._set_always_warn_typed_storage_removal(False)
    return seen


def test_typed_storages_warn_of_their_end():
    """Once per call of a program, if it asks for that, and never for calls of the runtime itself."""
    assert warned(ours) == warned(theirs)
