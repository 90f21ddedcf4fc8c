"""Regions that parameters and samples must lie in: `constraint.check(value)` says where they do."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from .._dispatch.namespace import aten
from .._dtype import bool_, finfo
from .._tensor import Tensor

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property",
    "greater_than", "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval",
    "is_dependent", "less_than", "lower_cholesky", "lower_triangular", "multinomial", "nonnegative",
    "nonnegative_integer", "one_hot", "positive", "positive_definite", "positive_integer", "positive_semidefinite",
    "real", "real_vector", "simplex", "square", "stack", "symmetric", "unit_interval",
]


class Constraint:
    """A region; `event_dim` is the number of dimensions that `check` judges together."""

    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value: Tensor) -> Any:
        """A mask over the batch: where `value` is inside."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return type(self).__name__.removeprefix("_") + "()"


class _Dependent(Constraint):
    """A region that depends on other variables, so that nothing can be checked by itself."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    @property
    def is_discrete(self) -> bool:
        """Whether the region is discrete, if that was said."""
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self) -> int:
        """The number of event dimensions, if that was said."""
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> _Dependent:
        return _Dependent(is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
                          event_dim=self._event_dim if event_dim is NotImplemented else event_dim)

    def check(self, value: Tensor) -> Any:
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint: Any) -> bool:
    """Whether a constraint depends on other variables."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property of a distribution that gives a constraint; asked on the class it is a dependent one."""

    def __init__(self, fn: Callable[..., Any] | None = None, *, is_discrete: Any = NotImplemented,
                 event_dim: Any = NotImplemented) -> None:
        property.__init__(self, fn)
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    def __call__(self, fn: Callable[..., Any]) -> _DependentProperty:  # type: ignore[override]
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


class _IndependentConstraint(Constraint):
    """Another constraint whose last batch dimensions are judged together."""

    def __init__(self, base_constraint: Any, reinterpreted_batch_ndims: int) -> None:
        if not isinstance(base_constraint, Constraint):
            raise AssertionError(f"base_constraint must be a Constraint, got {type(base_constraint).__name__}")
        if reinterpreted_batch_ndims < 0:
            raise AssertionError(f"reinterpreted_batch_ndims must be >= 0, got {reinterpreted_batch_ndims}")
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> bool:
        """As the inner constraint."""
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:
        """The inner constraint's and the added ones."""
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Any:
        result = self.base_constraint.check(value)
        if result.dim() < self.reinterpreted_batch_ndims:
            expected = self.base_constraint.event_dim + self.reinterpreted_batch_ndims
            raise ValueError(f"Expected value.dim() >= {expected} but got {value.dim()}")
        if not self.reinterpreted_batch_ndims:
            return result
        return result.reshape((*result.shape[:result.dim() - self.reinterpreted_batch_ndims], -1)).all(-1)

    def __repr__(self) -> str:
        return f"{type(self).__name__[1:]}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The support of a mixture's components, for values without the components' dimension."""

    def __init__(self, base_constraint: Any) -> None:
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> bool:
        """As the components' support."""
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:
        """As the components' support."""
        return self.base_constraint.event_dim

    def check(self, value: Tensor) -> Any:
        inside = self.base_constraint.check(aten.unsqueeze(value, -1 - self.event_dim))
        return inside.reshape((*value.shape[:value.dim() - self.event_dim], -1)).all(-1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r})"


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Tensor) -> Any:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Any:
        is_boolean = (value == 0) | (value == 1)
        is_one = value.sum(-1).eq(1)
        return is_boolean.all(-1) & is_one


class _Bounded(Constraint):
    """A region with bounds, which its name shows."""

    names: tuple[str, ...] = ()

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)}" for name in self.names)
        return f"{type(self).__name__.removeprefix('_')}({shown})"


class _TwoSided(_Bounded):
    names = ("lower_bound", "upper_bound")

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound


class _LowerBounded(_Bounded):
    names = ("lower_bound",)

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound


class _UpperBounded(_Bounded):
    names = ("upper_bound",)

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound


