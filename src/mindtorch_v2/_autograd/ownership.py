"""Who owns the gradients of a backward pass: the engine may change or give away only those that it alone can see.

A gradient that waits for a node belongs to the engine alone unless it has a mark. A mark is a list with one number: in
how many places the engine keeps this gradient's memory. A gradient that the program gave, or that its code has seen,
belongs to the engine again if the tensor dies when the engine drops it; otherwise its mark never comes down to 1. The
engine does not count references, because debuggers, profilers and versions of Python hold them differently.

A leaf also gets a view that the engine alone holds, even if others hold its memory: as in PyTorch, that view becomes
the leaf's `.grad`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from itertools import pairwise
from typing import Any
from weakref import ref

from numpy import ndarray

from .._backends.cpu.view import address
from .._dispatch.state import THREAD
from .._tensor import Tensor, wrap_known

Mark = list[int]
Marks = dict[int, Mark]  # by number, of a node's incoming or outgoing gradients

UNKNOWN = 1 << 60
SEEN: Mark = [UNKNOWN]


def memory(grad: Tensor) -> Tensor:
    """The tensor that owns a gradient's memory."""
    return grad if grad._of is None else grad._of[0]


def all_seen(grads: Sequence[Any], marks: Marks | None) -> Marks:
    """The marks of gradients that the program sees from now on."""
    for mark in () if marks is None else marks.values():
        mark[0] += UNKNOWN
    return dict.fromkeys(range(len(grads)), SEEN)


def shown(marks: Marks | None) -> list[int]:
    """Which of the gradients that the program is about to see are also kept elsewhere: nobody may change these now."""
    found = [] if marks is None else [number for number, mark in marks.items() if mark[0] != 1]
    for number in found:
        marks[number][0] += UNKNOWN  # type: ignore[index]
    return found


def taken_back(grads: list[Any], to_leaves: Container[int] = ()) -> tuple[list[Any], Marks]:
    """Gradients that the program has seen, and the marks of those that it may hold. The given list is emptied.

    Each is dropped, with its memory kept. If it dies, nothing else has it. A tensor that has been viewed, or is a view,
    shares its memory with tensors that may outlive it: of these only views for leaves are taken back.
    """
    if THREAD.state.grad:
        return grads, dict.fromkeys(range(len(grads)), SEEN)
    places: dict[int, list[int]] = {}
    for number, grad in enumerate(grads):
        places.setdefault(id(grad), []).append(number)
    kept, marks = list(grads), dict.fromkeys(range(len(grads)), SEEN)
    let_go = []
    for numbers in places.values():
        grad = grads[numbers[0]]
        if type(grad) is Tensor and grad._edge is grad._ag is None and (
                grad._st is grad._of is None
                or (grad._of is not None and len(numbers) == 1 and numbers[0] in to_leaves)):
            let_go.append((numbers, grad._a, grad._st, grad._of, ref(grad)))
            for number in numbers:
                kept[number] = None
    grad = None
    grads.clear()
    for numbers, array, shared, base, reference in let_go:
        own = reference()
        mark = SEEN
        if own is None:
            own, mark = wrap_known(array), [len(numbers)]
            own._st, own._of = shared, base
        for number in numbers:
            kept[number] = own
            marks[number] = mark
    return kept, marks


def give_views(to_leaves: Iterable[int], received: Sequence[Any], results: Sequence[Any], marks: Marks) -> None:
    """Let leaves have the views that a formula of the runtime has made for them alone: their marks are taken away."""
    for number in to_leaves:
        grad = results[number]
        if number in marks and type(grad) is Tensor and grad._of is not None and not any(
                grad is other for other in received) and sum(grad is other for other in results) == 1:
            marks.pop(number)[0] += UNKNOWN  # the program sees its memory from now on


def in_common(results: Sequence[Any]) -> Marks | None:
    """The marks of gradients that a node made itself: results in the same memory block each other."""
    if len(results) == 2:
        one, other = results
        if one is None or other is None:
            return None
        if one is other:
            mark = [2]
            return {0: mark, 1: mark}
        if isinstance(one, Tensor) and isinstance(other, Tensor) and memory(one) is not memory(other):
            return None
    places: dict[int, list[int]] = {}
    for number, grad in enumerate(results):
        if isinstance(grad, Tensor):
            places.setdefault(id(memory(grad)), []).append(number)
    marks: Marks = {}
    for numbers in places.values():
        if len(numbers) > 1 and not apart([results[number] for number in numbers]):
            mark = [len(numbers)]
            marks.update((number, mark) for number in numbers)
    return marks or None


def apart(grads: list[Tensor]) -> bool:
    """Whether views, such as the parts of a concatenation, share no memory."""
    if any(grad._of is None or type(grad._a) is not ndarray or min(grad._a.strides, default=0) < 0 for grad in grads):
        return False
    bounds = sorted(extent(grad._a) for grad in grads)
    return all(end <= start for (_, end), (start, _) in pairwise(bounds))


def extent(array: Any) -> tuple[int, int]:
    """The first and last address of an array, if no step goes backwards."""
    start = address(array)
    return start, start + sum((n - 1) * abs(s) for n, s in zip(array.shape, array.strides)) + array.itemsize


def passed_on(received: Sequence[Any], marks: Marks, results: Sequence[Any]) -> Marks | None:
    """The marks of a runtime formula's results for gradients with marks: it may pass these on, or views of them."""
    found = in_common(results) if len(results) > 1 else None
    for number, mark in marks.items():
        given = received[number]
        mark[0] -= 1
        if given is None or not mark[0]:
            continue  # only the node has it, so its result belongs to the engine
        whole = given if given._of is None else given._of[0]
        for i, grad in enumerate(results):
            if grad is given or (isinstance(grad, Tensor) and (grad if grad._of is None else grad._of[0]) is whole):
                mark[0] += 1
                if found is None:
                    found = {}
                found[i] = mark
    return found


def leave(marks: Iterable[Mark]) -> None:
    """The engine keeps these gradients in one place fewer."""
    for mark in marks:
        mark[0] -= 1
