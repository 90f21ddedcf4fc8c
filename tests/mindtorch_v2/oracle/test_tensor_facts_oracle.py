"""Methods of Tensor that query, share memory or make similar tensors; storages; small functions of `torch`."""

from __future__ import annotations

import copy
import os

import numpy as np
import pytest
from harness import check, check_error, data, ours, theirs, values

QUESTIONS = ["is_conj", "is_neg", "is_pinned", "is_distributed", "is_inference", "dense_dim", "sparse_dim", "is_shared",
             "is_signed", "is_nonzero"]
NOT_THERE = ["is_ipu", "is_maia", "is_mtia", "is_vulkan", "is_xla", "is_cuda", "is_sparse"]


@pytest.mark.parametrize("name", QUESTIONS)
def test_questions(name):
    check(lambda torch, x: getattr(x, name)(), values([2.0]))
    if name not in ("is_pinned", "dense_dim", "sparse_dim", "is_shared"):
        check(lambda torch, x: getattr(torch, name)(x), values([2.0]))


@pytest.mark.parametrize("name", NOT_THERE)
def test_devices_that_are_not_there(name):
    check(lambda torch, x: getattr(x, name), data(2))


def test_geometry():
    check(lambda torch, x: (x.is_set_to(x), x.is_set_to(x[:]), x.is_set_to(x[0]), x.is_set_to(x.clone())), data(2, 3))
    check(lambda torch, x: (x.dim_order(), x.t().dim_order(), x.unsqueeze(0).dim_order()), data(2, 3))
    check(lambda torch, x: x.to_dense(), data(2))
    check(lambda torch, x: x.const_data_ptr() == x.data_ptr(), data(2))
    check(lambda torch, x: x.grad_dtype, data(2))
    check(lambda torch, x, y: (torch.is_same_size(x, y), torch.is_same_size(x, x)), data(2), data(3))
    check(lambda torch, x: torch.get_device(x), data(2))


@pytest.mark.filterwarnings("ignore:.*[Tt]yped[Ss]torage is deprecated", "ignore:.*volatile")
def test_storage():
    def run(torch, x):
        kept = x.detach().storage()
        kept[1] = 7
        other = torch.FloatStorage([5, 6])
        return (kept.size(), len(kept), kept.nbytes(), kept.element_size(), kept.dtype, kept.tolist(), kept[2],
                x.storage_type().__name__, repr(kept), other.tolist(), other.clone().fill_(3).tolist(),
                isinstance(kept, torch.FloatStorage), isinstance(kept, torch.DoubleStorage), kept.device,
                torch.TypedStorage(3, dtype=torch.int32).size(), torch.UntypedStorage(4).nbytes(),
                torch.UntypedStorage([1, 2]).tolist(), isinstance(x.untyped_storage(), torch.UntypedStorage),
                torch.Storage.dtype, torch.LongStorage(2).copy_(torch.LongStorage([3, 4])).tolist(),
                kept.type(), list(kept), torch.is_storage(x.untyped_storage()), x.detach().volatile)

    check(run, data(2, 3), grad=False)
    check_error(lambda torch, x: x.storage()[0:2], data(3))
    with pytest.raises(RuntimeError):
        ours.FloatStorage(1, 2)


def test_untyped_storage():
    def run(torch, x):
        kept = x.detach().untyped_storage()
        copy = kept.clone().fill_(1)
        copy[0] = 7
        same = kept.resize_(kept.nbytes()).cpu().tolist()
        kept.copy_(copy)
        return kept.element_size(), copy.tolist(), same, kept.tolist(), x.detach()

    check(run, data(3), grad=False)
    x = ours.ones(2)
    with pytest.raises(NotImplementedError, match="reach further"):
        x.untyped_storage().resize_(0)


def test_modules_of_names():
    x = ours.tensor([[3.0, 1.0], [2.0, 5.0]])
    assert isinstance(x.sort(), ours.return_types.sort)
    assert isinstance(ours.linalg.eig(x), ours.return_types.linalg_eig)
    for name in dir(ours.return_types):
        assert getattr(ours.return_types, name).__name__ == name
        assert hasattr(theirs.return_types, name)
    assert set(ours.functional.__all__) == set(theirs.functional.__all__)
    for name in ours.functional.__all__:
        assert getattr(ours.functional, name) is getattr(ours, name)
    assert ours.storage.TypedStorage is ours.TypedStorage
    for module in (ours.return_types, ours.functional):
        with pytest.raises(AttributeError, match="no_such_name"):
            module.no_such_name  # noqa: B018


