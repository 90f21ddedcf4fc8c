"""Random tensors: factories, in-place fills and samples of distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._backends.base import on_device
from .._backends.cpu import random as kernels
from .._backends.cpu.memory import blank
from .._backends.meta import MetaArray
from .._device import CPU, DeviceLike
from .._dispatch.namespace import aten
from .._dispatch.registry import choose, declare
from .._dispatch.schema import parse_schema
from .._dispatch.steps import step
from .._dtype import FROM_NUMPY, DType, float32, int64
from .._memory_format import MemoryFormat
from .._random import Generator, engine_of, generator_for
from .._shape import as_shape, broadcast_shapes
from .._tensor import Tensor, wrap, wrap_known
from .create import OPTIONS, check_size, fresh, is_of_host, out_dtype, with_flags
from .formulas import NOT_IMPLEMENTED, not_implemented

# -- in-place fills ----------------------------------------------------------------------------------------------------
# A filled tensor forgets its history: its gradient is zero.


def _fill(schema: str, kernel: Callable[..., Any], node: str | None = None) -> None:
    """Declare `name_`: the kernel gets the array, the stream to draw from and the parameters."""

    def fill(target: Any, *rest: Any) -> Any:
        return kernel(target, engine_of(rest[-1]), *rest[:-1])

    def fill_by_two(target: Any, first: Any, second: Any, generator: Generator | None) -> Any:
        return kernel(target, engine_of(generator), first, second)

    two = len(parse_schema(f"{schema} -> Tensor").arguments) == 4  # the commonest ones, called without lists
    declare(f"{schema} -> Tensor", cpu_inplace=fill_by_two if two else fill, where="n", node=node,
            grad={"self": lambda grad: aten.zeros_like(grad)})


_fill("uniform(Tensor self, float low=0., float high=1., *, Generator? generator=None)", kernels.uniform)
_fill("normal.fill(Tensor self, float mean=0., float std=1., *, Generator? generator=None)", kernels.normal)
_fill("random(Tensor self, *, Generator? generator=None)", kernels.integers_full)
_fill("random.from(Tensor self, int low, int? high, *, Generator? generator=None)", kernels.integers)
_fill("random.to(Tensor self, int high, *, Generator? generator=None)",
      lambda target, engine, high: kernels.integers(target, engine, 0, high))
_fill("exponential(Tensor self, float lambd=1., *, Generator? generator=None)", kernels.exponential)
_fill("geometric(Tensor self, float p, *, Generator? generator=None)", kernels.geometric)
_fill("log_normal(Tensor self, float mean=1., float std=2., *, Generator? generator=None)", kernels.log_normal)
_fill("cauchy(Tensor self, float median=0., float sigma=1., *, Generator? generator=None)", kernels.cauchy)
_fill("bernoulli.float(Tensor self, float p=0.5, *, Generator? generator=None)", kernels.bernoulli,
      "BernoulliBackward2")


def _bernoulli_from(target: Any, p: Any, generator: Generator | None) -> Any:
    return kernels.bernoulli_elementwise(target, engine_of(generator), p)


declare("bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor",
        cpu_inplace=_bernoulli_from, where="n", node="BernoulliBackward1",
        grad={"self": lambda grad: aten.zeros_like(grad), "p": lambda grad: aten.zeros_like(grad)})


@choose("uniform_", where="m")
def uniform_(self: Tensor, low: float = 0.0, high: float = 1.0, *, generator: Generator | None = None,
             **bounds: float) -> Tensor:
    """Fill with numbers spread evenly over [low, high); by keyword the bounds are called `from` and `to`."""
    if bounds:
        low, high = bounds.pop("from", low), bounds.pop("to", high)
        _refuse("uniform_", bounds)
    return aten.uniform___default(self, low, high, generator=generator)


def _refuse(name: str, unknown: dict[str, Any]) -> None:
    if unknown:
        raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(unknown))}'")


@choose("normal_", where="m")
def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with normally distributed numbers."""
    return aten.normal___fill(self, mean, std, generator=generator)


