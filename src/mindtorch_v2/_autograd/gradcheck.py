"""Numerical checks of derivatives: `gradcheck` and `gradgradcheck`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from .._backends.array import phantom, seen_through
from .._backends.base import copy_array, device_of, placed, to_host
from .._backends.hollow import HollowArray
from .._backends.sparse import SparseArray
from .._dispatch.namespace import aten
from .._dtype import complex128, float64
from .._tensor import Tensor, strided, wrap
from .api import grad
from .forward import dual_level, make_dual, unpack_dual
from .function import UndefinedGrad
from .sparse_elements import filled, positions


class GradcheckError(RuntimeError):
    """Numerical and analytical gradients differ."""


def _as_tuple(inputs: Any) -> tuple[Any, ...]:
    return tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)


def _results(function: Callable[..., Any], inputs: tuple[Any, ...]) -> list[Tensor]:
    """What a function returns, which must be tensors that can be compared."""
    made = list(_as_tuple(function(*inputs)))
    for one in made:
        if not isinstance(one, Tensor):
            raise AttributeError(f"'{type(one).__name__}' object has no attribute 'requires_grad': gradcheck compares "
                                 "functions that return tensors")
        if one.layout is not strided:
            raise ValueError("Sparse output is not supported at gradcheck yet. Please call to_dense(masked_grad=...) "
                             "on the output of fn for gradcheck.")
    return made


class _Part(NamedTuple):
    """A result, or one of the two parts of a complex one: gradients are of real numbers."""

    number: int
    tensor: Tensor
    about: str = ""


def _parts(function: Callable[..., Any], inputs: tuple[Any, ...]) -> list[_Part]:
    """The results that may have a gradient."""
    made: list[_Part] = []
    for number, one in enumerate(_results(function, inputs)):
        if one.dtype.is_complex:
            made += [_Part(number, aten.imag(one), "While considering the imaginary part of complex outputs only, "),
                     _Part(number, aten.real(one), "While considering the real part of complex outputs only, ")]
        elif one.dtype.is_floating_point:
            made.append(_Part(number, one))
    return made


def _outputs(function: Callable[..., Any], inputs: tuple[Any, ...]) -> list[Tensor]:
    return [part.tensor for part in _parts(function, inputs)]


def _values(tensor: Tensor) -> np.ndarray:
    """A copy of a tensor's elements."""
    if type(tensor._a) is HollowArray:  # its class knows them
        flat = aten.reshape(aten.detach(tensor), -1)
        found = [aten.select(flat, 0, i).item() for i in range(flat._a.size)]
        return np.array(found, tensor._a.dtype).reshape(tensor._a.shape)
    return to_host(aten.to_dense(tensor)._a if tensor.is_sparse else tensor._a).copy()


def _contents(function: Callable[..., Any], inputs: tuple[Any, ...]) -> list[np.ndarray]:
    return [_values(o).reshape(-1) for o in _outputs(function, inputs)]


def _differences(above: list[np.ndarray], below: list[np.ndarray]) -> list[np.ndarray]:
    """What changed in each output between two runs."""
    for a, b in zip(above, below):
        for what, one, other in (("shape", a.shape, b.shape), ("dtype", a.dtype, b.dtype)):
            if one != other:
                raise AssertionError(f"Expected `fn` to return outputs with the same {what} when inputs are perturbed, "
                                     f"but got {one} and {other}")
    return [a - b for a, b in zip(above, below)]


def _numerical(function: Callable[..., Any], inputs: tuple[Any, ...], which: Tensor, eps: float) -> list[np.ndarray]:
    """Central differences: one matrix (input elements × output elements) per output.

    For a complex input the change along its imaginary part is the imaginary part, as in gradients.
    """
    zeros = [np.zeros_like(one) for one in _contents(function, inputs)]
    sparse = type(which._a) is SparseArray
    array = which._a.values if sparse else which._a
    before = to_host(array).copy() if sparse else _values(which)
    rows: list[Any] = [zeros] * which._a.size  # an element that is not stored changes nothing
    for i, number in enumerate(positions(which._a) if sparse else range(which._a.size)):
        place = np.unravel_index(i, array.shape)
        kept = before[place]
        row: list[Any] = zeros
        for step in (1, 1j) if which.dtype.is_complex else (1,):
            _set(which, array, place, kept + step * eps)
            above = _contents(function, inputs)
            _set(which, array, place, kept - step * eps)
            below = _contents(function, inputs)
            row = [r + step * change / (2 * eps) for r, change in zip(row, _differences(above, below))]
        _set(which, array, place, kept)
        rows[number] = row
    return [np.stack([r[k] for r in rows]) if rows else np.zeros((0, 0)) for k in range(len(zeros))]