FIELDS = {name: [f for f in dir(getattr(theirs.return_types, name)) if type(
    getattr(getattr(theirs.return_types, name), f)).__name__ == "member_descriptor"] for name in dir(ours.return_types)}


@pytest.mark.parametrize("name", sorted(FIELDS))
def test_fields_of_results(name):
    assert sorted(FIELDS[name]) == sorted(getattr(ours.return_types, name).fields)


@pytest.mark.filterwarnings("ignore:.*[Tt]yped[Ss]torage is deprecated")
def test_set():
    def run(torch, x):
        empty = torch.zeros(2).set_()
        whole = torch.zeros(2).set_(x)
        part = torch.zeros(2).set_(x.untyped_storage(), 1, (2, 2), (2, 1))
        flat = torch.zeros(1).set_(x.storage())
        dense = torch.zeros(1).set_(x, 2, (2, 2))
        whole[0, 0] = 100
        return empty, whole, part, flat, dense, x, part.storage_offset(), part.is_set_to(x)

    check(run, data(2, 3), grad=False)
    check_error(lambda torch, x: torch.zeros(2, dtype=torch.int32).set_(x), data(2))


@pytest.mark.filterwarnings("ignore:non-inplace resize")
def test_resize():
    check(lambda torch, x: x.resize(3, 2), data(2, 3), nodes=False)
    check(lambda torch, x, y: x.resize_as(y), data(2, 3), data(6), nodes=False)
    check_error(lambda torch, x: x.resize(7), data(2, 3))
    check(lambda torch, x, y: (x.resize_as_(y).shape, torch.resize_as_(x, y[0]).shape), data(2, 3), data(3, 4),
          grad=False)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "bfloat16"])
def test_new(dtype):
    check(lambda torch, x: x.new_tensor([1, 0, 3]), data(2, dtype=dtype), grad=False)
    check(lambda torch, x: x.new_tensor(3.5, dtype=torch.float64), data(2, dtype=dtype), grad=False)
    check(lambda torch, x: x.new([1, 0]), data(2, dtype=dtype), grad=False)
    check(lambda torch, x: x.new(x), data(2, dtype=dtype), grad=False)
    check(lambda torch, x: (x.new(2, 3).shape, x.new().shape, x.new(x.shape).dtype), data(2, dtype=dtype), grad=False)
    check(lambda torch, x: x.new_empty_strided((2, 3), (1, 2)).stride(), data(2, dtype=dtype), grad=False)
    assert ours.zeros(2).new_tensor([1.0], requires_grad=True).requires_grad
    check_error(lambda torch, x: x.new("abc"), data(2))


def test_as_subclass():
    for torch in (ours, theirs):
        class Mine(torch.Tensor):
            pass

        x = torch.ones(2, requires_grad=True)
        made = x.as_subclass(Mine)
        assert type(made) is Mine
        (made * 3).sum().backward()
        assert x.grad.tolist() == [3.0, 3.0]
        with pytest.raises((RuntimeError, TypeError)):
            x.as_subclass(int)


@pytest.mark.parametrize("dtype", ["float32", "int64", "bfloat16", "bool"])
def test_python_functions_on_elements(dtype):
    check(lambda torch, x: x.apply_(lambda v: not v if dtype == "bool" else v + 1), data(2, 3, dtype=dtype), grad=False)
    check(lambda torch, x, y: x.map_(y, lambda a, b: a and b), data(2, 3, dtype=dtype), data(2, 3, dtype=dtype, seed=1),
          grad=False)
    check(lambda torch, x, y, z: x.map2_(y, z, lambda a, b, c: a or b or c), data(2, 3, dtype=dtype),
          data(2, 3, dtype=dtype, seed=1), data(2, 3, dtype=dtype, seed=2), grad=False)
    for torch in (ours, theirs):
        leaf = torch.ones(2, requires_grad=True)
        with pytest.raises(RuntimeError, match=r"map_\(\) on Variable that requires grad"):
            leaf.map_(leaf, lambda a, b: a)
    check_error(lambda torch, x, y: x.map_(y, lambda a, b: a), data(2), data(2, dtype="int64"), words=False)


