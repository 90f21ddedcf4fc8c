"""Copies and conversions against PyTorch: the layout of what comes out, and the ops that a profile shows of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

from both import same  # noqa: E402
from harness import ours, theirs  # noqa: E402

Form = Callable[[Any], Any]


def matrix(torch: Any) -> Any:
    return torch.zeros(2, 3)


def images(torch: Any) -> Any:
    return torch.zeros(1, 2, 3, 4)


def wide(torch: Any) -> Any:
    return torch.zeros(16, 96)


FORMS: dict[str, Form] = {
    "dtype": lambda t: matrix(t).to(t.float64),
    "the same dtype": lambda t: matrix(t).to(t.float32),
    "the same dtype, copied": lambda t: matrix(t).to(t.float32, copy=True),
    "dtype by name": lambda t: matrix(t).to(dtype=t.float64),
    "device": lambda t: matrix(t).to("cpu"),
    "device, copied": lambda t: matrix(t).to("cpu", copy=True),
    "device and dtype": lambda t: matrix(t).to("cpu", t.float64),
    "as another tensor": lambda t: matrix(t).to(t.zeros(2, dtype=t.float64)),
    "double": lambda t: matrix(t).double(),
    "float": lambda t: matrix(t).float(),
    "cpu": lambda t: matrix(t).cpu(),
    "type": lambda t: matrix(t).type(t.float64),
    "type by name": lambda t: matrix(t).type("torch.DoubleTensor"),
    "type_as": lambda t: matrix(t).type_as(t.zeros(2, dtype=t.float64)),
    "type_as the same": lambda t: matrix(t).type_as(matrix(t)),
    "channels last": lambda t: images(t).to(memory_format=t.channels_last),
    "channels last and dtype": lambda t: images(t).to(t.float64, memory_format=t.channels_last),
    "channels last kept": lambda t: images(t).contiguous(memory_format=t.channels_last).to(t.float64),
    "channels last undone": lambda t: images(t).to(memory_format=t.channels_last).to(memory_format=t.contiguous_format),
    "contiguous format of a transposed one": lambda t: images(t).transpose(1, 2).to(
        t.float64, memory_format=t.contiguous_format),
    "transposed": lambda t: images(t).transpose(1, 2).to(t.float64),
    "clone in channels last": lambda t: images(t).clone(memory_format=t.channels_last),
    "empty in channels last": lambda t: t.empty(1, 2, 3, 4, memory_format=t.channels_last),
    "empty_like in channels last": lambda t: t.empty_like(images(t), memory_format=t.channels_last),
    "zeros_like in channels last": lambda t: t.zeros_like(images(t), memory_format=t.channels_last),
    "channels last in three dimensions": lambda t: t.zeros(1, 2, 3, 4, 5).to(memory_format=t.channels_last_3d),
    "clone": lambda t: wide(t).clone(),
    "clone of a transposed one": lambda t: wide(t).t().clone(),
    "clone of columns": lambda t: wide(t)[:, :32].clone(),
    "clone of transposed columns": lambda t: wide(t).t()[:32].clone(),
    "clone of steps": lambda t: t.zeros(10)[::2].clone(),
    "clone of an expanded one": lambda t: wide(t).expand(3, 16, 96).clone(),
    "clone of one expanded inside": lambda t: t.zeros(4, 1, 5).transpose(0, 2).expand(5, 6, 4).clone(),
    "conversion of an expanded one": lambda t: wide(t).expand(3, 16, 96).double(),
    "empty_like of columns": lambda t: t.empty_like(wide(t)[:, :32]),
    "empty_like of transposed columns": lambda t: t.empty_like(wide(t).t()[:32]),
    "zeros_like of columns": lambda t: t.zeros_like(wide(t)[:, :3]),
    "contiguous": lambda t: wide(t).t().contiguous(),
    "empty_strided": lambda t: t.empty_strided((2, 3), (1, 2)),
    "empty_strided with gaps": lambda t: t.empty_strided((2, 3), (5, 1)),
    "new_empty_strided": lambda t: matrix(t).new_empty_strided((2, 3), (1, 2)),
    "new_full": lambda t: matrix(t).new_full((2, 2), 3.0),
    "resize_ to more": lambda t: t.zeros(3).resize_(2, 2),
    "resize_ to less": lambda t: t.zeros(3).resize_(2),
}


def shown(torch: Any, form: Form) -> tuple[Any, ...]:
    """Strides and dtype of a result, and depth, name and number of inputs of every op."""
    form(torch)
    with torch.profiler.profile(record_shapes=True) as profiler:
        made = form(torch)

    def depth(event: Any) -> int:
        return 0 if event.cpu_parent is None else 1 + depth(event.cpu_parent)

    rows = [(depth(e), e.name, len(e.input_shapes)) for e in profiler.events()]
    return made.stride(), str(made.dtype).rpartition(".")[2], rows


@pytest.mark.parametrize("name", FORMS)
def test_layout_and_ops(name: str) -> None:
    assert shown(ours, FORMS[name]) == shown(theirs, FORMS[name])


def test_a_smaller_size_keeps_the_memory() -> None:
    def run(torch: Any) -> tuple[Any, ...]:
        whole = torch.arange(6.0)
        part = whole[2:]
        part.resize_(2)
        part.fill_(9)
        return whole.tolist(), part.storage_offset()

    assert run(ours) == run(theirs)


def test_formats_need_their_rank() -> None:
    for torch in (ours, theirs):
        with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last format"):
            torch.zeros(2, 3).to(memory_format=torch.channels_last)


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "rows set": lambda t, w: [b := t.zeros(4, 3), b.__setitem__(1, w * 2), b.__setitem__(2, w * 3)][0],
    "rows multiplied": lambda t, w: [b := t.ones(4, 3) * w, b[1:3].mul_(w)][0],
    "rows copied from another dtype": lambda t, w: [b := t.zeros(4, 3, dtype=t.float64) * w, b[1:3].copy_(w)][0],
}
# PyTorch's sum fills its result first.
HELPERS = {"aten::fill_", "aten::as_strided"}


@pytest.mark.parametrize("name", WRITES)
def test_gradients_through_written_parts(name: str) -> None:
    """The node of the write is an event inside the base's."""

    def run(torch: Any) -> tuple[Any, ...]:
        weight = torch.ones(3, requires_grad=True)
        total = WRITES[name](torch, weight).sum()
        with torch.profiler.profile(record_shapes=True) as profiler:
            total.backward()
        rows = sorted((e.name, str(e.input_shapes), e.cpu_parent.name) for e in profiler.events()
                      if e.cpu_parent is not None and "CopySlices" in e.cpu_parent.name + e.name)
        return weight.grad.tolist(), [row for row in rows if row[0] not in HELPERS]

    assert run(ours) == run(theirs)