@choose("random_", where="m")
def random_(self: Tensor, *bounds: Any, generator: Generator | None = None, **named: Any) -> Tensor:
    """Fill with integers: of [from, to), of [0, to), or all that the dtype holds."""
    low, high = named.pop("from", None), named.pop("to", None)
    _refuse("random_", named)
    if len(bounds) == 2:
        low, high = bounds
    elif len(bounds) == 1 and low is None:
        low, high = (0, bounds[0]) if high is None else (bounds[0], high)
    if low is None and high is None and not bounds:
        return aten.random___default(self, generator=generator)
    if low is None or (len(bounds) == 1 and low == 0):
        return aten.random___to(self, high, generator=generator)
    return aten.random___from(self, low, high, generator=generator)


@choose("bernoulli_", where="m")
def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with ones of probability `p`, a number or a tensor, and zeros."""
    form = aten.bernoulli___Tensor if isinstance(p, Tensor) else aten.bernoulli___float
    return form(self, p, generator=generator)


@choose("exponential_", where="m")
def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with exponentially distributed numbers."""
    return aten.exponential___default(self, lambd, generator=generator)


@choose("geometric_", where="m")
def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers of trials up to the first success."""
    return aten.geometric___default(self, p, generator=generator)


@choose("log_normal_", where="m")
def log_normal_(self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers whose logarithm is normally distributed."""
    return aten.log_normal___default(self, mean, std, generator=generator)


