"""`Fuzzer`: inputs of random sizes and layouts, the same for the same seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ...._dispatch.namespace import aten
from ...._dtype import float32
from ...._random import manual_seed

__all__ = ["FuzzedParameter", "FuzzedTensor", "Fuzzer", "ParameterAlias"]

_ATTEMPTS = 1000


class ParameterAlias:
    """A value of a distribution that stands for another parameter's value."""

    def __init__(self, alias_to: str) -> None:
        self.alias_to = alias_to

    def __repr__(self) -> str:
        return f"ParameterAlias[alias_to: {self.alias_to}]"


class FuzzedParameter:
    """A number between two others, or one of several values with given shares.

    A `strict` parameter keeps its first value when others are drawn again because a constraint does not hold.
    """

    def __init__(self, name: str, minval: int | float | None = None, maxval: int | float | None = None,
                 distribution: str | dict[Any, float] | None = None, strict: bool = False) -> None:
        self._name = name
        self._minval = minval
        self._maxval = maxval
        self._distribution = self._check_distribution(distribution, strict)
        self.strict = strict

    @property
    def name(self) -> str:
        """The parameter's name."""
        return self._name

    def _check_distribution(self, distribution: Any, strict: bool) -> Any:
        if isinstance(distribution, dict):
            total = sum(distribution.values())
            if strict and abs(total - 1) > 1e-5:
                raise AssertionError("Distribution is not normalized")
            return {value: share / total for value, share in distribution.items()}
        if distribution not in ("uniform", "loguniform"):
            raise AssertionError(f"Unknown distribution: {distribution}")
        if self._minval is None or self._maxval is None:
            raise AssertionError(f"The {distribution} distribution of {self._name} needs minval and maxval")
        return distribution

    def sample(self, state: Any) -> Any:
        """A value."""
        if isinstance(self._distribution, dict):
            values = list(self._distribution)
            return values[state.choice(np.arange(len(values)), p=tuple(self._distribution.values()))]
        assert self._minval is not None
        assert self._maxval is not None
        if self._distribution == "loguniform":
            return int(2 ** state.uniform(low=np.log2(self._minval), high=np.log2(self._maxval)))
        if isinstance(self._minval, int) and isinstance(self._maxval, int):
            return state.randint(low=int(self._minval), high=int(self._maxval) + 1)
        return state.uniform(low=self._minval, high=self._maxval)


class FuzzedTensor:
    """A tensor whose sizes and steps are numbers or names of parameters."""

    def __init__(self, name: str, size: tuple[str | int, ...], steps: tuple[str | int, ...] | None = None,
                 probability_contiguous: float = 0.5, min_elements: int | None = None,
                 max_elements: int | None = None, max_allocation_bytes: int | None = None,
                 dim_parameter: str | None = None, roll_parameter: str | None = None, dtype: Any = float32,
                 cuda: bool = False, tensor_constructor: Callable[..., Any] | None = None) -> None:
        if cuda:
            raise NotImplementedError("FuzzedTensor: this runtime has no CUDA devices")
        self._name = name
        self._size = size
        self._steps = steps
        self._probability_contiguous = probability_contiguous
        self._min_elements = min_elements
        self._max_elements = max_elements
        self._max_allocation_bytes = max_allocation_bytes
        self._dim_parameter = dim_parameter
        self._dtype = dtype
        self._cuda = cuda
        self._tensor_constructor = tensor_constructor

    @property
    def name(self) -> str:
        """The tensor's name."""
        return self._name

    @staticmethod
    def default_tensor_constructor(size: Any, dtype: Any, **kwargs: Any) -> Any:
        """Random numbers: floats below 1, integers below 127."""
        if dtype.is_floating_point or dtype.is_complex:
            return aten.rand(list(size), dtype=dtype)
        return aten.randint(1, 127, list(size), dtype=dtype)

    def _get_size_and_steps(self, params: dict[str, Any]) -> tuple[tuple[int, ...], ...]:
        """Size, steps, and the size of what is allocated for them."""
        dim = params[self._dim_parameter] if self._dim_parameter is not None else len(self._size)

        def resolved(values: Iterable[Any]) -> tuple[int, ...]:
            found = [int(params.get(value, value)) for value in list(values)[:dim]]
            return (*found, *[1] * (dim - len(found)))

        size, steps = resolved(self._size), resolved(self._steps or ())
        return size, steps, tuple(length * step for length, step in zip(size, steps))

    def satisfies_constraints(self, params: dict[str, Any]) -> bool:
        """Whether the tensor has neither too few elements nor too many."""
        size, _, allocated = self._get_size_and_steps(params)
        count, nbytes = math.prod(size), math.prod(allocated) * self._dtype.itemsize
        return not ((self._max_elements is not None and count > self._max_elements)
                    or (self._min_elements is not None and count < self._min_elements)
                    or (self._max_allocation_bytes is not None and nbytes > self._max_allocation_bytes))

    def _make_tensor(self, params: dict[str, Any], state: Any) -> tuple[Any, dict[str, Any]]:
        size, steps, allocated = self._get_size_and_steps(params)
        construct = self._tensor_constructor or self.default_tensor_constructor
        raw = construct(size=allocated, dtype=self._dtype, **params)
        plain = order = np.arange(len(size))
        if state.rand() > self._probability_contiguous:
            while len(size) > 1 and np.array_equal(order, plain):
                order = state.permutation(raw.dim())
            raw = raw.permute(tuple(order.tolist())).contiguous().permute(tuple(np.argsort(order).tolist()))
        tensor = raw[tuple(slice(0, length * step, step) for length, step in zip(size, steps))]
        return tensor, {"numel": int(tensor.numel()), "order": order, "steps": steps,
                        "is_contiguous": tensor.is_contiguous(), "dtype": str(self._dtype)}


