"""Runs the graph backwards: nodes in order of their sequence number, latest first, as soon as all their gradients came.

The walk is a loop over a heap, so its depth is not limited by the Python stack.
"""

from __future__ import annotations

import heapq
import weakref
from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import Any

import numpy as np

from .._backends.base import to_host
from .._dispatch.namespace import aten
from .._dispatch.observer import HOOK, event_id, hush, open_stretch, span
from .._dispatch.state import THREAD
from .._dtype import FROM_NUMPY
from .._tensor import Tensor, wrap
from .anomaly import AnomalyState
from .graph import LAST, UNSHARED, AccumulateGrad, Edge, Node, NodeHooks
from .watched import apply_watched, event_ids

# As PyTorch's engine, which has a node in front of several roots.
SEVERAL_ROOTS = (event_id("autograd::engine::evaluate_function: torch::autograd::GraphRoot", "backward"),
                 event_id("torch::autograd::GraphRoot", "backward_function"))


def run_backward(
    roots: Sequence[Edge],
    grads: Sequence[Tensor],
    keep_graph: bool,
    create_graph: bool,
    targets: Sequence[Edge] | None = None,
    accumulate: bool = True,
) -> list[Tensor | None]:
    """Propagate `grads` from `roots`. With `targets`, return the gradients that arrive there.

    With `accumulate` every reachable leaf gets its `.grad`; otherwise only paths to the targets are walked.
    """
    captured: list[Tensor | None] = [None] * len(targets or ())
    wanted: dict[int, list[tuple[int, int]]] = {}
    for position, (node, number) in enumerate(targets or ()):
        wanted.setdefault(id(node), []).append((number, position))
    state = THREAD.state
    before = state.grad
    state.grad = create_graph
    outer, state.endings = state.endings, None
    walk = Walk(keep_graph, wanted, captured)
    try:
        walk.hush()
        walk.explore(roots, None if accumulate else {id(node) for node, _ in targets or ()})
        walk.run(roots, grads)
        while state.endings:
            endings, state.endings = state.endings, None
            for ending in endings:
                ending()
    finally:
        walk.resume()
        state.endings = outer
        state.grad = before
    return captured


def at_end_of_backward(ending: Callable[[], None]) -> None:
    """Call a function when the backward that runs now in this thread has ended, unless it fails."""
    state = THREAD.state
    if state.endings is None:
        state.endings = []
    state.endings.append(ending)


