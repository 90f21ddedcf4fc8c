"""Ops of a program's own, where PyTorch is not needed to tell what is right."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

import mindtorch_v2 as torch


@pytest.fixture
def library() -> Iterator[Any]:
    """A library whose ops go when the test ends."""
    with torch.library._scoped_library("tests", "FRAGMENT") as made:
        yield made


def test_a_recording_of_calls_shows_what_a_kernel_calls(library: Any) -> None:
    def own_kernel(x: Any) -> Any:
        return x.sin()

    library.define("stacked(Tensor x) -> Tensor")
    library.impl("stacked", own_kernel, "CPU")
    x = torch.ones(2)
    torch.ops.tests.stacked(x)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True) as profiler:
        torch.ops.tests.stacked(x)
    sine = next(event for event in profiler.events() if event.name == "aten::sin")
    assert any("own_kernel" in frame for frame in sine.stack)


def test_arguments_may_have_any_name(library: Any) -> None:
    library.define("named(Tensor begin, int clock, int explain, *, int THREAD=3) -> Tensor")
    library.impl("named", lambda begin, clock, explain, THREAD=3: begin * clock + explain + THREAD, "CPU")
    with torch.profiler.profile(record_shapes=True) as profiler:
        made = torch.ops.tests.named(torch.ones(2), clock=2, explain=1)
    assert made.tolist() == [6.0, 6.0]
    shown = next(event for event in profiler.events() if event.name == "tests::named")
    assert shown.input_shapes == [[2], [], [], []]


def test_a_graph_does_not_keep_arguments_that_were_not_saved(library: Any) -> None:
    library.define("passed(Tensor[] x, Tensor y) -> Tensor")
    library.impl("passed", lambda x, y: x[0] + y, "CPU")
    torch.library.register_autograd("tests::passed", lambda ctx, grad: ([grad], grad))
    x = torch.ones(2, requires_grad=True) * 1
    kept = weakref.ref(x)
    result = torch.ops.tests.passed([x], torch.ones(2))
    del x
    gc.collect()
    assert kept() is None
    result.sum().backward()


def test_what_cannot_be_registered_says_so(library: Any) -> None:
    library.define("op(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match="with_keyset"):
        library.impl("op", lambda keys, x: x, "CPU", with_keyset=True)
    with pytest.raises(NotImplementedError, match="Functionalize"):
        library.impl("op", lambda x: x, "Functionalize")
    aten = torch.library.Library("aten", "IMPL")
    for name, key, reason in (("linear", "CPU", "made of other ops"), ("cosh", "Meta", "only the kernel for key 'CPU'"),
                              ("nothing", "CPU", "no op of this name")):
        with pytest.raises(NotImplementedError, match=reason):
            aten.impl(name, lambda *args: args[0], key)
    with pytest.raises(NotImplementedError, match="op table"):
        torch.library.Library("aten", "FRAGMENT")
    with pytest.raises(NotImplementedError, match=r"torch\.Tag\.out"):
        library.define("other(Tensor x) -> Tensor", tags=torch.Tag.out)


def test_execution_traces_name_the_op_and_its_signature(library: Any, tmp_path: Any) -> None:
    library.define("traced(Tensor x, int k=2) -> Tensor")
    library.impl("traced", lambda x, k=2: x * k, "CPU")
    path = tmp_path / "trace.json"
    observer = torch.profiler.ExecutionTraceObserver()
    observer.register_callback(str(path))
    observer.start()
    torch.ops.tests.traced(torch.ones(2))
    observer.stop()
    observer.unregister_callback()
    text = path.read_text()
    assert '"name": "tests::traced"' in text
    assert "tests::traced(Tensor x, int k=2) -> Tensor" in text