def _flat(values: Iterable[Any]) -> list[Any]:
    """A list of things or lists of things as one list."""
    return [one for value in values for one in (value if isinstance(value, (list, tuple)) else [value])]


class Fuzzer:
    """Draws parameters, and makes tensors from them.

    >>> fuzzer = Fuzzer([FuzzedParameter("n", 1, 16, "loguniform")], [FuzzedTensor("x", size=("n",))], seed=0)
    >>> [(params, tensors["x"].shape) for tensors, _, params in fuzzer.take(1)]
    [({'n': 7}, torch.Size([7]))]
    """

    def __init__(self, parameters: list[Any], tensors: list[Any], constraints: list[Callable[..., bool]] | None = None,
                 seed: int | None = None) -> None:
        self._seed = int(np.random.RandomState().randint(0, 2**32 - 1, dtype=np.int64)) if seed is None else seed
        self._parameters: list[FuzzedParameter] = _flat(parameters)
        self._tensors: list[FuzzedTensor] = _flat(tensors)
        self._constraints = constraints or []
        both = {one.name for one in self._parameters} & {one.name for one in self._tensors}
        if both:
            raise ValueError(f"Duplicate names in parameters and tensors: {both}")
        self._rejections = 0
        self._total_generated = 0

    @property
    def rejection_rate(self) -> float:
        """The share of draws for which a constraint did not hold."""
        return self._rejections / self._total_generated if self._total_generated else 0.0

    def take(self, n: int) -> Iterator[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
        """`n` times the tensors, what is known of them, and the parameters; each call begins anew."""
        state = np.random.RandomState(self._seed)
        manual_seed(int(state.randint(0, 2**63, dtype=np.int64)))  # the tensors' contents are drawn by the runtime
        for _ in range(n):
            params = self._generate(state)
            tensors, facts = {}, {}
            for one in self._tensors:
                tensors[one.name], facts[one.name] = one._make_tensor(params, state)
            yield tensors, facts, params

    def _generate(self, state: Any) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for _ in range(_ATTEMPTS):
            drawn: dict[str, Any] = {}
            for one in self._parameters:
                drawn[one.name] = kept[one.name] if one.strict and one.name in kept else one.sample(state)
                if one.strict:
                    kept[one.name] = drawn[one.name]
            params = _without_aliases(drawn)
            self._total_generated += 1
            if all(holds(params) for holds in self._constraints) and all(
                    tensor.satisfies_constraints(params) for tensor in self._tensors):
                return params
            self._rejections += 1
        raise ValueError("Failed to generate a set of valid parameters.")


def _without_aliases(params: dict[str, Any]) -> dict[str, Any]:
    """Aliases replaced by what they stand for, which may be aliases again."""
    found = dict(params)
    for name, value in params.items():
        seen = {name}
        while isinstance(value, ParameterAlias):
            if value.alias_to in seen:
                raise ValueError(f"Cyclic alias detected: {params}")
            seen.add(value.alias_to)
            value = params[value.alias_to]
        found[name] = value
    return found