def test_module_load():
    check(lambda torch, x, y: (x.detach().module_load(y), x, x.detach().module_load(y, assign=True)), data(2),
          data(2, seed=1), grad=False)


def test_shared_memory_is_seen_by_a_forked_process():
    x = ours.zeros(3)
    assert not x.is_shared()
    assert x.share_memory_() is x
    assert x.is_shared()
    child = os.fork()
    if child == 0:
        x[1] = 5.0
        os._exit(0)
    os.waitpid(child, 0)
    assert x.tolist() == [0.0, 5.0, 0.0]


# -- exchange --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int8", "complex64"])
def test_dlpack(dtype):
    x = ours.tensor([[1, 2], [3, 4]], dtype=getattr(ours, dtype))
    there = theirs.from_dlpack(x)
    assert str(there.dtype) == str(x.dtype)
    there[0, 0] = 9
    assert x[0, 0].item() == 9
    again = ours.from_dlpack(ours.to_dlpack(x))
    again[1, 1] = 8
    assert x[1, 1].item() == 8
    assert np.from_dlpack(x).tolist() == x.tolist()
    back = ours.from_dlpack(theirs.ones(2))
    assert back.tolist() == [1.0, 1.0]
    assert ours.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()
    assert x.__dlpack_device__() == (1, 0)


def test_dlpack_errors():
    for torch in (ours, theirs):
        with pytest.raises((RuntimeError, BufferError), match="require grad"):
            torch.ones(2, requires_grad=True).__dlpack__()
        with pytest.raises((RuntimeError, BufferError), match="require grad"):
            torch.from_dlpack(torch.ones(2, requires_grad=True))
        capsule = torch.utils.dlpack.to_dlpack(torch.ones(2, requires_grad=True))
        assert torch.from_dlpack(capsule).tolist() == [1.0, 1.0]
        with pytest.raises(RuntimeError, match="only once"):
            torch.from_dlpack(capsule)


def test_types_without_a_numpy_type_go_through_dlpack():
    mine = ours.arange(3, dtype=ours.bfloat16)
    shared = theirs.from_dlpack(mine)
    shared[0] = 7
    assert shared.dtype == theirs.bfloat16
    assert mine.tolist() == [7.0, 1.0, 2.0]
    back = ours.from_dlpack(shared)
    back[1] = 5
    assert back.dtype == ours.bfloat16
    assert mine.tolist() == [7.0, 5.0, 2.0]


def test_from_file(tmp_path):
    path = tmp_path / "numbers"
    np.arange(6, dtype=np.float32).tofile(path)

    def run(torch):
        mapped = torch.from_file(str(path), size=4)
        mapped[0] = 100
        return mapped, torch.from_file(str(path), size=2)

    check(run)
    shared = ours.from_file(str(tmp_path / "new"), shared=True, size=3, dtype=ours.int32)
    shared.fill_(7)
    assert ours.from_file(str(tmp_path / "new"), size=3, dtype=ours.int32).tolist() == [7, 7, 7]
    check_error(lambda torch: torch.from_file(str(path), size=400))


# -- small functions -------------------------------------------------------------------------------------------------


def test_broadcast_shapes():
    for shapes in (((2, 1), (3,)), (2, (3, 1)), ((),), ((1,), (5, 1, 2)), ()):
        check(lambda torch, shapes=shapes: torch.broadcast_shapes(*shapes))
    check_error(lambda torch: torch.broadcast_shapes((2,), (3,)))
    check_error(lambda torch: torch.broadcast_shapes((2, 3), (4, 3)))


@pytest.mark.parametrize("truth", [True, False])
def test_cond(truth):
    def run(torch, x):
        return torch.cond(torch.tensor(truth), lambda a: a + 1, lambda a: a * 2, (x.detach(),))

    x = ours.tensor([1.0, 3.0])
    assert run(ours, x).tolist() == ([2.0, 4.0] if truth else [2.0, 6.0])
    with pytest.raises(RuntimeError, match="pred"):
        ours.cond("yes", lambda: 1, lambda: 2)
    with pytest.raises(RuntimeError, match="single-element"):
        ours.cond(ours.tensor([True, False]), lambda: 1, lambda: 2)
    with pytest.raises(RuntimeError, match="callable"):
        ours.cond(True, 1, 2)


