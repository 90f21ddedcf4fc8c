"""Runs the graph backwards: nodes in order of their sequence number, latest first, once all their gradients have come.

The walk is a loop over a heap, so the Python stack does not limit its depth. If it was built, `_walk` runs the nodes
that have only this package's code, while no profiler or tap is on; it does what `evaluate` and `send` do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np

from .._backends.base import to_host
from .._backends.sparse import SparseArray
from .._dispatch.namespace import aten
from .._dispatch.native import WALK
from .._dispatch.observer import HOOK, event_id, hush, open_stretch, span
from .._dispatch.state import THREAD, ThreadState
from .._dtype import FROM_NUMPY
from .._tensor import Extras, Tensor
from .anomaly import AnomalyState, warn_of
from .graph import LAST, RELEASED, AccumulateGrad, Edge, Node, NodeHooks, type_name
from .ownership import SEEN, Marks, all_seen, give_views, in_common, leave, memory, passed_on, shown, taken_back
from .watched import apply_watched, event_ids

# As in PyTorch's engine, which has a node in front of several roots.
SEVERAL_ROOTS = (event_id("autograd::engine::evaluate_function: torch::autograd::GraphRoot", "backward"),
                 event_id("torch::autograd::GraphRoot", "backward_function"))


DEEPEST = 30  # so many passes inside each other share a stack


def run_backward(
    roots: Sequence[Edge],
    grads: Sequence[Tensor],
    keep_graph: bool,
    create_graph: bool,
    targets: Sequence[Edge] | None = None,
    accumulate: bool = True,
) -> list[Tensor | None]:
    """Propagate `grads` from `roots`; with `targets`, only on paths that lead to these.

    With `accumulate` the reached leaves get their `.grad`; otherwise the targets' gradients are returned.
    """
    captured: list[Tensor | None] = []
    wanted: dict[int, list[tuple[int, int]]] = {}
    if targets is not None:
        captured = [None] * len(targets)
        for position, (node, number) in enumerate(targets):
            if not accumulate:  # otherwise a target's node runs with its hooks, and the walk ends behind it
                wanted.setdefault(id(node), []).append((number, position))
    state = THREAD.state
    before, outer, outer_walk = state.grad, state.endings, state.walk
    walk = Walk(keep_graph, wanted, captured)
    if outer_walk is not None:
        walk.depth = outer_walk.depth + 1
    # A signal handler can raise at any call. So no call is between a change and `try`, or before the code that restores
    # it.
    state.grad, state.endings, state.walk = create_graph, None, walk
    try:
        walk.hush()
        walk.explore(roots, None if targets is None else {id(node) for node, _ in targets})
        if walk.depth % DEEPEST == DEEPEST - 1:
            on_a_new_stack(lambda: walk.run(roots, grads))
        else:
            walk.run(roots, grads)
        while state.endings:
            endings, state.endings = state.endings, None
            for ending in endings:
                ending()
    except Exception:
        if AnomalyState.enabled and walk.current is not None:
            warn_of(walk.current)
        raise
    finally:
        state.grad, state.endings, state.walk = before, outer, outer_walk
        walk.resume()
    return captured


def on_a_new_stack(function: Callable[[], Any]) -> Any:
    """Call a function in a thread that goes on with the state of this one, while this one waits.

    Python limits how deep calls may nest in one thread.
    """
    state = THREAD.state
    made: list[tuple[Any, BaseException | None]] = []

    def run() -> None:
        THREAD.state = state
        try:
            made.append((function(), None))
        except BaseException as error:  # raised again in the thread that waits
            made.append((None, error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    result, error = made[0]
    if error is not None:
        raise error
    return result


def at_end_of_backward(ending: Callable[[], None]) -> None:
    """Call a function when the backward that is running in this thread has ended, unless it fails."""
    state = THREAD.state
    if state.endings is None:
        state.endings = []
    state.endings.append(ending)


class Walk:
    """One pass over the graph."""

    __slots__ = ("__weakref__", "arrived", "begun", "buffers", "captured", "current", "depth", "exposed", "keep_graph",
                 "marks", "needed", "quiet", "ready", "selective", "task", "waiting", "wanted")
    tasks = 0  # number of passes begun

    def __init__(self, keep_graph: bool, wanted: dict[int, list[tuple[int, int]]],
                 captured: list[Tensor | None]) -> None:
        self.task = Walk.tasks
        Walk.tasks += 1
        self.depth = 0  # in how many other passes of this thread it runs
        self.current: Node | None = None  # the last node that ran visibly
        self.quiet: Any = None  # while only this package runs, calls are not recorded
        self.keep_graph = bool(keep_graph)
        self.wanted = wanted
        self.captured = captured
        self.selective = bool(wanted)  # whether only some nodes run
        self.waiting: dict[int, int] = {}
        self.begun: dict[int, Node] = {}  # where it starts
        self.needed: set[int] | None = None
        self.buffers: dict[int, list[Tensor | None]] = {}
        self.marks: dict[int, Marks] = {}  # of gradients in the buffers that are not the engine's alone
        self.exposed = THREAD.state.exposed
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
        """Find what the nodes wait for and, if only some ends matter, which nodes lead there."""
        self.begun = {id(node): node for node, _ in roots}
        self.waiting = count_waiting(self.begun)
        if ends is not None:
            self.needed = reaches(roots, ends)
            self.selective = True

    def visits(self, node: Node) -> bool:
        """Whether this pass comes by a node."""
        return (id(node) in self.waiting or id(node) in self.begun) and (self.needed is None or id(node) in self.needed)

    def will_reach(self, node: Node) -> bool:
        """Whether a node is part of this pass, run or not."""
        if self.wanted and isinstance(node, AccumulateGrad):
            raise RuntimeError("A leaf node was passed to _will_engine_execute_node but we are currently running "
                               "autograd.grad(). This is currently not supported.")
        return self.visits(node)

    def planned(self) -> list[Node]:
        """The nodes of this pass in the order in which they run, unless a hook changes that."""
        waiting = count_waiting(self.begun)
        ready: list[tuple[int, int, Node]] = []
        arrived = 0
        for node in self.begun.values():
            if not waiting.get(id(node)):
                heappush(ready, (-node.seq, arrived, node))
                arrived += 1
        order = []
        while ready:
            node = heappop(ready)[2]
            if self.needed is not None and id(node) not in self.needed:
                continue
            order.append(node)
            for target in node.edges:
                if target is not None:
                    waiting[id(target[0])] -= 1
                    if not waiting[id(target[0])]:
                        heappush(ready, (-target[0].seq, arrived, target[0]))
                        arrived += 1
        return order

    def push(self, node: Node) -> None:
        """Put a node with all its gradients into the heap."""
        heappush(self.ready, (-node.seq, self.arrived, node))
        self.arrived += 1

    def place(self, roots: Sequence[Edge], grads: Sequence[Tensor]) -> None:
        """Give the roots their gradients."""
        for (node, number), grad in zip(roots, grads):
            buffer = self.buffers.setdefault(id(node), [None] * len(node.meta))
            self.deposit(buffer, id(node), number, grad, SEEN)

    def run(self, roots: Sequence[Edge], grads: Sequence[Tensor]) -> None:
        """Walk until nothing is ready."""
        if len(roots) > 1 and HOOK["OBSERVING"]:
            with span(SEVERAL_ROOTS[0]), span(SEVERAL_ROOTS[1]):
                self.place(roots, grads)
        else:
            self.place(roots, grads)
        for key, node in self.begun.items():
            if not self.waiting.get(key):
                self.push(node)
        ready, hook, evaluate = self.ready, HOOK, self.evaluate
        while ready:
            if not hook["OBSERVING"]:
                if drain is not None:
                    drain(self, THREAD.state)
                else:
                    evaluate(heappop(ready)[2], -1)
                continue
            node = heappop(ready)[2]
            if hook["CALLS"]:
                if node.hooks is not None or node.may_run_user_code:
                    self.resume()
                elif self.quiet is None:
                    self.hush()
            self.current = node
            ids = node.event_ids
            if ids is None or ids[2] is not type(node):
                ids = event_ids(node)
            listener = hook["TAP"]
            noted = None if listener is None else listener.enter(ids[0], -1, ())
            stretch = open_stretch(None, node.seq if node.seq != LAST else -1)
            try:
                evaluate(node, ids[1])
            finally:
                stretch.end(ids[0])
                if noted is not None:
                    noted.leave()

    def evaluate(self, node: Node, event: int) -> None:
        """Run one node, from its incoming gradients to those it sends on; `event` is its id for a profiler, or -1.

        Nothing here may keep a gradient longer than needed: memory is freed where PyTorch frees it.
        """
        received: Any = self.buffers.pop(id(node))
        marks = self.marks.pop(id(node), None) if self.marks else None
        hooks, edges = node.hooks, node.edges
        seen = False
        if hooks is not None and hooks.see_gradients():
            self.current = node
            shared = shown(marks)
            before = received if self.selective and id(node) in self.wanted else None
            received = run_tensor_hooks(hooks, received)
            ends = self.selective and self.ends_at(node, received)
            if before is not None and not ends:
                self.ends_at(node, before)  # on the way to others, gradients are captured unchanged
            before = None
            if not ends:
                received = run_prehooks(hooks, received)
            received, marks = taken_back(received, (0,) if isinstance(node, AccumulateGrad) else ())
            marks.update(dict.fromkeys(shared, SEEN))
            seen = bool(hooks.post)
        else:
            ends = self.selective and self.ends_at(node, received)
        if self.selective:
            if id(node) in self.wanted:
                marks = all_seen(received, marks)  # captured gradients belong to the caller
            elif ends:
                leave(() if marks is None else marks.values())
            if ends:
                return
        results: Any
        if not edges and isinstance(node, AccumulateGrad):
            mine = self.only_here(received[0], marks, 0)
            if marks is not None:
                leave(marks.values())
            results = node.apply(received[0], mine) if event < 0 else apply_watched(node, event, received, mine)
        elif received[0] is None and node.needs_gradients and all(g is None for g in received):
            results = (None,) * len(edges)
        else:
            if node.may_run_user_code:
                self.current = node
                marks, seen = all_seen(received, marks), True
            results = node.apply(*received) if event < 0 else apply_watched(node, event, received)
        if hooks is not None and hooks.post:
            results = run_posthooks(hooks, [fit(node, i, grad) if self.asks_for(edges, i) else None
                                            for i, grad in enumerate(results)], received)
        if not self.keep_graph:
            node.release()
        if edges:
            if seen:
                received, results = None, list(results)
                results, marks = taken_back(results, to_leaves(edges))
            elif marks or len(edges) > 1:
                marks = passed_on(received, marks, results) if marks else in_common(results)
                if marks:
                    give_views(to_leaves(edges), received, results, marks)
            received = None
            self.send(node, edges, results, marks)

    def only_here(self, grad: Any, marks: Marks | None, number: int) -> bool:
        """Whether only the engine sees a gradient, in the one place that asks."""
        mark = None if marks is None else marks.get(number)
        return (mark is None or mark[0] == 1) and type(grad) is Tensor and self.exposed == THREAD.state.exposed

    def asks_for(self, edges: Sequence[Edge | None], number: int) -> bool:
        """Whether a result of a node goes on in this pass."""
        target = edges[number] if number < len(edges) else None
        return self.needed is None or target is None or id(target[0]) in self.needed

    def ends_at(self, node: Node, received: list[Tensor | None]) -> bool:
        """Capture what arrived at a target; returns whether no node behind this one is needed."""
        captures = self.wanted.get(id(node))
        if captures is not None:
            for number, position in captures:
                self.captured[position] = received[number]
        needed = self.needed
        return needed is not None and (
            id(node) not in needed
            or (captures is not None and not any(e is not None and id(e[0]) in needed for e in node.edges))
        )

    def send(self, node: Node, edges: tuple[Edge | None, ...], results: Sequence[Any], marks: Marks | None) -> None:
        """Pass results to the next nodes; nodes that have everything become ready."""
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
            grad = results[i]
            if grad is not None:
                shape, dtype = following.meta[number]
                if type(grad) is not Tensor or grad._a.dtype is not dtype or grad._a.shape != shape:
                    grad = fit(node, i, grad)
                mark = None if marks is None else marks.get(i)
                if mark is None and buffer[number] is None:
                    buffer[number] = grad
                else:
                    if mark is not None and grad is not results[i] and memory(grad) is not memory(results[i]):
                        mark[0] -= 1  # the result made from it is new
                        mark = None
                    self.deposit(buffer, key, number, grad, mark)
            left = waiting[key] - 1
            if left:
                waiting[key] = left
            else:
                # Even a node without a gradient has to run, so that nodes that depend on it do not wait.
                self.push(following)

    def deposit(self, buffer: list[Tensor | None], key: int, number: int, grad: Tensor, mark: list[int] | None) -> None:
        """Add a gradient to the sum for the node of this key, in place if nothing else sees the sum."""
        known: Any = buffer[number]
        if known is None:
            buffer[number] = grad
            if mark is not None:
                self.marks.setdefault(key, {})[number] = mark
            return
        marks = self.marks.get(key)
        sparse = type(known._a) is SparseArray
        if (not THREAD.state.grad and self.only_here(known, marks, number) and known._of is None and not sparse
                and type(grad) is Tensor and 0 not in known._a.strides):
            aten.add_(known, grad)
        else:
            buffer[number] = None
            first, second = (grad, known) if sparse and type(grad._a) is not SparseArray else (known, grad)
            buffer[number] = aten.add(first, second)
            if marks is not None and number in marks:
                leave((marks.pop(number),))
        if mark is not None:
            leave((mark,))


def to_leaves(edges: Sequence[Edge | None]) -> list[int]:
    """Which edges lead to leaves."""
    return [number for number, target in enumerate(edges) if target is not None and type(target[0]) is AccumulateGrad]


def count_dependencies(begun: dict[int, Node]) -> dict[int, int]:
    """The number of gradients that each node waits for, in a walk from some nodes."""
    waiting: dict[int, int] = {}
    stack = list(begun.values())
    while stack:
        for target in stack.pop().edges:
            if target is not None:
                following = target[0]
                key = id(following)
                known = waiting.get(key)
                if known is not None:
                    waiting[key] = known + 1
                    continue
                waiting[key] = 1
                if following.edges and key not in begun:
                    stack.append(following)
    return waiting


def reaches(roots: Sequence[Edge], targets: set[int]) -> set[int]:
    """The nodes from which a target can be reached, including the targets."""
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


def fit(node: Node, position: int, grad: Any) -> Any:
    """Undo broadcasting and promotion: a gradient gets its input's shape and dtype, or an error names the node."""
    target = node.edges[position]
    if grad is None or target is None:
        return grad
    if not isinstance(grad, Tensor):
        raise RuntimeError(f"expected Variable or None (got {type(grad).__name__})")
    shape, dtype = target[0].meta[target[1]]
    array = grad._a
    if array.shape == shape and (dtype is None or array.dtype == dtype):
        return grad
    if array.shape != shape:
        grad = sum_to(node, position, grad, shape)
    if dtype is not None and grad._a.dtype != dtype:
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
    if lead > 0 and shape and have[lead:] == shape:  # a bias that was added to rows
        return aten.view(aten.sum__dim_IntList(grad, [*range(lead)], True), shape)
    if lead < 0 or any(want not in (1, got) for want, got in zip(shape, have[lead:])):
        raise RuntimeError(
            f"Function {node.name()} returned an invalid gradient at index {position} - got {list(have)} but "
            f"expected shape compatible with {list(shape)}"
        )
    if not shape and lead:
        return aten.sum__default(grad)
    dims = [*range(lead), *(lead + i for i, want in enumerate(shape) if want == 1 and have[lead + i] != 1)]
    if dims:
        grad = aten.sum__dim_IntList(grad, dims, True)
    return aten.view(grad, shape) if lead else grad