def tensors_of(value: Any, only_requiring_grad: bool = False) -> Iterator[Tensor]:
    """The tensors in a value, also in lists inside it."""
    if isinstance(value, Tensor):
        if value.requires_grad or not only_requiring_grad:
            yield value
    elif isinstance(value, Iterable) and not isinstance(value, str):
        for one in value:
            yield from tensors_of(one, only_requiring_grad)


def numerical_jacobian(fn: Callable[..., Any], inputs: Any, outputs: Any = None, target: Any = None,
                       eps: float = 1e-3, is_forward_ad: bool = False) -> list[tuple[Tensor, ...]]:
    """For each tensor of `target` (the inputs, if left out): its changes by differences, a matrix for each output."""
    given = _as_tuple(inputs)
    return [tuple(wrap(matrix) for matrix in _numerical(fn, given, one, eps))
            for one in tensors_of(given if target is None else target, only_requiring_grad=True)]


def analytical_jacobian(output: Tensor, inputs: list[Tensor]) -> list[Tensor]:
    """A matrix (input elements × output elements) by backward for each input."""
    return [wrap(matrix) for matrix in _analytical(output, inputs)]


def _set(tensor: Tensor, array: Any, place: Any, value: Any) -> None:
    """Set one element, wherever it is stored."""
    if type(array) is np.ndarray:
        array[place] = value
    elif type(array) is HollowArray:
        aten.fill_(aten.detach(tensor)[place], value.item())
    else:
        device_of(array).fill(seen_through(array, phantom(array)[(*place, ...)]), np.asarray(value))


def _units(like: Tensor) -> list[Tensor]:
    """Tensors with one element that is 1."""
    made = []
    for j in range(like._a.size):
        seed = np.zeros(like._a.shape, like._a.dtype)
        seed[np.unravel_index(j, like._a.shape)] = 1
        made.append(wrap(placed(seed, like.device)))
    return made


def _analytical(output: Tensor, inputs: list[Tensor]) -> list[np.ndarray]:
    """One matrix (input elements × output elements) per input."""
    matrices = [np.zeros((t._a.size, output._a.size), t._a.dtype) for t in inputs]
    for j, seed in enumerate(_units(output)):
        found = grad(output, inputs, seed, retain_graph=True, allow_unused=True)
        for matrix, one in zip(matrices, found):
            if one is not None:
                matrix[:, j] = _values(one).reshape(-1)
    return matrices


def _by_forward_mode(function: Callable[..., Any], given: tuple[Any, ...], which: Tensor) -> list[np.ndarray]:
    """The matrices of `_numerical`, from tangents."""
    return [np.stack(column) for column in zip(*(_tangents(function, given, which, unit) for unit in _units(which)))]


def _tangents(function: Callable[..., Any], given: tuple[Any, ...], which: Tensor, along: Tensor) -> list[np.ndarray]:
    """Each output's tangent for a tangent of an input; the one for its imaginary multiple is the imaginary part."""
    row: list[Any] = []
    for step in (1, 1j) if which.dtype.is_complex else (1,):
        with dual_level():
            fresh = [aten.detach(t).requires_grad_(t.requires_grad) if isinstance(t, Tensor) else t for t in given]
            changed = tuple(make_dual(f, aten.mul(along, step) if t is which else aten.zeros_like(t))
                            if isinstance(t, Tensor) and t.requires_grad else f for f, t in zip(fresh, given))
            found = [(o, unpack_dual(o).tangent) for o in _outputs(function, changed)]
            parts = [np.zeros(o._a.size) if t is None else _values(t).reshape(-1) for o, t in found]
        row = [step * p for p in parts] if not row else [r + step * p for r, p in zip(row, parts)]
    return row


