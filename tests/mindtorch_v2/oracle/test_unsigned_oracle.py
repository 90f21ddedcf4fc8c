"""Dtypes with few ops: wide unsigned integers, which can be stored and converted, and those that are only names."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest
from harness import check, check_error, ours, theirs, values

WIDE = ["uint16", "uint32", "uint64"]
CALLS = {
    "to": lambda torch, x: x.to(torch.int64), "float": lambda torch, x: x.float(), "index": lambda torch, x: x[1:],
    "scaled": lambda torch, x: x * 2, "sum": lambda torch, x: x.sum(), "prod": lambda torch, x: x.prod(),
    "equal": lambda torch, x: x == x, "sort": lambda torch, x: x.sort(), "halves": lambda torch, x: x / 2,
    "and": lambda torch, x: x & x, "cat": lambda torch, x: torch.cat([x, x]), "more": lambda torch, x: x + 1.5,
    "fill": lambda torch, x: x.clone().fill_(3), "zeros": lambda torch, x: torch.zeros_like(x),
    "limits": lambda torch, x: (torch.iinfo(x.dtype).max, torch.iinfo(x.dtype).min, torch.iinfo(x.dtype).bits),
    "facts": lambda torch, x: (x.dtype.is_signed, x.dtype.itemsize, x.type(), repr(x), x.tolist(), torch.typename(x)),
    "bytes": lambda torch, x: x.view(torch.uint8), "reshape": lambda torch, x: x.reshape(2, 2).t().contiguous(),
    "back": lambda torch, x: x.to(torch.float32).to(x.dtype),
}


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("name", CALLS)
def test_what_pytorch_has(dtype, name):
    check(CALLS[name], values([1, 3, 2, 40000], dtype))


@pytest.mark.parametrize("first", WIDE)
@pytest.mark.parametrize("second", [*WIDE, "bool", "uint8", "int8", "int64", "float16", "float64", "complex64"])
def test_promotion(first, second):
    def run(torch):
        return torch.promote_types(getattr(torch, first), getattr(torch, second))

    try:
        run(theirs)
    except RuntimeError:
        check_error(run)
    else:
        check(run)


@pytest.mark.parametrize("dtype", WIDE)
def test_from_numpy_and_files(dtype):
    array = np.array([1, 2**15], dtype)
    assert str(ours.from_numpy(array).dtype) == f"torch.{dtype}"
    written = io.BytesIO()
    ours.save(ours.from_numpy(array), written)
    for torch in (ours, theirs):
        written.seek(0)
        again = torch.load(written)
        assert str(again.dtype) == f"torch.{dtype}"
        assert again.tolist() == array.tolist()
    check_error(lambda torch, x: x + torch.tensor([1, 2]), values([1, 2], dtype))
    check_error(lambda torch, x: x.mean(), values([1, 2], dtype))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "bool"])
def test_hash(dtype):
    check(lambda torch, x: torch.hash_tensor(x), values([[1, 0, 3], [2, 7, 1]], dtype), grad=False)
    check(lambda torch, x: x.hash_tensor(1, keepdim=True), values([[1, 0, 3], [2, 7, 1]], dtype), grad=False)


NAMED = ["bit", "bits16", "bits8", "chalf", "complex32", "float4_e2m1fn_x2", "int4",
         "qint8", "qint32", "quint4x2", "uint1", "uint7"]


@pytest.mark.parametrize("name", NAMED)
def test_names_of_dtypes(name):
    def facts(torch):
        found = getattr(torch, name)
        return (repr(found), found.itemsize, found.is_floating_point, found.is_complex, isinstance(found, torch.dtype))

    check(facts)
    kind = getattr(ours, name)
    assert pickle.loads(pickle.dumps(kind)) is kind
    assert kind != ours.float32
    for use in (lambda: ours.zeros(2, dtype=kind), lambda: ours.ones(2).to(kind),
                lambda: ours.tensor([1.0], dtype=kind)):
        with pytest.raises(NotImplementedError, match=f"torch.{kind.name} are not supported"):
            use()
    if name.startswith(("q", "bits")):
        check_error(lambda torch: getattr(torch, name).is_signed, words=False)
    else:
        check(lambda torch: getattr(torch, name).is_signed)
    with pytest.raises(AttributeError):
        kind.no_such_attribute  # noqa: B018


def test_quantization_schemes():
    check(lambda torch: (torch.per_tensor_affine, isinstance(torch.per_channel_symmetric, torch.qscheme)))
