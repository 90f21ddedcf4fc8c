"""Functions of single elements."""

from __future__ import annotations

import math
from typing import Any

from ..._dispatch.dtype_rules import unsupported
from ..._dispatch.namespace import aten
from ..._dispatch.promotion import FLOAT_DTYPES
from ..._dtype import HALF_TYPES, float32, float64
from ..._tensor import Tensor
from . import Kernel, formula

# From this size on, one more than a square is the square.
LARGE = 1e10


def in_float32(function: Kernel) -> Kernel:
    """A function that computes 16-bit numbers in 32 bits, so that they are rounded once."""

    def run(self: Tensor, *rest: Any) -> Tensor:
        if self._a.dtype not in HALF_TYPES:
            return function(self, *rest)
        return function(self.to(float32), *[one.to(float32) if isinstance(one, Tensor) else one for one in rest]
                        ).to(self.dtype)

    return run


def polynomial(x: Tensor, coefficients: list[float]) -> Tensor:
    """A sum of powers, the highest first."""
    made = x * coefficients[0] + coefficients[1]
    for coefficient in coefficients[2:]:
        made = made * x + coefficient
    return made


# -- angles ------------------------------------------------------------------------------------------------------------

# Right within 1e-5 between 0 and 1; what is missing is found from sine and cosine.
ROUGHLY = [0.0208351, -0.0851330, 0.1801410, -0.3302995, 0.9998660]


@formula("atan")
@in_float32
def atan(self: Tensor) -> Tensor:
    """The angle of a tangent: an estimate, corrected by the angle of the small remainder."""
    size = self.abs()
    steep = size > 1
    tangent = aten.where(steep, size.reciprocal(), size)
    angle = tangent * polynomial(tangent * tangent, ROUGHLY)
    sine, cosine = angle.sin(), angle.cos()
    angle = angle + (tangent * cosine - sine) / (cosine + tangent * sine)
    angle = aten.where(steep, math.pi / 2 - angle, angle)
    return aten.where(self < 0, -angle, angle)


@formula("atan2")
@in_float32
def atan2(self: Tensor, other: Any) -> Tensor:
    """The angle of a point, of which the operands are height and width."""
    height, width = self.abs(), other.abs()
    ratio = height / width
    equal = aten.eq(height, width)
    ratio = aten.where(equal, aten.where(height > 0, 1.0, 0.0).to(self.dtype), ratio)  # also of two infinities
    angle = atan(ratio)
    angle = aten.where(signbit(other), math.pi - angle, angle)
    return aten.where(signbit(self), -angle, angle)


@formula("asin")
@in_float32
def asin(self: Tensor) -> Tensor:
    """The angle of a sine."""
    return atan(self / ((1 - self) * (1 + self)).sqrt())


@formula("acos")
@in_float32
def acos(self: Tensor) -> Tensor:
    """The angle of a cosine."""
    return 2 * atan(((1 - self) / (1 + self)).sqrt())


@formula("asinh")
@in_float32
def asinh(self: Tensor) -> Tensor:
    """The inverse of the hyperbolic sine."""
    size = self.abs()
    square = self * self
    near = aten.log1p(size + square / ((square + 1).sqrt() + 1))
    made = aten.where(size > LARGE, size.log() + math.log(2), near)
    return aten.where(self < 0, -made, made)


@formula("acosh")
@in_float32
def acosh(self: Tensor) -> Tensor:
    """The inverse of the hyperbolic cosine."""
    above = self - 1
    near = aten.log1p(above + above.sqrt() * (self + 1).sqrt())
    return aten.where(self > LARGE, self.log() + math.log(2), near)


@formula("atanh")
@in_float32
def atanh(self: Tensor) -> Tensor:
    """The inverse of the hyperbolic tangent."""
    return aten.log1p(2 * self / (1 - self)) * 0.5


@formula("sinc")
@in_float32
def sinc(self: Tensor) -> Tensor:
    """The sine of an angle divided by it; half turns are counted."""
    angle = self * math.pi
    return aten.where(aten.eq(self, 0), 1.0, angle.sin() / angle).to(self.dtype)


@formula("deg2rad")
def deg2rad(self: Tensor) -> Tensor:
    """Degrees as radians."""
    return self * (math.pi / 180)


@formula("rad2deg")
def rad2deg(self: Tensor) -> Tensor:
    """Radians as degrees."""
    return self * (180 / math.pi)


# -- signs and bounds --------------------------------------------------------------------------------------------------