def get_numerical_jacobian(fn: Callable[..., Any], inputs: Any, target: Any = None, eps: float = 1e-3,
                           grad_out: float = 1.0) -> tuple[Tensor, ...]:
    """The Jacobians of a function of a tuple by central differences, one per input; deprecated in PyTorch."""
    warnings.warn("`get_numerical_jacobian` was part of PyTorch's private API and not meant to be exposed. We are "
                  "deprecating it and it will be removed in a future version of PyTorch.", FutureWarning, stacklevel=2)
    if grad_out != 1.0:
        raise ValueError("Expected grad_out to be 1.0. get_numerical_jacobian no longer supports values of grad_out != "
                         "1.0.")
    given = _as_tuple(inputs)
    by = given if target is None else _as_tuple(target)
    return tuple(wrap(_numerical(lambda *values: fn(values), given, one, eps)[0]) for one in by
                 if isinstance(one, Tensor) and one.requires_grad)


def get_analytical_jacobian(inputs: Any, output: Tensor, nondet_tol: float = 0.0,
                            grad_out: float = 1.0) -> tuple[Any, bool, bool, bool]:
    """The Jacobians by backward, whether two runs agree, and whether sizes and dtypes fit; deprecated in PyTorch."""
    warnings.warn("`get_analytical_jacobian` was part of PyTorch's private API and not meant to be exposed. We are "
                  "deprecating it and it will be removed in a future version of PyTorch.", FutureWarning, stacklevel=2)
    if grad_out != 1.0:
        raise ValueError("Expected grad_out to be 1.0. get_analytical_jacobian no longer supports values of grad_out "
                         "!= 1.0.")
    wanted = [one for one in _as_tuple(inputs) if isinstance(one, Tensor) and one.requires_grad]
    first, second = _analytical(output, wanted), _analytical(output, wanted)
    again = all(np.allclose(a, b, 0, nondet_tol, equal_nan=True) for a, b in zip(first, second))
    return tuple(map(wrap, first)), again, True, True


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare a function's gradients with central differences; True, or an error that shows both.

    With `fast_mode` it compares the change along one vector, and all elements only if that differs.

    >>> import mindtorch_v2 as torch
    >>> torch.autograd.gradcheck(torch.sigmoid, torch.rand(3, dtype=torch.float64, requires_grad=True))
    True
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    given = _as_tuple(inputs)
    try:
        wanted = _checked_inputs(given)
        parts = _parts(func, given)
        limits = (eps, atol, rtol)
        if check_backward_ad:
            _in_mode(fast_mode, _compare_backward_along, _compare_backward, func, given, wanted, bool(masked), parts,
                     limits,
                     nondet_tol, check_grad_dtypes)
            if check_batched_grad:
                _compare_batched(wanted, [part.tensor for part in parts])
            _check_multiplied(func, given, wanted)
            if check_undefined_grad:
                _check_undefined(func, given, wanted)
        if check_forward_ad:
            _in_mode(fast_mode, _compare_forward_along, _compare_forward, func, given, wanted, bool(masked), parts,
                     limits)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _checked_inputs(given: tuple[Any, ...]) -> list[Tensor]:
    """The tensors to differentiate by."""
    wanted = [t for t in given if isinstance(t, Tensor) and t.requires_grad]
    if not wanted:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of them have "
                         "requires_grad=True.")
    for i, tensor in enumerate(given):
        if not (isinstance(tensor, Tensor) and tensor.requires_grad):
            continue
        if tensor.dtype not in (float64, complex128):
            warnings.warn(f"Input #{i} requires gradient and is not a double precision floating point or complex. This "
                          "check will likely fail if all the inputs are not of double precision floating point or "
                          "complex. ", UserWarning, stacklevel=3)
        if not tensor.is_sparse and any(s == 0 and n > 1 for s, n in zip(tensor.stride(), tensor.shape)):
            raise RuntimeError(f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that "
                               "are non-overlapping to be able to compute the numerical gradients correctly. You "
                               "should call .contiguous on the input before passing it to gradcheck.")
        if not tensor.is_leaf:
            tensor.retain_grad()
    return wanted