@choose("cauchy_", where="m")
def cauchy_(self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers of a Cauchy distribution."""
    return aten.cauchy___default(self, median, sigma, generator=generator)


# -- factories ---------------------------------------------------------------------------------------------------------


def _overload(name: str, form: str, generator: Generator | None) -> tuple[Callable[..., Tensor], dict[str, Any]]:
    """The overload that draws from the default generator or from a given one, and what the latter takes for it."""
    if generator is None:
        return getattr(aten, f"{name}__{form or 'default'}"), {}
    return getattr(aten, f"{name}__{form and form + '_'}generator"), {"generator": generator}


# The fills of new tensors, as steps: below the factory a call of the op would cost more than the few numbers it draws.


@step("aten::uniform_", "")
def _uniform_step(target: Any, low: float, high: float, generator: None) -> Any:
    engine = engine_of(generator)
    return target if engine.fill_uniform(target) else kernels.uniform(target, engine, low, high)


@step("aten::normal_", "fill")
def _normal_step(target: Any, mean: float, std: float, generator: None) -> Any:
    engine = engine_of(generator)
    return target if engine.fill_normal(target, mean, std) else kernels.normal(target, engine, mean, std)


@step("aten::random_", "from")
def _integers_step(target: Any, low: int, high: int, generator: None) -> Any:
    engine = engine_of(generator)
    return target if engine.fill_integers(target, low, high) else kernels.integers(target, engine, low, high)


def _factory(name: str, fill: str, fill_step: Callable[..., Any]) -> None:
    """`rand` and `randn`: an empty tensor, filled."""

    plain = f"{name}__default"

    def make(size: Any, generator: Generator | None, dtype: DType | None, layout: Any, device: DeviceLike,
             pin_memory: bool | None) -> Tensor:
        made = aten.empty__memory_format(size, dtype=dtype, device=device)
        return fresh(getattr(aten, fill)(made, generator=generator))

    def make_plain(size: Any, dtype: DType | None, layout: Any, device: DeviceLike, pin_memory: bool | None) -> Tensor:
        if (dtype is None or dtype is float32) and is_of_host(device):
            return wrap(fill_step(blank(check_size(size), dtype), 0.0, 1.0, None))
        return fresh(getattr(aten, fill)(aten.empty__memory_format(size, dtype=dtype, device=device)))

    def make_like(self: Tensor, generator: Generator | None, dtype: DType | None, layout: Any, device: DeviceLike,
                  pin_memory: bool | None, memory_format: MemoryFormat | None) -> Tensor:
        made = aten.empty_like(self, dtype=dtype, device=device, memory_format=memory_format)
        return fresh(getattr(aten, fill)(made, generator=generator))

    declare(f"{name}.generator(int[] size, *, Generator? generator, {OPTIONS}) -> Tensor", composite=make, where="n")
    declare(f"{name}(int[] size, *, {OPTIONS}) -> Tensor", where="n",
            composite=make_plain)
    declare(f"{name}_like.generator(Tensor self, *, Generator? generator, {OPTIONS}, "
            "MemoryFormat? memory_format=None) -> Tensor", composite=make_like, where="n")
    declare(f"{name}_like(Tensor self, *, {OPTIONS}, MemoryFormat? memory_format=None) -> Tensor", where="n",
            composite=lambda self, *options: make_like(self, None, *options))

    @choose(name, where="f")
    def face(*size: Any, generator: Generator | None = None, out: Any = None, dtype: DType | None = None,
             layout: Any = None, device: DeviceLike = None, pin_memory: bool = False, requires_grad: bool = False,
             **size_by_name: Any) -> Tensor:
        if size_by_name:
            size = (size_by_name.pop("size"),)
            _refuse(name, size_by_name)
        elif not size:
            raise TypeError(f"{name}() received an invalid combination of arguments - got ()")
        if out is not None:
            dtype = out_dtype(name, out, dtype)
            if not out.is_contiguous() and tuple(as_shape(size)) == out.shape:
                return getattr(aten, fill)(out, generator=generator)  # numbers follow each other as memory does
        if generator is None:
            made = getattr(aten, plain)(as_shape(size), dtype=dtype, device=device)
            if out is None and not (requires_grad or pin_memory):
                return made
            return with_flags(made, requires_grad, out, pin_memory)
        form, drawn = _overload(name, "", generator)
        return with_flags(form(as_shape(size), **drawn, dtype=dtype, device=device), requires_grad, out,
                          pin_memory)

    @choose(f"{name}_like", where="f")
    def face_like(input: Tensor, *, generator: Generator | None = None, dtype: DType | None = None, layout: Any = None,
                  device: DeviceLike = None, pin_memory: bool = False, requires_grad: bool = False,
                  memory_format: MemoryFormat | None = None) -> Tensor:
        form, drawn = _overload(f"{name}_like", "", generator)
        return with_flags(form(input, **drawn, dtype=dtype, device=device, memory_format=memory_format),
                          requires_grad, pin_memory=pin_memory)

    face.__name__ = face.__qualname__ = name
    face_like.__name__ = face_like.__qualname__ = f"{name}_like"
    kind = "spread evenly over [0, 1)" if name == "rand" else "normally distributed"
    face.__doc__ = f"A tensor of the given size of numbers {kind}."
    face_like.__doc__ = f"Numbers {kind}, in the shape, dtype and device of `input` unless given."


_factory("rand", "uniform___default", _uniform_step)
_factory("randn", "normal___fill", _normal_step)


def _randint(low: int, high: int, size: Any, generator: Generator | None, dtype: DType | None, layout: Any,
             device: DeviceLike, pin_memory: bool | None) -> Tensor:
    if (dtype is None or dtype is int64) and generator is None and type(low) is type(high) is int and (
            low < high) and is_of_host(device):
        return wrap(_integers_step(blank(check_size(size), int64), low, high, None))
    made = aten.empty__memory_format(size, dtype=dtype or int64, device=device)
    return fresh(aten.random___from(made, low, high, generator=generator))


declare(f"randint.low_generator(int low, int high, int[] size, *, Generator? generator, {OPTIONS}) -> Tensor",
        composite=_randint, where="n")
declare(f"randint.low(int low, int high, int[] size, *, {OPTIONS}) -> Tensor", where="n",
        composite=lambda low, high, size, dtype, layout, device, pin_memory: _randint(
            low, high, size, None, dtype, layout, device, pin_memory))
declare(f"randint.generator(int high, int[] size, *, Generator? generator, {OPTIONS}) -> Tensor", where="n",
        composite=lambda high, *rest: _randint(0, high, *rest))
declare(f"randint(int high, int[] size, *, {OPTIONS}) -> Tensor", where="n",
        composite=lambda high, size, dtype, layout, device, pin_memory: _randint(
            0, high, size, None, dtype, layout, device, pin_memory))


def _bounds(name: str, args: tuple[Any, ...], low: Any, high: Any, last: Any,
            last_name: str) -> tuple[tuple[int, ...], Any]:
    """`(high,)` or `(low, high)` as given, by position or keyword, and what follows them if `last_name`."""
    if len(args) == 2 and last_name and type(args[0]) is int and low is high is last is None:
        return args[:1], args[1]
    rest = list(args)
    if last_name and last is None and rest:
        last = rest.pop()
    if high is None and rest:
        high = rest.pop()
    if rest:
        low = rest.pop()
    values = [aten.item(v) if isinstance(v, Tensor) else v for v in ((high,) if low is None else (low, high))]
    if rest or any(isinstance(v, bool) or not isinstance(v, (int, np.integer)) for v in values):
        kinds = ", ".join(type(v).__name__ for v in (*args,))
        raise TypeError(f"{name}() received an invalid combination of arguments - got ({kinds})")
    return tuple(int(v) for v in values), last


@choose("randint", where="f")
def randint(*args: Any, low: Any = None, high: Any = None, size: Any = None, generator: Generator | None = None,
            out: Any = None, dtype: DType | None = None, layout: Any = None, device: DeviceLike = None,
            pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """Integers of [low, high): `randint(high, size)` or `randint(low, high, size)`."""
    bounds: tuple[Any, ...]
    if len(args) == 3 and type(args[0]) is type(args[1]) is int and low is high is size is None:
        bounds, shape = args[:2], args[2]
    else:
        bounds, shape = _bounds("randint", args, low, high, size, "size")
    if type(shape) is int:
        raise TypeError("randint() received an invalid combination of arguments - got (int, int, int)"
                        if len(bounds) == 2 else
                        "randint(): argument 'size' (position 2) must be tuple of ints, not int")
    if dtype is None:
        dtype = int64 if out is None else out.dtype
    if out is not None and not out.is_contiguous() and tuple(check_size(shape)) == out.shape:
        low, high = bounds if len(bounds) == 2 else (0, *bounds)
        return aten.random_(out, low, high, generator=generator)
    if generator is None:
        size = check_size(shape)
        if len(bounds) == 1:
            made = aten.randint__default(bounds[0], size, dtype=dtype, device=device)
        else:
            made = aten.randint__low(bounds[0], bounds[1], size, dtype=dtype, device=device)
        if out is None and not (requires_grad or pin_memory):
            return made
        return with_flags(made, requires_grad, out, pin_memory)
    form, drawn = _overload("randint", "low" if len(bounds) == 2 else "", generator)
    return with_flags(form(*bounds, check_size(shape), **drawn, dtype=dtype, device=device), requires_grad, out,
                      pin_memory)


def _randint_like(self: Tensor, low: int, high: int, generator: Generator | None, dtype: DType | None, layout: Any,
                  device: DeviceLike, pin_memory: bool | None, memory_format: MemoryFormat | None) -> Tensor:
    made = aten.empty_like(self, dtype=dtype, device=device, memory_format=memory_format)
    return fresh(aten.random___from(made, low, high, generator=generator))


_LIKE = f"{OPTIONS}, MemoryFormat? memory_format=None"
declare(f"randint_like.low_generator_dtype(Tensor self, int low, int high, *, Generator? generator, {_LIKE}) -> Tensor",
        composite=_randint_like, where="n")
declare(f"randint_like.low_dtype(Tensor self, int low, int high, *, {_LIKE}) -> Tensor", where="n",
        composite=lambda self, low, high, *options: _randint_like(self, low, high, None, *options))
declare(f"randint_like.generator(Tensor self, int high, *, Generator? generator, {_LIKE}) -> Tensor", where="n",
        composite=lambda self, high, *rest: _randint_like(self, 0, high, *rest))
declare(f"randint_like(Tensor self, int high, *, {_LIKE}) -> Tensor", where="n",
        composite=lambda self, high, *options: _randint_like(self, 0, high, None, *options))


@choose("randint_like", where="f")
def randint_like(input: Tensor, *args: Any, low: Any = None, high: Any = None, generator: Generator | None = None,
                 dtype: DType | None = None, layout: Any = None, device: DeviceLike = None, pin_memory: bool = False,
                 requires_grad: bool = False, memory_format: MemoryFormat | None = None) -> Tensor:
    """Integers of [low, high) in the shape, dtype and device of `input` unless given."""
    bounds, _ = _bounds("randint_like", args, low, high, None, "")
    drawn: dict[str, Any] = {} if generator is None else {"generator": generator}
    if len(bounds) == 1:
        form = aten.randint_like__generator if drawn else aten.randint_like__default
    else:
        form = aten.randint_like__low_generator_dtype if drawn else aten.randint_like__low_dtype
    made = form(input, *bounds, **drawn, dtype=dtype, device=device, memory_format=memory_format)
    return with_flags(made, requires_grad, pin_memory=pin_memory)


def _randperm(n: int, generator: Generator | None, dtype: DType | None, layout: Any, device: DeviceLike,
              pin_memory: bool | None) -> Tensor:
    kind = dtype or int64
    made = aten.empty__memory_format((n,), dtype=kind, device=device)
    if not made.is_meta:
        _permute_into(made._a, n, generator if made.is_cpu else generator_for(made.device, generator))
    return made


@on_device
@step("aten::randperm", "generator_out", lambda made, n, generator: (n, generator, made), places=(2,))
def _permute_into(made: Any, n: int, generator: Generator | None) -> None:
    if not (n > 1 and engine_of(generator).fill_permutation(made)):
        made[...] = engine_of(generator).permutation(n, made.dtype)


declare(f"randperm.generator(int n, *, Generator? generator, {OPTIONS}) -> Tensor", composite=_randperm, where="n")
declare(f"randperm(int n, *, {OPTIONS}) -> Tensor", where="n",
        composite=lambda n, *options: _randperm(n, None, *options))


@choose("randperm", where="f")
def randperm(n: int, *, generator: Generator | None = None, out: Any = None, dtype: DType | None = None,
             layout: Any = None, device: DeviceLike = None, pin_memory: bool = False,
             requires_grad: bool = False) -> Tensor:
    """The integers of [0, n) in random order."""
    if dtype is None:
        dtype = int64 if out is None else out.dtype
    if generator is None and out is None and not requires_grad:
        return aten.randperm__default(n, dtype=dtype, device=device)
    form, drawn = _overload("randperm", "", generator)
    return with_flags(form(n, **drawn, dtype=dtype, device=device), requires_grad, out,
                      pin_memory)


# -- samples -----------------------------------------------------------------------------------------------------------


def _zeros(grad: Tensor) -> Tensor:
    return aten.zeros_like(grad)


declare(
    "normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor", where="n",
    cpu=lambda mean, std, generator: engine_of(generator).normal_elementwise(mean, float(std), mean.shape, mean.dtype),
    node="NormalBackward1", grad={"mean": _zeros},
)
declare(
    "normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor", where="n",
    cpu=lambda mean, std, generator: engine_of(generator).normal_elementwise(float(mean), std, std.shape, std.dtype),
    node="NormalBackward2", grad={"std": _zeros},
)
declare(
    "normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor", where="n",
    cpu=lambda mean, std, generator: engine_of(generator).normal_elementwise(
        mean, std, broadcast_shapes(mean.shape, std.shape), mean.dtype),
    node="NormalBackward3", grad={"mean": _zeros, "std": _zeros},
)


def _normal_sized(mean: float, std: float, size: Any, generator: Generator | None, dtype: DType | None, layout: Any,
                  device: DeviceLike, pin_memory: bool | None) -> Tensor:
    made = aten.empty__memory_format(size, dtype=dtype, device=device)
    return fresh(aten.normal___fill(made, mean, std, generator=generator))


declare(f"normal.float_float(float mean, float std, int[] size, *, Generator? generator=None, {OPTIONS}) -> Tensor",
        composite=_normal_sized, where="n")


@choose("normal", where="f")
def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Generator | None = None, out: Any = None,
           dtype: DType | None = None, layout: Any = None, device: DeviceLike = None, pin_memory: bool = False,
           requires_grad: bool = False) -> Tensor:
    """Normally distributed numbers, with tensors of means or deviations or, given a size, with one of each."""
    if isinstance(mean, Tensor):
        form = aten.normal__Tensor_Tensor if isinstance(std, Tensor) else aten.normal__Tensor_float
        return form(mean, std, generator=generator, out=out)
    if isinstance(std, Tensor):
        return aten.normal__float_Tensor(mean, std, generator=generator, out=out)
    if size is None:
        raise TypeError("normal() received an invalid combination of arguments - got (float, float), but without "
                        "tensors it needs a size")
    made = aten.normal__float_float(mean, std, check_size(size), generator=generator,
                                    dtype=out.dtype if out is not None and dtype is None else dtype, device=device)
    return with_flags(made, requires_grad, out, pin_memory)


declare(
    "bernoulli(Tensor self, *, Generator? generator=None) -> Tensor", where="n",
    cpu=lambda p, generator: engine_of(generator).bernoulli_elementwise(p, p.dtype), grad={"self": _zeros},
)
declare(
    "bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor", where="n",
    cpu=lambda a, p, generator: engine_of(generator).bernoulli(a.shape, a.dtype, p), node=NOT_IMPLEMENTED,
    grad={"self": not_implemented("bernoulli")},
)


@choose("bernoulli")
def bernoulli(input: Tensor, p: float | None = None, *, generator: Generator | None = None, out: Any = None) -> Tensor:
    """Ones with the probabilities found in `input`, or with one probability, and zeros."""
    if p is None:
        return aten.bernoulli__default(input, generator=generator, out=out)
    return aten.bernoulli__p(input, p, generator=generator, out=out)


def _multinomial(weights: Any, count: int, replacement: bool, generator: Generator | None) -> Any:
    if count != 1 or weights.ndim not in (1, 2) or not weights.size or not FROM_NUMPY[weights.dtype].is_floating_point:
        return engine_of(generator).multinomial(weights, count, replacement)
    # One sample is the fastest of exponential clocks with these rates, through ops, as in PyTorch.
    rates = wrap_known(weights)
    made = aten.empty((*weights.shape[:-1], 1), dtype=int64, device=CPU)
    low, high = aten.aminmax(rates)
    aten._assert_async(aten.bitwise_and(aten.ge(low, 0), aten.lt(high, np.inf)),
                       "probability tensor contains either `inf`, `nan` or element < 0")
    nothing = aten.any(aten.eq(aten.sum(rates, -1), 0))
    aten._assert_async(aten.bitwise_not(nothing), "invalid multinomial distribution (sum of probabilities <= 0)")
    clocks = aten.exponential_(aten.empty_like(rates), generator=generator)
    return kernels.argmax_into(kernels.divide_into(weights, clocks._a, clocks._a), -1, True, made._a)


declare(
    "multinomial(Tensor self, int num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor",
    cpu=_multinomial,
    meta=lambda weights, count, *rest: MetaArray.empty((*weights.shape[:-1], count), np.dtype(np.int64)),
)