@formula("signbit")
def signbit(self: Tensor) -> Tensor:
    """Whether a number is negative, a zero too."""
    below = self < 0
    return below if not self.is_floating_point() else aten.logical_or(below, self.reciprocal() < 0)


@formula("copysign.Tensor", "copysign.Scalar")
def copysign(self: Tensor, other: Any) -> Tensor:
    """The size of one number with the sign of another."""
    size = self.abs()
    if not isinstance(other, Tensor):
        return -size if math.copysign(1.0, other) < 0 else size
    return aten.where(signbit(other), -size, size)


@formula("heaviside")
def heaviside(self: Tensor, values: Tensor) -> Tensor:
    """0 below zero, 1 above, and what is given at it."""
    return aten.where(aten.eq(self, 0), values, (self > 0).to(self.dtype))


def _number_of_two(better: Kernel) -> Kernel:
    def run(self: Tensor, other: Tensor) -> Tensor:
        made = better(self, other)
        if not made.is_floating_point():
            return made
        return aten.where(aten.isnan(self), other, aten.where(aten.isnan(other), self, made))

    return run


formula("fmax")(_number_of_two(lambda a, b: aten.maximum(a, b)))
formula("fmin")(_number_of_two(lambda a, b: aten.minimum(a, b)))


@formula("clamp.Tensor")
def clamp(self: Tensor, low: Tensor | None, high: Tensor | None) -> Tensor:
    """Bounded by tensors."""
    made = self if low is None else aten.maximum(self, low)
    return made if high is None else aten.minimum(made, high)


@formula("round.decimals")
def round_to(self: Tensor, decimals: int) -> Tensor:
    """Rounded to a decimal place."""
    if not self.is_floating_point() or decimals == 0:
        return self.round()
    scale = 10.0 ** abs(decimals)
    return (self * scale).round() / scale if decimals > 0 else (self / scale).round() * scale


# -- powers of two -----------------------------------------------------------------------------------------------------


@formula("ldexp.Tensor")
def ldexp(self: Tensor, other: Tensor) -> Tensor:
    """A number times a power of two."""
    return self * aten.exp2(other.to(self.dtype))


@formula("logaddexp2")
def logaddexp2(self: Tensor, other: Tensor) -> Tensor:
    """`logaddexp` to the base of two."""
    return aten.logaddexp(self * math.log(2), other * math.log(2)) / math.log(2)


@formula("__lshift__.Tensor", "bitwise_left_shift.Tensor")
def left_shift(self: Tensor, other: Tensor) -> Tensor:
    """Bits moved to higher places; none is left when they go too far."""
    made, too_far = _moved("lshift", self, other, lambda x, factor: x * factor)
    return aten.where(too_far, aten.zeros_like(made), made)


@formula("__rshift__.Tensor", "bitwise_right_shift.Tensor")
def right_shift(self: Tensor, other: Tensor) -> Tensor:
    """Bits moved to lower places; only the sign is left when they go too far."""
    made, too_far = _moved("rshift", self, other, lambda x, factor: aten.div(x, factor, rounding_mode="floor"))
    return aten.where(too_far, aten.where(self < 0, -1, 0).to(made.dtype), made)


def _moved(name: str, self: Tensor, places: Tensor, step: Kernel) -> tuple[Tensor, Tensor]:
    """Elements after steps by a power of two for each bit of a number of places, and which of them go too far.

    The highest power has half the bits of the type, so that it is a number of the type.
    """
    if self._a.dtype in FLOAT_DTYPES:
        raise unsupported(name, self._a.dtype)
    width = self.element_size() * 8
    places = places.to(self.device)  # a number of places is on the host
    made, bit = self, 1
    while bit < width:
        made = aten.where(aten.ne(aten.bitwise_and(places, bit), 0), step(made, 1 << bit), made)
        bit *= 2
    return made, aten.logical_or(places < 0, places >= width)


# -- gamma and error functions -----------------------------------------------------------------------------------------

STEPS = 8  # from here on numbers are large, and series in their reciprocals are used


def _stirling(x: Tensor) -> Tensor:
    """The logarithm of the gamma function of large numbers."""
    inverse = x.reciprocal()
    rest = inverse * polynomial(inverse * inverse, [1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12])
    return (x - 0.5) * x.log() - x + 0.5 * math.log(2 * math.pi) + rest


def _zeta_above_1(k: int) -> float:
    """Riemann's zeta function of a whole number, less 1: a sum, and what follows from the integral for its rest."""
    terms = 100
    rest = terms ** (1 - k) / (k - 1) + terms ** -k / 2 + k * terms ** (-k - 1) / 12
    return math.fsum([n ** -k for n in range(2, terms)] + [rest, -k * (k + 1) * (k + 2) * terms ** (-k - 3) / 720])