def run_tensor_hooks(hooks: NodeHooks, received: list[Tensor | None]) -> list[Tensor | None]:
    """Hooks of the node's output tensors, then `.grad` of those that retain it."""
    received = list(received)
    for number, functions in hooks.tensor_pre.items():
        for hook in tuple(functions.values()):
            replaced = hook(received[number])
            if replaced is not None:
                if received[number] is None:
                    raise RuntimeError("can't replace a None gradient with a non-None value")
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
    return received


def run_prehooks(hooks: NodeHooks, received: list[Tensor | None]) -> list[Tensor | None]:
    """The node's own hooks on its incoming gradients; a node that only ends a path gets none."""
    for hook in tuple(hooks.pre.values()):
        replaced = hook(tuple(received))
        if replaced is not None:
            received = checked_replacements(replaced, received, hook)
    return received


def checked_replacements(values: Any, old: Sequence[Any], hook: Any) -> list[Tensor | None]:
    """The gradients that a node's hook returned: as many as before, each like the old one, or None."""
    if not isinstance(values, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(values).__name__}'")
    if len(values) != len(old):
        raise RuntimeError(f"hook '{getattr(hook, '__name__', '<unknown>')}' has returned an incorrect number of "
                           f"values (got {len(values)}, but expected {len(old)})")
    if any(before is None and value is not None for value, before in zip(values, old)):
        raise RuntimeError("can't replace a None gradient with a non-None value")
    return [None if value is None else checked_replacement(value, before, hook) for value, before in zip(values, old)]


