"""Steps of a kernel that have a name in PyTorch's op set: allocating memory, filling, copying, making a view.

A step is a function on arrays that kernels call. It always runs; while a profiler records, it is reported below the op,
as in PyTorch. Without a profiler it costs one call and one check of a flag.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numpy import ndarray

from .code_cache import CACHE
from .describe import describe_all, remembering
from .native import NATIVE
from .observer import HOOK, NAMES, event_id

# `inputs_` converts the step's arguments to those of the op's signature, `describe_` gives the number of their
# description. An array is new if it has memory of its own and is not an argument of the step.
SOURCE = """
def make(kernel_, id_, inputs_, describe_, allocates_):
    def run({names}):
        if not OBSERVING: return kernel_({names})
        noted_ = None if TAP is None else TAP.enter(id_, -1, inputs_({names}))
        {uses}
        made_ = None
        {begin}
        try:
            made_ = kernel_({names})
            if ALLOCATED is not None and allocates_ and type(made_) is ndarray_ and made_.base is None{others}:
                ALLOCATED(made_)
            return made_
        except MemoryError as error_:
            tell_refusal(error_)
            raise
        finally:
            {end}
            if noted_ is not None: noted_.leave(made_, made_ is None)
    return run
"""
DESCRIBED = "describe_({names}) if DESCRIBE else None"
# The native `begin` describes, and records uses if arguments keep their places.
NATIVE_LINES = ("start_ = begin(describe_, False, {names})", "start_.end(id_)")
NATIVE_PLACED = ("start_ = begin(" + DESCRIBED + ", False)", "start_.end(id_)")
PYTHON_LINES = ("given_ = " + DESCRIBED + "; start_ = clock()",
                "THREAD.state.extend((id_, start_, clock(), -1, given_))")


def step(name: str, overload: str = "", inputs: Callable[..., tuple[Any, ...]] | None = None,
         places: tuple[int, ...] | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a step of a kernel function; `inputs` turns its arguments into those of the op of this name.

    `places` gives the places of the first arguments there, for steps whose arrays do not keep their places; if it is
    empty, no array is an input.

    >>> import numpy
    >>> from mindtorch_v2._dispatch.steps import step
    >>> @step("aten::neg")
    ... def negative(array):
    ...     return -array
    >>> negative(numpy.ones(2))
    array([-1., -1.])
    """

    def decorate(kernel: Callable[..., Any]) -> Callable[..., Any]:
        function = getattr(kernel, "function", kernel)  # the function behind a kernel in C
        make = _maker(SOURCE, function.__code__.co_argcount, places)
        # If the name is that of an `out` form, PyTorch's step writes into memory that the op around it has allocated.
        made = make(kernel, event_id(name, "op", overload), inputs or _as_given,
                    _each if inputs is None else remembering(lambda *given: describe_all(inputs(*given))),
                    not overload.endswith("out"))
        made.__name__, made.__module__, made.__doc__ = function.__name__, function.__module__, function.__doc__
        return made

    return decorate


@functools.cache
def _maker(source: str, count: int, places: tuple[int, ...] | None = None) -> Callable[..., Any]:
    """The function `make` of a source for steps with this many arguments: compiling takes most of the time."""
    begin, end = LINES[source] if places is None or NATIVE is None else NATIVE_PLACED
    names = ", ".join(f"a{i}" for i in range(count))
    inputs = [f"a{i}" for i in range(count)] if places is None else ["None"] * (max(places, default=-1) + 1)
    for i, place in enumerate(places or ()):
        inputs[place] = f"a{i}"
    if source == AS_STRIDED:
        inputs = inputs[:1]  # the visible array; another one describes the geometry
    by_begin = NATIVE is not None and places is None
    uses = f"if USES is not None: USES({', '.join(inputs)})" if inputs and not by_begin else "pass"
    others = "".join(f" and made_ is not a{i}" for i in range(count))
    text = source.format(names=names, begin=begin.format(names=names), end=end, others=others, uses=uses)
    space: dict[str, Any] = {}
    HOOK["ndarray_"] = ndarray
    exec(CACHE.compiled(text, f"<mindtorch_v2 step of {count}>"), NAMES, space)
    return space["make"]


def _as_given(*values: Any) -> tuple[Any, ...]:
    return values


_each = remembering(lambda *given: describe_all(given), True)


AS_STRIDED = """
def make(kernel_, id_, describe_, geometry_):
    def run({names}):
        if not OBSERVING: return kernel_({names})
        noted_ = None if TAP is None else TAP.enter(id_, -1, (a0,))
        {uses}
        given_ = made_ = None
        {begin}
        try:
            made_ = kernel_({names})
            if DESCRIBE: given_ = describe_(a0, made_)
            return made_
        finally:
            {end}
            if noted_ is not None:
                noted_.leave(made_, made_ is None, None if made_ is None else geometry_(a0, made_))
    return run
"""
NATIVE_LATE = ("start_ = begin(False, False, a0)", "start_.end(id_, given_)")
PYTHON_LATE = ("start_ = clock()", "THREAD.state.extend((id_, start_, clock(), -1, given_))")


LINES = {SOURCE: NATIVE_LINES, AS_STRIDED: NATIVE_LATE} if NATIVE is not None else {
    SOURCE: PYTHON_LINES, AS_STRIDED: PYTHON_LATE}


def as_strided(kernel: Callable[..., Any], count: int | None = None) -> Callable[..., Any]:
    """Make the step `aten::as_strided` of a function that makes a view of its first argument.

    The view's size and strides are that step's inputs; they are known when the view exists. A built-in function does
    not state its number of arguments, so `count` does.
    """
    function = getattr(kernel, "function", kernel)  # the function behind a kernel in C
    make = _maker(AS_STRIDED, function.__code__.co_argcount if count is None else count)
    made = make(kernel, event_id("aten::as_strided", "op"), _describe_geometry, _geometry)
    made.__name__, made.__doc__ = function.__name__, function.__doc__
    return made


def _geometry(array: Any, made: Any) -> tuple[Any, ...]:
    item = made.dtype.itemsize
    return array, made.shape, tuple(s // item for s in made.strides), None


_describe_geometry = remembering(lambda array, made: describe_all(_geometry(array, made)))