class _IntegerInterval(_TwoSided):
    is_discrete = True

    def check(self, value: Tensor) -> Any:
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerLessThan(_UpperBounded):
    is_discrete = True

    def check(self, value: Tensor) -> Any:
        return (value % 1 == 0) & (value <= self.upper_bound)


class _IntegerGreaterThan(_LowerBounded):
    is_discrete = True

    def check(self, value: Tensor) -> Any:
        return (value % 1 == 0) & (value >= self.lower_bound)


class _Real(Constraint):
    def check(self, value: Tensor) -> Any:
        return value == value  # False for NaN


class _GreaterThan(_LowerBounded):
    def check(self, value: Tensor) -> Any:
        return self.lower_bound < value


class _GreaterThanEq(_LowerBounded):
    def check(self, value: Tensor) -> Any:
        return self.lower_bound <= value


class _LessThan(_UpperBounded):
    def check(self, value: Tensor) -> Any:
        return value < self.upper_bound


class _Interval(_TwoSided):
    def check(self, value: Tensor) -> Any:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_TwoSided):
    def check(self, value: Tensor) -> Any:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Tensor) -> Any:
        return aten.all(value >= 0, -1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Any:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


def _is_lower(value: Tensor) -> Any:
    """For each matrix, whether nothing is above its diagonal."""
    same = value.tril() == value
    return same.view((*value.shape[:-2], -1)).min(-1)[0]


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Any:
        return _is_lower(value)


class _LowerCholesky(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Any:
        return _is_lower(value) & (aten.diagonal(value, 0, -2, -1) > 0).min(-1)[0]


class _CorrCholesky(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Any:
        tolerance = finfo(value.dtype).eps * value.size(-1) * 10  # rows are sums of rounded squares
        unit = ((value * value).sum(-1) - 1).abs() <= tolerance
        return _LowerCholesky().check(value) & unit.all(-1)


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Any:
        return aten.full(value.shape[:-2], value.shape[-2] == value.shape[-1], dtype=bool_, device=value.device)


class _Symmetric(_Square):
    def check(self, value: Tensor) -> Any:
        square_ok = super().check(value)
        if not square_ok.all():
            return square_ok
        return aten.isclose(value, value.mT, atol=1e-6).all(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Tensor) -> Any:
        symmetric_ok = super().check(value)
        return aten.linalg_eigvalsh(value).ge(0).all(-1) if symmetric_ok.all() else symmetric_ok


class _PositiveDefinite(_Symmetric):
    def check(self, value: Tensor) -> Any:
        symmetric_ok = super().check(value)
        return aten.linalg_cholesky_ex(value)[1].eq(0) if symmetric_ok.all() else symmetric_ok


class _Several(Constraint):
    """Constraints of the parts of a value along a dimension."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        if not all(isinstance(c, Constraint) for c in cseq):
            raise AssertionError("All elements of cseq must be Constraint instances")
        self.cseq = list(cseq)
        self.dim = dim

    @property
    def is_discrete(self) -> bool:
        """Whether one of them is."""
        return any(c.is_discrete for c in self.cseq)

    def check_dim(self, value: Tensor) -> None:
        """The value has the dimension."""
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(f"dim {self.dim} out of range for value with {value.dim()} dimensions")


class _Cat(_Several):
    """Several constraints side by side along a dimension."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})")

    @property
    def event_dim(self) -> int:
        """The most that one of them has."""
        return max(c.event_dim for c in self.cseq)

    def check(self, value: Tensor) -> Any:
        self.check_dim(value)
        begins = itertools.accumulate(self.lengths, initial=0)
        return aten.cat([c.check(value.narrow(self.dim, begin, length)) for c, begin, length in
                         zip(self.cseq, begins, self.lengths)], self.dim)


class _Stack(_Several):
    """Several constraints, one for each index of a dimension."""

    @property
    def event_dim(self) -> int:
        """The most that one of them has, and the stacked dimension if it is inside."""
        dim = max(c.event_dim for c in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: Tensor) -> Any:
        self.check_dim(value)
        return aten.stack([c.check(value.select(self.dim, i)) for i, c in enumerate(self.cseq)], self.dim)


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