class Walk:
    """One pass over the graph."""

    __slots__ = ("arrived", "buffers", "captured", "keep_graph", "needed", "quiet", "ready", "selective", "waiting",
                 "wanted")

    def __init__(self, keep_graph: bool, wanted: dict[int, list[tuple[int, int]]],
                 captured: list[Tensor | None]) -> None:
        self.quiet: Any = None  # where only this package runs, there are no calls to note
        self.keep_graph = keep_graph
        self.wanted = wanted
        self.captured = captured
        self.selective = bool(wanted)  # whether it matters which node is run
        self.waiting: dict[int, int] = {}
        self.needed: set[int] | None = None
        self.buffers: dict[int, list[Tensor | None]] = {}
        self.ready: list[tuple[int, int, Node]] = []
        self.arrived = 0  # breaks ties in the heap: among equals, first come first served

    def hush(self) -> None:
        """Only this package runs from now on."""
        if self.quiet is None and HOOK["CALLS"]:
            self.quiet = hush()

    def resume(self) -> None:
        """The user's code may run from now on."""
        quiet, self.quiet = self.quiet, None
        if quiet is not None:
            quiet.resume()

    def explore(self, roots: Sequence[Edge], ends: set[int] | None) -> None:
        """Find out what the nodes have to wait for, and if only some ends matter, which nodes lead there."""
        self.waiting = count_dependencies([node for node, _ in roots])
        if ends is not None:
            self.needed = reaches(roots, ends)
            self.selective = True

    def push(self, node: Node) -> None:
        """Put a node that has all its gradients into the heap."""
        heapq.heappush(self.ready, (-node.seq, self.arrived, node))
        self.arrived += 1

    def place(self, roots: Sequence[Edge], grads: Sequence[Tensor]) -> None:
        """Give the roots their gradients."""
        for (node, number), grad in zip(roots, grads):
            buffer = self.buffers.setdefault(id(node), [None] * len(node.meta))
            buffer[number] = grad if buffer[number] is None else aten.add(buffer[number], grad)

    def run(self, roots: Sequence[Edge], grads: Sequence[Tensor]) -> None:
        """Walk until nothing is ready."""
        if len(roots) > 1 and HOOK["OBSERVING"]:
            with span(SEVERAL_ROOTS[0]), span(SEVERAL_ROOTS[1]):
                self.place(roots, grads)
        else:
            self.place(roots, grads)
        for node in {id(node): node for node, _ in roots}.values():
            if not self.waiting.get(id(node)):
                self.push(node)
        ready, hook = self.ready, HOOK
        while ready:
            node = heapq.heappop(ready)[2]
            if not hook["OBSERVING"]:
                self.evaluate(node, -1)
                continue
            if hook["CALLS"]:
                if node.hooks is not None or node.may_run_user_code:
                    self.resume()
                elif self.quiet is None:
                    self.hush()
            ids = node.event_ids
            if ids is None or ids[2] is not type(node):
                ids = event_ids(node)
            listener = hook["TAP"]
            noted = None if listener is None else listener.enter(ids[0], -1, ())
            stretch = open_stretch(None, node.seq if node.seq != LAST else -1)
            try:
                self.evaluate(node, ids[1])
            finally:
                stretch.end(ids[0])
                if noted is not None:
                    noted.leave()

    def evaluate(self, node: Node, event: int) -> None:
        """Run one node, from what came for it to what it sends on; `event` is its id if a profiler listens, or -1.

        Nothing here may hold on to a gradient longer than needed: AccumulateGrad takes over, and `deposit` adds into,
        what only the engine still sees.
        """
        received: Any = self.buffers.pop(id(node))
        hooks = node.hooks
        if hooks is not None:
            received = run_prehooks(node, hooks, received)
        edges = node.edges
        if self.selective and self.ends_at(node, received):
            return
        results: Any
        if received[0] is None and all(g is None for g in received):
            results = (None,) * len(edges)
        elif event < 0:
            results = node.apply(*received)
        else:
            results = apply_watched(node, event, received)
        if hooks is not None and hooks.post:
            results = run_posthooks(hooks, [fit(node, i, grad) for i, grad in enumerate(results)], received)
        if not self.keep_graph:
            node.release()
        received = None
        if edges:
            self.send(node, edges, results)

    def ends_at(self, node: Node, received: list[Tensor | None]) -> bool:
        """Capture what arrived at a target; whether nothing behind this node is wanted."""
        captures = self.wanted.get(id(node))
        if captures is not None:
            for number, position in captures:
                self.captured[position] = received[number]
        needed = self.needed
        return needed is not None and (
            id(node) not in needed
            or (captures is not None and not any(e is not None and id(e[0]) in needed for e in node.edges))
        )

    def send(self, node: Node, edges: tuple[Edge | None, ...], results: Sequence[Any]) -> None:
        """Hand results to the next nodes; those that have everything become ready."""
        if len(results) != len(edges):
            raise RuntimeError(
                f"function {node.name()} returned an incorrect number of gradients (expected {len(edges)}, "
                f"got {len(results)})"
            )
        if AnomalyState.enabled and AnomalyState.check_nan:
            refuse_nan(node, results)
        buffers, waiting, needed = self.buffers, self.waiting, self.needed
        for i, target in enumerate(edges):
            if target is None:
                continue
            following, number = target
            key = id(following)
            if needed is not None and key not in needed:
                continue
            buffer = buffers.get(key)
            if buffer is None:
                buffers[key] = buffer = [None] * len(following.meta)
            if results[i] is not None:
                grad = fit(node, i, results[i])
                if buffer[number] is None:
                    buffer[number] = grad
                else:
                    deposit(buffer, number, grad)
            left = waiting[key] = waiting[key] - 1
            if not left:
                # Even a node that got no gradient has to run, so that what depends on it is not left waiting.
                self.push(following)


def count_dependencies(roots: list[Node]) -> dict[int, int]:
    """How many gradients each node has to wait for."""
    waiting: dict[int, int] = {}
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        for target in node.edges:
            if target is not None:
                following = target[0]
                waiting[id(following)] = waiting.get(id(following), 0) + 1
                if id(following) not in seen:
                    stack.append(following)
    return waiting


def reaches(roots: Sequence[Edge], targets: set[int]) -> set[int]:
    """The nodes from which a target can be reached; the targets themselves included."""
    order: list[Node] = []
    seen: set[int] = set()
    stack: list[tuple[Node, bool]] = [(node, False) for node, _ in roots]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
            continue
        if id(node) in seen:
            continue
        seen.add(id(node))
        stack.append((node, True))
        stack.extend((e[0], False) for e in node.edges if e is not None and id(e[0]) not in seen)
    found = set(targets)
    for node in order:
        if any(e is not None and id(e[0]) in found for e in node.edges):
            found.add(id(node))
    return found


def deposit(buffer: list[Tensor | None], number: int, grad: Tensor) -> None:
    """Add a gradient to what has come so far, in place if nobody else sees that."""
    known = buffer[number]
    buffer[number] = None
    if THREAD.state.grad:
        buffer[number] = aten.add(known, grad)
    elif owned(known) and getrefcount(known) <= LOCAL_REFERENCES:
        buffer[number] = aten.add_(known, grad)
    else:
        buffer[number] = aten.add(known, grad)


def owned(tensor: Any) -> bool:
    """Whether a tensor's memory belongs to it alone and holds each element once."""
    return (tensor._of is None and 0 not in tensor._a.strides
            and (tensor._st is None or getrefcount(tensor._st) <= STORAGE_REFERENCES))


def _local_references() -> int:
    one = object()
    return getrefcount(one)


def _slot_references() -> int:
    holder = [object()]
    return getrefcount(holder[0])