def test_numbers_instead_of_symbols():
    check(lambda torch: (torch.sym_int(3.7), torch.sym_float(3), torch.sym_max(1, 2), torch.sym_max(3, 1.5),
                         torch.sym_min(1, 2.0), torch.sym_not(True), torch.sym_sqrt(4), torch.sym_sum([1, 2, 3]),
                         torch.sym_ite(True, 1, 2)))


def test_what_is_built_in():
    assert ours.has_lapack
    assert ours.has_spectral
    assert not ours.has_mkl
    assert ours.newaxis is None
    check(lambda torch: (torch.sparse_coo, torch.strided, torch.jagged, torch.layout.__name__.lower(),
                         torch.is_vulkan_available(), torch.compiled_with_cxx11_abi(),
                         torch.legacy_contiguous_format))
    check(lambda torch, x: (torch.cudnn_is_acceptable(x), isinstance(x.layout, torch.layout)), data(2))
    check(lambda torch: [[base.__name__ for base in error.__mro__[1:]] for error in (
        torch.AcceleratorError, torch.OutOfMemoryError, torch.FatalError, torch.JITException)])
    assert ours.get_device_module("cpu") is ours.cpu
    assert ours.init_num_threads() is None
    assert ours.set_flush_denormal(True) is False
    with pytest.raises(RuntimeError, match=r"torch\.meta"):
        ours.get_device_module("meta")


def test_anomaly_switch():
    ours.set_anomaly_enabled(True)
    assert ours.is_anomaly_enabled()
    ours.set_anomaly_enabled(False)
    assert not ours.is_anomaly_enabled()


def test_streams_and_events():
    with ours.Stream("cpu") as stream:
        event = stream.record_event()
        assert event.query()
        assert stream.query()
        assert stream == ours.Stream()
    assert repr(stream) == repr(theirs.Stream(device="cpu"))
    with pytest.raises(RuntimeError, match="no streams"):
        ours.Stream("meta")


def test_class_property():
    class Example:
        @ours.classproperty
        def name(cls):
            return cls.__name__

    assert Example.name == "Example"


def test_cuda_is_not_there():
    check_error(lambda torch, x: x.cuda(), data(2))
    check_error(lambda torch, x: x.xpu(), data(2))


COPIED = {
    "plain": lambda t: t.arange(6.0).reshape(2, 3),
    "transposed": lambda t: t.arange(6.0).reshape(2, 3).t(),
    "part": lambda t: t.arange(12.0).reshape(3, 4)[1:, ::2],
    "empty": lambda t: t.empty(0, 3),
    "number": lambda t: t.tensor(3),
    "expanded": lambda t: t.ones(2, 1).expand(2, 3),
    "half": lambda t: t.ones(2, 3, dtype=t.bfloat16),
    "bool": lambda t: t.tensor([True, False]),
    "leaf": lambda t: t.ones(3, requires_grad=True),
    "parameter": lambda t: t.nn.Parameter(t.ones(3)),
}


@pytest.mark.parametrize("name", COPIED)
def test_deepcopy(name):
    found = []
    for t in (ours, theirs):
        x = COPIED[name](t)
        with t.profiler.profile(record_shapes=True) as recorded:
            y = copy.deepcopy(x)
        names = [(e.name, e.input_shapes) for e in recorded.events()]
        steps = y.stride() if y.numel() else None  # NumPy has none for arrays without elements
        found.append((y.tolist(), steps, y.storage_offset(), y.requires_grad, type(y).__name__, str(y.dtype),
                      names))
        assert not y.numel() or y.data_ptr() != x.data_ptr()
    assert found[0] == found[1]


def test_deepcopy_keeps_memory_shared():
    for t in (ours, theirs):
        x = t.zeros(2, 3)
        whole, row = copy.deepcopy([x, x[1]])
        whole.fill_(7)
        assert row.tolist() == [7.0] * 3
        assert x.sum() == 0