EULER = 0.5772156649015329
# The logarithm of the gamma function around 2, the highest power first. It has no constant term.
AROUND_2 = [(-1) ** k * _zeta_above_1(k) / k for k in range(28, 1, -1)] + [1 - EULER, 0.0]


def _near_2(x: Tensor) -> Tensor:
    """The logarithm of the gamma function between 0.5 and `STEPS`: from its value less than 0.5 away from 2.

    Only here is it small, and nothing large is subtracted.
    """
    near, factor = x, aten.ones_like(x)
    for _ in range(STEPS - 2):
        above = near > 2.5
        near = aten.where(above, near - 1, near)
        factor = aten.where(above, factor * near, factor)
    below = near < 1.5
    made = polynomial(aten.where(below, near - 1, near - 2), AROUND_2) + factor.log()
    return aten.where(below, made - aten.log1p(near - 1), made)


@formula("lgamma")
@in_float32
def lgamma(self: Tensor) -> Tensor:
    """The logarithm of the size of the gamma function. Below a half it follows from the other side."""
    low = self < 0.5
    x = aten.where(low, 1 - self, self)
    made = aten.where(x < STEPS, _near_2(x), _stirling(x))
    made = aten.where(aten.isinf(self), math.inf, made)
    distance = self - self.round()  # of tiny numbers nothing is lost
    mirrored = math.log(math.pi) - (distance * math.pi).sin().abs().log() - made
    mirrored = aten.where(aten.eq(distance, 0), math.inf, mirrored)  # at zero and below, whole numbers are poles
    return aten.where(aten.logical_and(low, aten.isfinite(self)), mirrored, made).to(self.dtype)


@formula("digamma")
@in_float32
def digamma(self: Tensor) -> Tensor:
    """The slope of the logarithm of the gamma function."""
    low = self < 0.5
    x = aten.where(low, 1 - self, self)
    small = x < STEPS
    moved = aten.where(small, x + STEPS, x)
    made = aten.zeros_like(x)
    for step in range(STEPS):
        made = made - aten.where(small, (x + step).reciprocal(), 0.0)
    inverse = moved.reciprocal()
    square = inverse * inverse
    series = square * polynomial(square, [-1 / 132, 1 / 240, -1 / 252, 1 / 120, -1 / 12])
    made = made + moved.log() - 0.5 * inverse + series
    distance = self - self.round()
    mirrored = made - math.pi / aten.tan(distance * math.pi)
    whole = aten.logical_and(aten.eq(distance, 0), self < 0)
    mirrored = aten.where(whole, math.nan, mirrored)
    mirrored = aten.where(aten.eq(self, 0), aten.copysign(aten.full_like(self, math.inf), -self), mirrored)
    return aten.where(low, mirrored, made).to(self.dtype)


# Chebyshev coefficients of log(erfcx(x) / t) with t = 2 / (2 + x), between 0 and infinity: the first 11 are right
# within 1e-7, all within 2e-15.
FAR = [-0.6513268598908549, 0.6419697923564901, 0.019476473204185864, -0.009561514786808428, -0.0009465953444822925,
       0.0003668394978528927, 4.252332480690802e-05, -2.0278578112423284e-05, -1.6242900046928389e-06,
       1.3036558356342395e-06, 1.562644165815684e-08, -8.523809609243728e-08, 6.529054419534965e-09,
       5.059343428662339e-09, -9.913642715016318e-10, -2.2736500736785428e-10, 9.646804184999944e-11,
       2.3938414671322186e-12, -6.886048701596956e-12, 8.942854121548116e-13, 3.129822307140239e-13,
       -1.1257562928762674e-13, 3.1401849173675523e-16, 7.039902061623381e-15, -1.5700924586837763e-15]


def _scaled_erfc(size: Tensor) -> Tensor:
    """`erfc(x) * exp(x * x)` of what is not negative, by Clenshaw's recurrence."""
    t = 2 / (size + 2)
    twice = t * 4 - 2
    coefficients = FAR if size.dtype is float64 else FAR[:11]
    last, before = aten.full_like(t, coefficients[-1]), aten.zeros_like(t)
    for coefficient in coefficients[-2:0:-1]:
        last, before = twice * last - before + coefficient, last
    return t * (twice * last * 0.5 - before + coefficients[0]).exp()