def _compare_backward(func: Callable[..., Any], given: tuple[Any, ...], wanted: list[Tensor], parts: list[_Part],
                      limits: tuple[float, float, float], nondet_tol: float, check_dtypes: bool) -> None:
    eps, atol, rtol = limits
    outputs = [part.tensor for part in parts]
    if not any(o.requires_grad for o in outputs):
        for tensor in wanted:
            if any(np.any(matrix) for matrix in _numerical(func, given, tensor, eps)):
                raise GradcheckError("Numerical gradient for function expected to be zero")
        return
    analytical = [_analytical(o, wanted) if o.requires_grad else None for o in outputs]
    again = [_analytical(o, wanted) if o.requires_grad else None for o in outputs]
    for first, second in zip(analytical, again):
        for a, b in zip(first or (), second or ()):
            if not np.allclose(a, b, 0, nondet_tol, equal_nan=True):
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                    "gives different values, although analytical gradient matches numerical gradient. The tolerance "
                    f"for nondeterminism was {nondet_tol}.")
    for i, tensor in enumerate(wanted):
        if check_dtypes:
            _check_dtypes(outputs, tensor)
        numerical = _numerical(func, given, tensor, eps)
        found = [n * 0 if a is None else a[i] for a, n in zip(analytical, numerical)]
        _compare(found, numerical, i, atol, rtol, "Jacobian mismatch", parts)


def _compare_forward(func: Callable[..., Any], given: tuple[Any, ...], wanted: list[Tensor], parts: list[_Part],
                     limits: tuple[float, float, float]) -> None:
    eps, atol, rtol = limits
    for i, tensor in enumerate(wanted):
        _compare(_by_forward_mode(func, given, tensor), _numerical(func, given, tensor, eps), i, atol, rtol,
                 "Jacobian computed with forward mode mismatch", parts)


# -- fast mode: one vector for each input and each output in place of all elements -------------------------------------


def _in_mode(fast: bool, along: Callable[..., None], whole: Callable[..., None], func: Any, given: Any,
             wanted: list[Tensor], masked: bool, parts: list[_Part], *more: Any) -> None:
    """Compare along vectors if requested and possible; if they differ, comparing all elements gives a clearer error."""
    if any(t.layout is not strided for t in wanted):
        if not masked:  # elements that are not stored count too
            full = {id(t): filled(t) for t in wanted if t.layout is not strided}
            given = tuple(full.get(id(t), t) for t in given)
            wanted = [full.get(id(t), t) for t in wanted]
            parts = _parts(func, given)
        whole(func, given, wanted, parts, *more)
        return
    if not fast:
        whole(func, given, wanted, parts, *more)
        return
    try:
        along(func, given, wanted, parts, *more)
    except GradcheckError:
        whole(func, given, wanted, parts, *more)
        raise


def _direction(like: Tensor, number: int) -> np.ndarray:
    """A vector of length 1 for an input or an output, always the same; all positive, so that signs do not cancel."""
    made = np.random.default_rng(number).uniform(size=like._a.shape)
    return np.asarray(made / (np.linalg.norm(made) or 1), like._a.dtype)


def _changes_along(func: Callable[..., Any], given: tuple[Any, ...], which: Tensor, u: np.ndarray,
                   eps: float) -> list[np.ndarray]:
    """Central differences of each output along a vector; those along its imaginary multiple are the imaginary part."""
    kept = _values(which)

    def put(values: np.ndarray) -> None:
        if type(which._a) is HollowArray:
            aten.copy_(aten.detach(which), wrap(values))
        else:
            copy_array(which._a, values)

    made: list[Any] = []
    for step in (1, 1j) if which.dtype.is_complex else (1,):
        put(np.asarray(kept + step * eps * u))
        above = _contents(func, given)
        put(np.asarray(kept - step * eps * u))
        below = _contents(func, given)
        found = [step * change / (2 * eps) for change in _differences(above, below)]
        made = [m + f for m, f in zip(made, found)] if made else found
    put(kept)
    return made


def _gradients_along(output: Tensor, wanted: list[Tensor], v: np.ndarray, us: list[np.ndarray]) -> list[Any]:
    """For a vector of the output, each input's gradient times the input's vector."""
    found = grad(output, wanted, wrap(placed(v, output.device)), retain_graph=True, allow_unused=True)
    dense = [None if one is None else _values(one) for one in found]
    return [0.0 if one is None else (one * u.real).sum() for one, u in zip(dense, us)]


