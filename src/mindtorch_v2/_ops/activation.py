"""Activation functions and the ops of their backwards."""

from __future__ import annotations

import math
from typing import Any

from .._backends.cpu import activation as kernels
from .._dispatch.namespace import aten
from .._dispatch.promotion import pretty, scalar_array
from .._dispatch.registry import choose, declare
from .._tensor import Tensor

SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946


def _zeros(grad: Tensor) -> Any:
    return aten.zeros_like(grad)


# -- made of straight lines ----------------------------------------------------------------------------------------

declare(
    "relu(Tensor self) -> Tensor", cpu=kernels.relu, cpu_inplace=kernels.relu_inplace, meta="same",
    grad={"self": lambda grad, result: aten.threshold_backward(grad, result, 0)},
)
declare(
    "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor", cpu=kernels.threshold, inplace=True, where="f",
    meta="same", grad={"self": lambda grad, self, threshold: aten.threshold_backward(grad, self, threshold)},
)
declare(
    "threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor", cpu=kernels.threshold_backward,
    where="n", meta="same",
    grad={"grad_output": lambda grad, self, threshold: aten.threshold_backward(grad, self, threshold),
          "self": _zeros},
)
declare(
    "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor", cpu=kernels.hardtanh,
    cpu_inplace=kernels.hardtanh_inplace, where="n", meta="same",
    grad={"self": lambda grad, self, min_val, max_val: aten.hardtanh_backward(grad, self, min_val, max_val)},
)
declare(
    "hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor",
    cpu=kernels.hardtanh_backward, where="n", meta="same",
    grad={"grad_output": lambda grad, self, min_val, max_val: aten.hardtanh_backward(grad, self, min_val, max_val),
          "self": _zeros},
)


def _add_relu(self: Tensor, other: Any, alpha: Any) -> Tensor:
    return aten.relu(aten.add(self, other, alpha=alpha))


def _add_relu_(self: Tensor, other: Any, alpha: Any) -> Tensor:
    return aten.relu_(aten.add_(self, other, alpha=alpha))


for _name, _body in (("_add_relu", _add_relu), ("_add_relu_", _add_relu_)):
    for _kind in ("Tensor", "Scalar"):
        declare(f"{_name}.{_kind}(Tensor self, {_kind} other, *, Scalar alpha=1) -> Tensor", composite=_body, where="f")