def checked_replacement(value: Any, old: Any, hook: Any) -> Tensor:
    """Check a hook's replacement of a gradient: it must have the same shape and dtype."""
    if not isinstance(value, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(value).__name__}'")
    if value._a.dtype != old._a.dtype:
        raise RuntimeError(f"hook '{getattr(hook, '__name__', '<unknown>')}' has changed the type of value (was "
                           f"torch.{type_name(old)} got torch.{type_name(value)})")
    if value._a.shape != old._a.shape:
        raise RuntimeError(f"hook '{getattr(hook, '__name__', '<unknown>')}' has changed the size of value")
    return value


def run_posthooks(hooks: NodeHooks, results: Sequence[Any], received: list[Tensor | None]) -> Sequence[Any]:
    """The node's own hooks on `(grad_inputs, grad_outputs)`."""
    results = tuple(results)
    for hook in tuple(hooks.post.values()):
        replaced = hook(results, tuple(received))
        if replaced is not None:
            results = tuple(checked_replacements(replaced, results, hook))
    return results


drain: Callable[[Walk, ThreadState], None] | None = None
count_waiting = count_dependencies
if WALK is not None:
    WALK.prepare_walk({
        "AccumulateGrad": AccumulateGrad, "AnomalyState": AnomalyState, "Extras": Extras, "HOOK": HOOK, "Node": Node,
        "RELEASED": RELEASED, "ThreadState": ThreadState, "Walk": Walk,
        "detach": lambda grad: aten.detach(grad), "first_of_all": -LAST, "fit": fit, "give_views": give_views,
        "heappop": heappop, "heappush": heappush, "in_common": in_common, "release": Node.release})
    drain, count_waiting = WALK.drain, WALK.count_dependencies