def _compare_backward_along(func: Callable[..., Any], given: tuple[Any, ...], wanted: list[Tensor], parts: list[_Part],
                            limits: tuple[float, float, float], nondet_tol: float, check_dtypes: bool) -> None:
    eps, atol, rtol = limits
    us = [_direction(t, i) for i, t in enumerate(wanted)]
    vs = [_direction(part.tensor, 1000 + k) for k, part in enumerate(parts)]
    changes = [_changes_along(func, given, t, u, eps) for t, u in zip(wanted, us)]
    for k, part in enumerate(parts):
        first, again = [_gradients_along(part.tensor, wanted, vs[k], us) if part.tensor.requires_grad
                        else [0.0] * len(wanted) for _ in range(2)]
        if not np.allclose(first, again, 0, nondet_tol, equal_nan=True):
            raise GradcheckError("Backward is not reentrant: a second backward of the same gives other values")
        for i, tensor in enumerate(wanted):
            if check_dtypes:
                _check_dtypes([part.tensor], tensor)
            _compare_along(first[i], changes[i][k], us[i], vs[k], part, i, atol, rtol)


def _compare_forward_along(func: Callable[..., Any], given: tuple[Any, ...], wanted: list[Tensor], parts: list[_Part],
                           limits: tuple[float, float, float]) -> None:
    eps, atol, rtol = limits
    vs = [_direction(part.tensor, 1000 + k) for k, part in enumerate(parts)]
    for i, tensor in enumerate(wanted):
        u = _direction(tensor, i)
        tangents = _tangents(func, given, tensor, wrap(placed(u, tensor.device)))
        for part, v, tangent, change in zip(parts, vs, tangents, _changes_along(func, given, tensor, u, eps)):
            _compare_along((v.reshape(-1) * tangent).sum(), change, u, v, part, i, atol, rtol)


def _compare_along(found: Any, change: np.ndarray, u: np.ndarray, v: np.ndarray, part: _Part, i: int, atol: float,
                   rtol: float) -> None:
    """Compare one number of each side. Its allowed error is that of all elements, each times its weights."""
    measured = (v.reshape(-1) * change).sum()
    if not np.allclose(found, measured, rtol, atol * float(u.real.sum()) * float(v.sum()), equal_nan=True):
        raise GradcheckError(f"{part.about}Jacobian mismatch in fast mode for output {part.number} with respect to "
                             f"input {i},\nnumerical:{measured}\nanalytical:{found}\n")


def _check_dtypes(outputs: list[Tensor], tensor: Tensor) -> None:
    for output in outputs:
        if output.requires_grad:
            found = grad(output, tensor, aten.ones_like(output), retain_graph=True, allow_unused=True)[0]
            if found is not None and found.dtype is not tensor.dtype:
                raise GradcheckError(f"Gradient has dtype mismatch: the gradient is {found.dtype}, the input "
                                     f"{tensor.dtype}")


BATCHED = "gradcheck or gradgradcheck failed while testing batched gradient computation"


def _compare_batched(wanted: list[Tensor], outputs: list[Tensor]) -> None:
    """Check that gradients of a batch of output gradients are those of its members."""
    for j, output in enumerate(outputs):
        if not output.requires_grad or not output._a.size:
            continue
        seeds = [aten.randn(output.shape, dtype=output.dtype, device=output.device) for _ in range(2)]
        try:
            single = [grad(output, wanted, seed, retain_graph=True, allow_unused=True) for seed in seeds]
            whole = grad(output, wanted, aten.stack(seeds), retain_graph=True, allow_unused=True, is_grads_batched=True)
        except RuntimeError as error:
            raise GradcheckError(f"{BATCHED}: {error}") from error
        for i, together in enumerate(whole):
            if together is None:
                continue
            if single[0][i].is_sparse or wanted[i].is_sparse:
                raise GradcheckError(f"{BATCHED}: the gradient of input {i} is sparse, and a batch of those cannot be "
                                     "computed at once")
            if not np.allclose(_values(together), np.stack([_values(one[i]) for one in single])):
                raise GradcheckError(f"{BATCHED}: for output {j} and input {i} the gradients of a batch are not those "
                                     "of its members")