def test_only_the_way_to_the_wanted_gradients_is_walked() -> None:
    def run(torch: Any) -> list[str]:
        x, w = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
        y = (x * w).exp() + w.sin()
        with torch.profiler.profile() as profiler:
            torch.autograd.grad(y.sum(), [x])
        return [e.name for e in profiler.events() if e.name.startswith("autograd::engine")]

    assert run(ours) == run(theirs)


LENT = {
    "numpy": lambda torch, x: (x, x.numpy()), "force": lambda torch, x: (x, x.numpy(force=True)),
    "__array__": lambda torch, x: (x, x.__array__()), "asarray": lambda torch, x: (x, np.asarray(x)),
    "from_numpy": lambda torch, x: (lambda a: (torch.from_numpy(a), a))(np.arange(6.0)),
    "as_tensor": lambda torch, x: (lambda a: (torch.as_tensor(a), a))(np.arange(6.0)),
    "torch.asarray": lambda torch, x: (lambda a: (torch.asarray(a), a))(np.arange(6.0)),
}


@pytest.mark.parametrize("name", LENT)
def test_an_array_of_the_same_memory_is_not_the_tensor(name):
    def program(torch):
        tensor, array = LENT[name](torch, torch.arange(6, dtype=torch.float64))
        array.shape = (2, 3)
        array.dtype = np.int64
        array.flags.writeable = False
        tensor.add_(1)
        return tensor.shape == (6,), tensor, array.view(np.float64).tolist()

    same(program)


COPIED = {
    "array": np.array, "array of a dtype": lambda x: np.array(x, np.float64),
    "copy=True": lambda x: np.array(x, copy=True),
    "one element": lambda x: np.array(x[0]), "list": lambda x: np.array([x, x]), "asarray": np.asarray,
    "ascontiguousarray": np.ascontiguousarray, "another dtype": lambda x: np.asarray(x, np.float32),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", COPIED)
def test_which_functions_of_numpy_copy(name):
    def program(torch):
        tensor = torch.zeros(2, dtype=torch.float64)
        array = COPIED[name](tensor)
        tensor.add_(1)
        return array.tolist(), str(array.dtype)

    same(program)