def _chooser(name: str) -> Any:
    def chosen(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
        form = getattr(aten, f"{name}__{'Tensor' if isinstance(other, Tensor) else 'Scalar'}")
        return form(input, other, alpha=alpha)

    chosen.__name__ = chosen.__qualname__ = name
    chosen.__doc__ = "`relu` of a sum."
    return chosen


choose("_add_relu", where="f")(_chooser("_add_relu"))
choose("_add_relu_", where="f")(_chooser("_add_relu_"))
declare("relu6(Tensor self) -> Tensor", composite=lambda self: aten.hardtanh(self, 0, 6), where="n")
declare("relu6_(Tensor self) -> Tensor", composite=lambda self: aten.hardtanh_(self, 0, 6), where="n")
declare(
    "hardsigmoid(Tensor self) -> Tensor", cpu=kernels.hardsigmoid, inplace=True, where="n", meta="same",
    grad={"self": lambda grad, self: aten.hardsigmoid_backward(grad, self)},
)
declare(
    "hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor", cpu=kernels.hardsigmoid_backward, where="n",
    meta="same",
    grad={"grad_output": lambda grad, self: aten.hardsigmoid_backward(grad, self), "self": _zeros},
)
declare(
    "hardswish(Tensor self) -> Tensor", cpu=kernels.hardswish, cpu_inplace=kernels.hardswish_inplace,
    where="n", meta="same",
    grad={"self": lambda grad, self: aten.hardswish_backward(grad, self)},
)
declare(
    "hardswish_backward(Tensor grad_output, Tensor self) -> Tensor", cpu=kernels.hardswish_backward, where="n",
    meta="same",
    grad={"grad_output": lambda grad, self: aten.hardswish_backward(grad, self),
          "self": lambda grad, grad_output, self: aten.where(
              aten.logical_and(self > -3.0, self < 3.0), grad * grad_output / 3.0, 0.0)},
)
declare(
    "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor", cpu=kernels.leaky_relu, inplace=True, where="n",
    meta="same",
    grad={"self": lambda grad, self, negative_slope: aten.leaky_relu_backward(grad, self, negative_slope, False)},
)
declare(
    "leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor",
    cpu=kernels.leaky_relu_backward, where="n", meta="same",
    grad={"grad_output": lambda grad, self, negative_slope, self_is_result: aten.leaky_relu_backward(
        grad, self, negative_slope, self_is_result), "self": _zeros},
)
# In place, the input is gone; the result tells the same as long as the slope is not negative.
declare(
    "leaky_relu.inplace(Tensor self, Scalar negative_slope=0.01) -> Tensor", cpu=kernels.leaky_relu, inplace=True,
    where="n", node="LeakyReluBackward1",
    grad={"self": lambda grad, result, negative_slope: aten.leaky_relu_backward(grad, result, negative_slope, True)},
)


@choose("leaky_relu_", where="n")
def _leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    return aten.leaky_relu___inplace(input, negative_slope)


def _shrink(name: str, kernel: Any, grad_name: str, where: str) -> None:
    def back(grad: Tensor, self: Tensor, lambd: Any) -> Any:
        return getattr(aten, f"{name}_backward")(grad, self, lambd)

    declare(f"{name}(Tensor self, Scalar lambd=0.5) -> Tensor", cpu=kernel, meta="same", where=where,
            grad={"self": back})
    declare(f"{name}_backward(Tensor {grad_name}, Tensor self, Scalar lambd) -> Tensor", cpu=kernels.shrink_backward,
            where="n", meta="same", grad={grad_name: back, "self": _zeros})


def _hardshrink(a: Any, bound: Any) -> Any:
    # The bound is rounded to the operand's type first, also where the kernel computes in a wider one.
    return kernels.hardshrink(a, bound if a.dtype.itemsize != 2 else float(scalar_array(bound, a.dtype)))


_shrink("hardshrink", _hardshrink, "grad_out", "fm")
_shrink("softshrink", kernels.softshrink, "grad_output", "n")


def _prelu(self: Tensor, weight: Tensor) -> Tensor:
    if self.dtype is not weight.dtype:
        raise RuntimeError("prelu: Type promoting not supported. Got "
                           f"{pretty(self.dtype)} and {pretty(weight.dtype)}")
    if weight._a.size != 1:
        channels = self._a.shape[1] if self.ndim > 1 else 1
        if not self.ndim:
            raise RuntimeError("Not allow zero-dim input tensor.")
        if channels != weight._a.size:
            raise RuntimeError("Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                               f"{weight._a.size} and channel size = {channels}.")
    if weight.ndim > 1:
        raise RuntimeError("prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = "
                           f"{weight.ndim}")
    if weight.ndim != self.ndim:
        weight = aten.reshape(weight, [weight._a.size if dim == 1 else 1 for dim in range(self.ndim)])
    return aten._prelu_kernel(self, weight)


def _prelu_second(given_grads: Any, grad_output: Tensor, self: Tensor, weight: Any) -> Any:
    of_self, of_weight = given_grads
    above = self >= 0
    if of_self is None:
        below = self * of_weight
        return aten.where(above, 0, below), aten.where(above, 0, grad_output * of_weight), None
    through = weight * of_self
    if of_weight is None:
        return aten.where(above, of_self, through), None, aten.where(above, 0, grad_output * of_self)
    return (aten.where(above, of_self, through + self * of_weight), aten.where(above, 0, grad_output * of_weight),
            aten.where(above, 0, grad_output * of_self))


declare("prelu(Tensor self, Tensor weight) -> Tensor", composite=_prelu)
declare(
    "_prelu_kernel(Tensor self, Tensor weight) -> Tensor", cpu=kernels.prelu, where="f", meta="same",
    grad={("self", "weight"): lambda grad, self, weight: aten._prelu_kernel_backward(grad, self, weight)},
)
declare(
    "_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight) -> (Tensor, Tensor)",
    cpu=kernels.prelu_backward, where="n", grad={("grad_output", "self", "weight"): _prelu_second},
)

# -- made of exponentials ------------------------------------------------------------------------------------------

declare(
    "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor", cpu=kernels.elu, inplace=True,
    where="n", meta="same",
    grad={"self": lambda grad, self, alpha, scale, input_scale: aten.elu_backward(
        grad, alpha, scale, input_scale, False, self)},
)


def _elu_second(grad: Tensor, grad_output: Tensor, alpha: Any, scale: Any, input_scale: Any, is_result: bool,
                self_or_result: Any) -> Any:
    change = grad * grad_output * input_scale
    if not is_result:
        change = aten.elu_backward(change, alpha, scale, input_scale, is_result, self_or_result)
    return change * aten.type_as(self_or_result < 0, grad)


declare(
    "elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, "
    "Tensor self_or_result) -> Tensor", cpu=kernels.elu_backward, where="n", meta="same",
    grad={"grad_output": lambda grad, alpha, scale, input_scale, is_result, self_or_result: aten.elu_backward(
        grad, alpha, scale, input_scale, is_result, self_or_result), "self_or_result": _elu_second},
)
declare(
    "elu.inplace(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor", cpu=kernels.elu,
    inplace=True, where="n", node="EluBackward1",
    grad={"self": lambda grad, result, alpha, scale, input_scale: aten.elu_backward(
        grad, alpha, scale, input_scale, True, result)},
)


@choose("elu_", where="n")
def _elu_(input: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    return aten.elu___inplace(input, alpha, scale, input_scale)


declare("selu(Tensor self) -> Tensor", composite=lambda self: aten.elu(self, SELU_ALPHA, SELU_SCALE), where="f")
declare("selu_(Tensor self) -> Tensor", composite=lambda self: aten.elu_(self, SELU_ALPHA, SELU_SCALE), where="f")


def _celu_kernel(a: Any, alpha: float) -> Any:
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return kernels.elu(a, alpha, 1, 1.0 / alpha)


declare(
    "celu(Tensor self, Scalar alpha=1.) -> Tensor", cpu=_celu_kernel, inplace=True, where="f", meta="same",
    grad={"self": lambda grad, self, alpha: aten.elu_backward(grad, alpha, 1, 1.0 / alpha, False, self)},
)
declare(
    "celu.inplace(Tensor self, Scalar alpha=1.) -> Tensor", cpu=_celu_kernel, inplace=True, where="n",
    node="CeluBackward1",
    grad={"self": lambda grad, result, alpha: aten.elu_backward(grad, alpha, 1, 1.0 / alpha, True, result)},
)


@choose("celu_", where="f")
def _celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    return aten.celu___inplace(input, alpha)


def _gelu_curvature(self: Tensor, approximate: str) -> Any:
    """The second derivative of gelu."""
    if approximate == "none":
        return aten.exp(-0.5 * self * self) * (1.0 / math.sqrt(2.0 * math.pi)) * (2 - self * self)
    slope, cubic = kernels.GELU_SLOPE, kernels.GELU_CUBIC
    t = aten.tanh(slope * (self + cubic * self * self * self))
    flat = 1 - t * t
    first = slope * (1 + 3 * cubic * self * self)
    return flat * first + 0.5 * self * flat * (6 * slope * cubic * self - 2 * t * first * first)


declare(
    'gelu(Tensor self, *, str approximate="none") -> Tensor', cpu=kernels.gelu, inplace=True, where="n", meta="same",
    grad={"self": lambda grad, self, approximate: aten.gelu_backward(grad, self, approximate=approximate)},
)
declare(
    'gelu_backward(Tensor grad_output, Tensor self, *, str approximate="none") -> Tensor', cpu=kernels.gelu_backward,
    where="n", meta="same",
    grad={
        "grad_output": lambda grad, self, approximate: aten.gelu_backward(grad, self, approximate=approximate),
        "self": lambda grad, grad_output, self, approximate: grad * grad_output * _gelu_curvature(self, approximate),
    },
)


def _silu_second(grad: Tensor, grad_output: Tensor, self: Tensor) -> Any:
    s = aten.sigmoid(self)
    return grad * grad_output * (s * (1 - s)) * (2 + self * (1 - 2 * s))


declare(
    "silu(Tensor self) -> Tensor", cpu=kernels.silu, inplace=True, where="n", meta="same",
    grad={"self": lambda grad, self: aten.silu_backward(grad, self)},
)
declare(
    "silu_backward(Tensor grad_output, Tensor self) -> Tensor", cpu=kernels.silu_backward, where="n", meta="same",
    grad={"grad_output": lambda grad, self: aten.silu_backward(grad, self), "self": _silu_second},
)


def _mish_second(grad: Tensor, grad_output: Tensor, self: Tensor) -> Any:
    s = aten.sigmoid(self)
    t = aten.tanh(aten.softplus(self))
    flat = 1 - t * t
    return grad * grad_output * (2 * s * flat + self * s * flat * ((1 - s) - 2 * t * s))


declare(
    "mish(Tensor self) -> Tensor", cpu=kernels.mish, inplace=True, where="n", meta="same",
    grad={"self": lambda grad, self: aten.mish_backward(grad, self)},
)
declare(
    "mish_backward(Tensor grad_output, Tensor self) -> Tensor", cpu=kernels.mish_backward, where="n", meta="same",
    grad={"grad_output": lambda grad, self: aten.mish_backward(grad, self), "self": _mish_second},
)


def _softplus_second(grad: Tensor, grad_output: Tensor, self: Tensor, beta: Any, threshold: Any) -> Any:
    s = aten.sigmoid(self * beta)
    return aten.where(self * beta > threshold, 0, grad * grad_output * s * (1 - s) * beta)


declare(
    "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor", cpu=kernels.softplus, where="n", meta="same",
    grad={"self": lambda grad, self, beta, threshold: aten.softplus_backward(grad, self, beta, threshold)},
)
declare(
    "softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor",
    cpu=kernels.softplus_backward, where="n", meta="same",
    grad={"grad_output": lambda grad, self, beta, threshold: aten.softplus_backward(grad, self, beta, threshold),
          "self": _softplus_second},
)


def _log_sigmoid_second(grad: Tensor, grad_output: Tensor, self: Tensor) -> Any:
    s = aten.sigmoid(self)
    return -(grad * grad_output * s * (1 - s))


declare("log_sigmoid(Tensor self) -> Tensor", composite=lambda self: aten.log_sigmoid_forward(self)[0], where="n")
declare(
    "log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)", cpu=kernels.log_sigmoid_forward, where="n",
    differentiable=(0,), node="LogSigmoidBackward0",
    grad={"self": lambda grad, self, result1: aten.log_sigmoid_backward(grad, self, result1)},
)
declare(
    "log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor", cpu=kernels.log_sigmoid_backward,
    where="n", meta="same",
    grad={"grad_output": lambda grad, self, buffer: aten.log_sigmoid_backward(grad, self, buffer),
          "self": _log_sigmoid_second},
)

# -- halves --------------------------------------------------------------------------------------------------------


def _glu_parts(self: Tensor, dim: int) -> tuple[Any, Any, Any]:
    first, second = aten.chunk(self, 2, dim)
    s = aten.sigmoid(second)
    return first, s, s * (1 - s)


def _glu_second_output(grad: Tensor, self: Tensor, dim: int) -> Any:
    first, s, slope = _glu_parts(self, dim)
    low, high = aten.chunk(grad, 2, dim)
    return low * s + high * first * slope


def _glu_second_self(grad: Tensor, grad_output: Tensor, self: Tensor, dim: int) -> Any:
    first, s, slope = _glu_parts(self, dim)
    low, high = aten.chunk(grad, 2, dim)
    scaled = grad_output * slope
    return aten.cat([high * scaled, scaled * (low + high * first * (1 - 2 * s))], dim)


declare("glu(Tensor self, int dim=-1) -> Tensor", cpu=kernels.glu, where="n",
        grad={"self": lambda grad, self, dim: aten.glu_backward(grad, self, dim)})
declare("glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor", cpu=kernels.glu_backward, where="n",
        grad={"grad_output": _glu_second_output, "self": _glu_second_self})

# -- without an op of their own ------------------------------------------------------------------------------------


@choose("softsign", where="n")
def softsign(input: Tensor) -> Tensor:
    """`x / (1 + |x|)`."""
    return aten.div(input, aten.add(aten.abs(input), 1))


@choose("tanhshrink", where="n")
def tanhshrink(input: Tensor) -> Tensor:
    """`x - tanh(x)`."""
    return aten.sub(input, aten.tanh(input))