def _differentiable(func: Callable[..., Any], given: tuple[Any, ...]) -> list[Tensor]:
    return [one for one in _results(func, given) if one.requires_grad]


def _check_multiplied(func: Callable[..., Any], given: tuple[Any, ...], wanted: list[Tensor]) -> None:
    """Check that gradients are multiples of incoming ones: zeros give zeros."""
    outputs = _differentiable(func, given)
    if not outputs:
        return
    found = grad(outputs, wanted, [aten.zeros_like(one) for one in outputs], allow_unused=True)
    for one, tensor in zip(found, wanted):
        if one is None:
            continue
        if one.layout is not tensor.layout and one.layout is not strided:
            raise GradcheckError(f"grad is incorrect layout ({one.layout} is not {tensor.layout})")
        if one._a.shape != tensor._a.shape:
            raise GradcheckError("grad is incorrect size")
        if np.any(_values(one)):
            raise GradcheckError("backward not multiplied by grad_output")


def _check_undefined(func: Callable[..., Any], given: tuple[Any, ...], wanted: list[Tensor]) -> None:
    """Check a backward without incoming gradients: for all outputs, and for each of several."""
    count = len(_differentiable(func, given))
    if not count:
        return
    for missing in [set(range(count)), *([{i} for i in range(count)] if count > 1 else [])]:
        outputs = _differentiable(func, given)
        ends = [UndefinedGrad()(one) if i in missing else one for i, one in enumerate(outputs)]
        try:
            found = grad(ends, wanted, [aten.zeros_like(one) for one in ends], allow_unused=True)
        except RuntimeError as error:
            raise GradcheckError("Expected backward function to handle undefined output grads. Please look at \"Notes "
                                 "about undefined output gradients\" in \"tools/autograd/derivatives.yaml\"") from error
        if any(one is not None and np.any(_values(one)) for one in found):
            raise GradcheckError("Expected all input grads to be undefined or zero when all output grads are undefined "
                                 "or zero. Please look at \"Notes about undefined output gradients\" in "
                                 "\"tools/autograd/derivatives.yaml\"")


def _compare(found: list[np.ndarray], numerical: list[np.ndarray], i: int, atol: float, rtol: float,
             label: str, parts: list[_Part]) -> None:
    for part, analytical, measured in zip(parts, found, numerical):
        if analytical.shape == measured.shape and np.allclose(analytical, measured, rtol, atol, equal_nan=True):
            continue
        raise GradcheckError(f"{part.about}{label} for output {part.number} with respect to input {i},\nnumerical:"
                             f"{wrap(np.asarray(measured))}\nanalytical:{wrap(np.asarray(analytical))}\n")


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """`gradcheck` of the gradient."""
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    given = _as_tuple(inputs)

    def differentiable(arguments: tuple[Any, ...]) -> list[Tensor]:
        return [o for o in _as_tuple(func(*arguments)) if isinstance(o, Tensor) and o.requires_grad]

    if grad_outputs is None:
        seeds = [aten.randn(o.shape, dtype=float64 if not (o.dtype.is_floating_point or o.dtype.is_complex)
                            else o.dtype, device=o.device) for o in differentiable(given)]
        if gen_non_contig_grad_outputs:
            seeds = [aten.select(aten.stack([s, s], -1), -1, 0) for s in seeds]
        seeds = [aten.detach(s).requires_grad_() for s in seeds]
    else:
        seeds = list(_as_tuple(grad_outputs))
    count = len(given)

    def first(*both: Any) -> Any:
        # Aliases, so that an input that is returned unchanged has a place in the graph.
        arguments = tuple(aten.view_as(x, x) if isinstance(x, Tensor) and x.requires_grad else x for x in both[:count])
        results = differentiable(arguments)
        wanted = [t for t in arguments if isinstance(t, Tensor) and t.requires_grad]
        return tuple(g for g in grad(results, wanted, both[count:], create_graph=True, allow_unused=True)
                     if g is not None)

    return gradcheck(first, (*given, *seeds), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
                     nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad,
                     check_grad_dtypes=check_grad_dtypes, check_batched_grad=check_batched_grad,
                     check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev, fast_mode=fast_mode,
                     masked=masked)