# What getrefcount says of a thing that only a local variable, or only a slot, refers to.
LOCAL_REFERENCES = _local_references()
STORAGE_REFERENCES = _slot_references()


def fit(node: Node, position: int, grad: Any) -> Any:
    """Undo broadcasting and promotion: a gradient gets its input's shape and dtype, or an error names the node."""
    target = node.edges[position]
    if grad is None or target is None:
        return grad
    if not isinstance(grad, Tensor):
        raise TypeError(f"expected Variable or None (got {type(grad).__name__})")
    shape, dtype = target[0].meta[target[1]]
    array = grad._a
    if array.shape == shape and array.dtype == dtype:
        return grad
    if array.shape != shape:
        grad = sum_to(node, position, grad, shape)
    if grad._a.dtype != dtype:
        if FROM_NUMPY[grad._a.dtype].is_complex and not FROM_NUMPY[dtype].is_complex:
            grad = aten.real(grad)
        if grad._a.dtype != dtype:
            grad = aten.to(grad, FROM_NUMPY[dtype])
    return grad


def refuse_nan(node: Node, results: Sequence[Any]) -> None:
    """Anomaly detection: a NaN in a gradient is an error that names the node."""
    for i, grad in enumerate(results):
        if isinstance(grad, Tensor) and not grad.is_meta and np.isnan(to_host(grad._a)).any():
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")


def sum_to(node: Node, position: int, grad: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Sum a gradient over the dimensions along which its input was broadcast."""
    have = grad._a.shape
    lead = len(have) - len(shape)
    if lead < 0 or any(want not in (1, got) for want, got in zip(shape, have[lead:])):
        raise RuntimeError(
            f"Function {node.name()} returned an invalid gradient at index {position} - got {list(have)} but "
            f"expected shape compatible with {list(shape)}"
        )
    dims = [*range(lead), *(lead + i for i, want in enumerate(shape) if want == 1 and have[lead + i] != 1)]
    if dims:
        grad = aten.sum__dim_IntList(grad, dims, True)
    return aten.view(grad, shape) if lead else grad


def run_prehooks(node: Node, hooks: NodeHooks, received: list[Tensor | None]) -> list[Tensor | None]:
    """Hooks of the node's output tensors, then `.grad` of those that retain it, then the node's own prehooks."""
    received = list(received)
    for number, functions in hooks.tensor_pre.items():
        for hook in tuple(functions.values()):
            if received[number] is None:
                break
            replaced = hook(received[number])
            if replaced is not None:
                received[number] = checked_replacement(replaced, received[number], hook)
    for number, reference in hooks.capture.items():
        tensor = reference()
        grad = received[number]
        if tensor is not None and grad is not None:
            extras = tensor.extras()
            if extras.grad is None:
                extras.grad = aten.clone(grad) if grad._st is not None else grad
            else:
                extras.grad = aten.add(extras.grad, grad)
    for hook in tuple(hooks.pre.values()):
        replaced = hook(tuple(received))
        if replaced is not None:
            received = list(replaced) if isinstance(replaced, (tuple, list)) else [replaced]
    return received


def checked_replacement(value: Any, old: Any, hook: Any) -> Tensor:
    """A hook may replace a gradient by one of the same shape and dtype only."""
    if not isinstance(value, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(value).__name__}'")
    if value._a.shape != old._a.shape:
        raise RuntimeError(f"hook '{getattr(hook, '__name__', '<unknown>')}' has changed the size of value")
    if value._a.dtype != old._a.dtype:
        raise RuntimeError(f"hook '{getattr(hook, '__name__', '<unknown>')}' has changed the type of value")
    return value


def run_posthooks(hooks: NodeHooks, results: Sequence[Any], received: list[Tensor | None]) -> Sequence[Any]:
    """The node's own hooks on `(grad_inputs, grad_outputs)`."""
    results = tuple(results)
    for hook in tuple(hooks.post.values()):
        replaced = hook(results, tuple(received))
        if replaced is not None:
            results = tuple(replaced) if isinstance(replaced, (tuple, list)) else (replaced,)
    return results


class _RefcountProbe(AccumulateGrad):
    """Counts the references to a gradient that the engine itself holds, the way AccumulateGrad will see them."""

    __slots__ = ()

    def apply(self, *grads: Any) -> tuple[Any, ...]:
        grad = grads[0]
        UNSHARED[0] = getrefcount(grad)
        return ()


def _measure_references() -> None:
    leaf = wrap(np.zeros(1, np.float32))
    probe = object.__new__(_RefcountProbe)
    probe.reference, probe.hooks = weakref.ref(leaf), None
    probe.meta = ((leaf._a.shape, leaf._a.dtype),)
    source = object.__new__(_Source)
    source.edges, source.seq, source.hooks = ((probe, 0),), 0, None
    source.meta = probe.meta
    run_backward([(source, 0)], [wrap(np.zeros(1, np.float32))], False, False)


class _Source(Node):
    __slots__ = ()

    def apply(self, *grads: Any) -> tuple[Any, ...]:
        return (wrap(np.zeros(1, np.float32)),)


_measure_references()