@formula("erfc")
@in_float32
def erfc(self: Tensor) -> Tensor:
    """One less the error function, also where that is almost one."""
    size = self.abs()
    tail = _scaled_erfc(size) * (-size * size).exp()
    return aten.where(size < 0.5, 1 - aten.erf(self), aten.where(self < 0, 2 - tail, tail))


def _no_halves(name: str, x: Tensor) -> None:
    if x._a.dtype in HALF_TYPES:
        raise unsupported(f"{name}_cpu", x._a.dtype)


@formula("special_erfcx")
def erfcx(self: Tensor) -> Tensor:
    """`erfc(x) * exp(x * x)`."""
    _no_halves("erfcx", self)
    made = _scaled_erfc(self.abs())
    return aten.where(self < 0, 2 * (self * self).exp() - made, made)


@formula("special_log_ndtr")
def log_ndtr(self: Tensor) -> Tensor:
    """The logarithm of the area below the normal distribution."""
    _no_halves("log_ndtr", self)
    x = self * math.sqrt(0.5)
    low = (_scaled_erfc(x.abs()) * 0.5).log() - x * x
    return aten.where(self < -1, low, (-0.5 * erfc(x)).log1p())


@formula("special_entr")
@in_float32
def entr(self: Tensor) -> Tensor:
    """`-x * log(x)`, which is nothing at zero."""
    made = aten.where(self > 0, -self * self.log(), aten.where(self < 0, -math.inf, 0.0).to(self.dtype))
    return aten.where(aten.ne(self, self), self, made)


# The inverse of the error function by the logarithm of its distance to 1, with a relative error of 1e-6
# (M. Giles, Approximating the erfinv function, 2012).
CENTRE = [2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
          -0.00417768164, 0.246640727, 1.50140941]
TAIL = [-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047,
        1.00167406, 2.83297682]


@formula("erfinv")
@in_float32
def erfinv(self: Tensor) -> Tensor:
    """The inverse of the error function."""
    far = -((1 - self) * (1 + self)).log()
    tail = polynomial(far.sqrt() - 3, TAIL)
    made = self * aten.where(far < 5, polynomial(far - 2.5, CENTRE), tail)
    if self.dtype is float64:
        for _ in range(2):
            made = made - (aten.erf(made) - self) * (made * made).exp() * (math.sqrt(math.pi) / 2)
    return aten.where(aten.eq(self.abs(), 1), self * math.inf, made)


# -- drawn numbers -----------------------------------------------------------------------------------------------------


def _uniform(beside: Tensor, generator: Any) -> Tensor:
    """Numbers above 0 and up to 1."""
    kind = float32 if beside._a.dtype in HALF_TYPES or not beside.is_floating_point() else beside.dtype
    return 1 - aten.empty_like(beside, dtype=kind).uniform_(0, 1, generator=generator)


@formula("log_normal")
def log_normal(self: Tensor, mean: float, std: float, generator: Any) -> Tensor:
    """Numbers whose logarithms are normal."""
    if std <= 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std}")
    return aten.empty_like(self).normal_(mean, std, generator=generator).exp()


@formula("cauchy")
def cauchy(self: Tensor, median: float, sigma: float, generator: Any) -> Tensor:
    """Numbers by Cauchy's law: tangents of angles."""
    return (aten.tan((_uniform(self, generator) - 0.5) * math.pi) * sigma + median).to(self.dtype)


@formula("geometric")
def geometric(self: Tensor, p: float, generator: Any) -> Tensor:
    """How many tries it takes until something of this probability happens."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    return (_uniform(self, generator).log() / math.log1p(-p)).ceil().clamp(min=1).to(self.dtype)


@formula("rrelu_with_noise", "rrelu_with_noise.inplace")
def rrelu(self: Tensor, noise: Tensor, lower: float, upper: float, training: bool, generator: Any) -> Tensor:
    """Negative elements times slopes that are drawn, which `noise` keeps."""
    if not training:
        return aten.leaky_relu(self, (lower + upper) / 2)
    noise.copy_(aten.where(self <= 0, aten.empty_like(self).uniform_(lower, upper, generator=generator), 1.0))
    return self * noise


@formula("rrelu_with_noise_backward")
def rrelu_backward(grad: Tensor, self: Tensor, noise: Tensor, lower: float, upper: float, training: bool,
                   self_is_result: bool) -> Tensor:
    """The gradient times the slopes."""
    if training and upper - lower > 1e-6:
        return grad * noise
    return aten.leaky_relu_backward(grad, self, (lower + upper) / 2, self_is_result)
