"""`torch.special` and the incomplete gamma functions.

PyTorch's oscillating Bessel functions and Airy's function are right to 6 digits only, in float64 too: they are compared
to that, and with exact series beside.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from harness import check, check_error, data, ours, values

EDGES = [0.0, -0.0, 1e-30, 1e-3, 0.5, -0.5, 1.0, -1.0, 2.0, -2.5, 7.25, 24.0, 26.0, -40.0, 300.0, float("nan")]
INFINITE = [float("inf"), float("-inf")]
SMOOTH = ["entr", "erfcx", "log_ndtr", "i0e", "i1e", "modified_bessel_i0", "modified_bessel_i1",
          "modified_bessel_k0", "modified_bessel_k1", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1",
          "spherical_bessel_j0"]
ROUGH = ["airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"]


def call(name):
    return lambda torch, *given: getattr(torch.special, name)(*given)


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_smooth_functions(name, dtype):
    tolerance = 5e-5 if dtype == "float32" else 1e-11
    check(call(name), values(EDGES + INFINITE, dtype), grad=False, tolerance=tolerance)
    # (In float32 the second derivative of log_ndtr overflows there, at slightly different points.)
    check(call(name), data(40, dtype=dtype, low=0.05, high=30.0), tolerance=tolerance,
          second=dtype == "float64" or name != "log_ndtr")
    check(call(name), data(5, 0, dtype=dtype))
    check(call(name), data(dtype=dtype, low=0.1))
    if name != "entr":
        check(call(name), data(6, 7, dtype=dtype, low=-4.0, high=4.0), tolerance=tolerance)


@pytest.mark.parametrize("name", ROUGH)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_of_which_pytorch_has_six_digits(name, dtype):
    check(call(name), values(EDGES + INFINITE, dtype), grad=False, tolerance=5e-6 if name != "bessel_y1" else 2e-5)
    check(call(name), data(60, dtype=dtype, low=-20.0, high=20.0), tolerance=5e-6 if name != "bessel_y1" else 2e-5)


def exact_bessel(order, x):
    """The power series in exact arithmetic."""
    x = Fraction(x)
    total, term, k = Fraction(0), (x / 2) ** order, 0
    while abs(term) > Fraction(1, 10**25):
        total += term
        k += 1
        term = term * -(x * x / 4) / (k * (k + order))
    return float(total)


@pytest.mark.parametrize("order", [0, 1])
def test_bessel_functions_are_exact(order):
    points = np.linspace(-30.0, 30.0, 41)
    got = call(f"bessel_j{order}")(ours, ours.tensor(points)).numpy()
    np.testing.assert_allclose(got, [exact_bessel(order, p) for p in points.tolist()], rtol=0, atol=2e-15)


@pytest.mark.parametrize("points", [(1.0, 5.0, 24.9, 25.1, 60.0)])
def test_bessel_functions_of_the_second_kind_by_their_wronskian(points):
    x = ours.tensor(points, dtype=ours.float64)
    j0, j1, y0, y1 = (call(f"bessel_{n}")(ours, x) for n in ("j0", "j1", "y0", "y1"))
    np.testing.assert_allclose((j1 * y0 - j0 * y1).numpy(), 2 / (np.pi * np.array(points)), rtol=1e-13)


def test_airy_is_exact():
    points = np.array([-9.0, -6.5, -4.1, -3.9, -2.1, 0.0, 1.9, 2.1])
    exact = []
    for point in points.tolist():
        cube, first, second = Fraction(point) ** 3, Fraction(0), Fraction(0)
        one, other = Fraction(1), Fraction(point)
        for k in range(1, 90):
            first, second = first + one, second + other
            one = one * cube / (3 * k * (3 * k - 1))
            other = other * cube / (3 * k * (3 * k + 1))
        start, slope = Fraction("0.35502805388781723926006318600418"), Fraction("0.25881940379280679840518356018920")
        exact.append(float(start * first - slope * second))
    got = ours.special.airy_ai(ours.tensor(points)).numpy()
    np.testing.assert_allclose(got, exact, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", SMOOTH + ROUGH)
def test_integers_become_floats_and_the_rest_is_refused(name):
    if name != "bessel_y1":
        check(call(name), data(5, dtype="int64", low=1, high=4), tolerance=2e-5)
        check(call(name), data(5, dtype="bool"), tolerance=2e-5)
    check_error(call(name), data(3, dtype="complex64"))
    if name in ("entr", "i0e", "i1e"):
        check(call(name), data(9, dtype="float16", low=0.1), grad=name == "entr")
        check(call(name), data(9, dtype="bfloat16", low=0.1), grad=name == "entr")
    else:
        check_error(call(name), data(3, dtype="float16"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal_distribution(dtype):
    tolerance = 2e-5 if dtype == "float32" else 1e-11
    check(call("ndtr"), data(30, dtype=dtype, low=-4, high=4), tolerance=tolerance)
    check(call("ndtri"), data(30, dtype=dtype, low=0.02, high=0.98), tolerance=tolerance, second=dtype == "float64")
    tails = [0.0, 1.0, 0.5, 1e-5, 1e-20, 1 - 1e-6, -0.1, 1.1, float("nan"), 1e-300 if dtype == "float64" else 1e-37]
    check(call("ndtri"), values(tails, dtype), grad=False, tolerance=tolerance)
    check(call("log_ndtr"), values([-40.0, -5.0, -1.0, -0.999, 0.0, 3.0, 9.0], dtype), tolerance=tolerance,
          second=False)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_xlog1py_and_zeta(dtype):
    check(call("xlog1py"), data(4, 5, dtype=dtype), data(5, dtype=dtype, low=-0.9))
    check(call("xlog1py"), values([0.0, 0.0, 0.0, 1.0, 2.0], dtype),
          values([-1.0, float("nan"), -2.0, -1.0, 0.5], dtype), grad=False)
    check(lambda torch, x: torch.special.xlog1py(x, 2), data(5, dtype=dtype))
    check(lambda torch, x: torch.special.xlog1py(2.5, x), data(5, dtype=dtype, low=-0.9))
    check(call("xlog1py"), data(5, dtype="int64", low=0, high=4), data(5, dtype="int64", low=0, high=4))
    check(call("xlog1py"), data(5, dtype="float16"), data(5, dtype="float16", low=-0.5))
    check(call("zeta"), data(20, dtype=dtype, low=1.1, high=12.0), data(20, dtype=dtype, low=0.1, high=30.0),
          grad=False, tolerance=1e-5 if dtype == "float32" else 1e-11)
    check(lambda torch, q: torch.special.zeta(torch.full((6,), 3.0, dtype=q.dtype), q),
          data(6, dtype=dtype, low=0.5, high=4.0), tolerance=1e-4 if dtype == "float32" else 1e-11)
    check(call("zeta"), values([1.0, 0.5, 2.0, 2.0, 3.0, 2.5, float("nan")], dtype),
          values([2.0, 2.0, 0.0, -3.0, -2.5, -2.5, 1.0], dtype), grad=False)
    check_error(call("zeta"), data(2, dtype="float16"), data(2, dtype="float16"))


@pytest.mark.parametrize("name", ["igamma", "igammac"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_incomplete_gamma(name, dtype):
    # (PyTorch's own error is up to 4e-10, see the exact values below.)
    tolerance = 2e-4 if dtype == "float32" else 1e-9
    shape = values(np.geomspace(1e-3, 1e4, 25)[:, None], dtype)
    for factor in (0.01, 0.5, 0.98, 1.0, 1.05, 3.0):
        check(lambda torch, a, factor=factor: getattr(torch, name)(a, a * factor), shape, grad=False,
              tolerance=tolerance)
    check(lambda torch, a, x: getattr(a, name)(x), values([0.0, 1.0, 0.0, 2.0, float("inf"), -1.0, 1.0, float("nan")],
                                                          dtype),
          values([1.0, 0.0, 0.0, float("inf"), 2.0, 1.0, -1.0, 1.0], dtype), grad=False)
    check(lambda torch, x: getattr(torch, name)(torch.tensor([0.5, 2.0, 7.0], dtype=x.dtype), x),
          data(4, 3, dtype=dtype, low=0.2, high=9.0), tolerance=tolerance)
    check(lambda torch, a, x: getattr(a, f"{name}_")(x), data(5, dtype=dtype, low=0.2), data(5, dtype=dtype, low=0.2),
          grad=False, tolerance=tolerance)
    check(lambda torch, a, x: getattr(torch.special, "gammainc" + name[6:])(a, x), data(5, dtype=dtype, low=0.2),
          data(5, dtype=dtype, low=0.2), grad=False, tolerance=tolerance)
    check_error(lambda torch, a, x: getattr(torch, name)(a, x), data(2, dtype="int64"), data(2, dtype="int64"))
    check_error(lambda torch, a, x: getattr(torch, name)(a, x), data(2), data(3))


@pytest.mark.parametrize(("shape", "x"), [(25, 24.5), (100, 98.0), (100, 130.0), (300, 294.0), (3, 0.01)])
def test_incomplete_gamma_is_exact(shape, x):
    with localcontext() as context:
        context.prec = 60
        total = term = Decimal(1)
        for k in range(1, shape):
            term = term * Decimal(x) / k
            total += term
        upper = total * (-Decimal(x)).exp()
        wanted = [float(1 - upper), float(upper)]
    a, at = ours.tensor(float(shape), dtype=ours.float64), ours.tensor(x, dtype=ours.float64)
    np.testing.assert_allclose([ours.igamma(a, at).item(), ours.igammac(a, at).item()], wanted, rtol=1e-13)


def test_incomplete_gamma_of_large_arguments():
    # PyTorch agrees to 10 digits; the two regimes meet at 1e7.
    check(lambda torch, a: torch.igamma(a, a * (1 + 1e-4)), values([9.9e6, 1.01e7, 1e9], "float64"), grad=False,
          tolerance=1e-9)


def test_derivative_by_the_shape_is_refused():
    for name in ("igamma", "igammac"):
        shape = ours.tensor([1.0], requires_grad=True)
        with pytest.raises(NotImplementedError, match=f"the derivative for '{name}: input' is not implemented"):
            getattr(ours, name)(shape, ours.tensor([2.0])).backward()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("p", [1, 2, 5])
def test_multivariate_gamma(dtype, p):
    # (PyTorch's trigamma, the second derivative, is right to 9 digits.)
    tolerance = 5e-5 if dtype == "float32" else 2e-9
    check(lambda torch, x: torch.mvlgamma(x, p), data(3, 4, dtype=dtype, low=2.6, high=9), tolerance=tolerance)
    check(lambda torch, x: torch.special.multigammaln(x, p), data(3, 4, dtype=dtype, low=2.6, high=9),
          tolerance=tolerance)
    check(lambda torch, x: x.mvlgamma_(p), data(3, dtype=dtype, low=2.6, high=9), grad=False, tolerance=tolerance)
    check(lambda torch, x: x.clone().polygamma_(p), data(3, dtype=dtype, low=1, high=9), grad=False,
          tolerance=tolerance)
    check_error(lambda torch, x: torch.mvlgamma(x, 0), data(3))


POLYNOMIALS = ["chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w",
               "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
               "shifted_chebyshev_polynomial_w", "hermite_polynomial_h", "hermite_polynomial_he",
               "laguerre_polynomial_l", "legendre_polynomial_p"]


@pytest.mark.parametrize("name", POLYNOMIALS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_polynomials(name, dtype):
    tolerance = 1e-3 if dtype == "float32" else 1e-10
    inside = (0.02, 0.98) if name.startswith("shifted") else (-0.98, 0.98)
    degrees = values(np.arange(-2.0, 12.0)[:, None], dtype)
    check(call(name), data(9, dtype=dtype, low=inside[0], high=inside[1]), degrees, tolerance=tolerance)
    check(lambda torch, x: getattr(torch.special, name)(x, 3), data(3, 2, dtype=dtype), tolerance=tolerance)
    check(call(name), values([1.0, -1.0, 0.0, 2.0], dtype), values([4.0, 5.0, 2.7, 3.0], dtype), tolerance=tolerance)
    check(call(name), data(4, dtype="int64"), data(4, dtype="int64", low=0, high=4), tolerance=1e-5)
    check_error(call(name), data(4, dtype="float16"), data(4, dtype="float16"))
    check(lambda torch, n: getattr(torch.special, name)(0.25, n), values([0.0, 3.0], dtype), tolerance=tolerance)
    check(lambda torch, x: getattr(torch.special, name)(x=x, n=2), data(3, dtype=dtype), tolerance=tolerance)
    check(lambda torch, x: getattr(torch.special, name)(x, 2, out=torch.empty(3, dtype=x.dtype)), data(3, dtype=dtype),
          grad=False, tolerance=tolerance)


def test_hermite_limits():
    for name in ("hermite_polynomial_h", "hermite_polynomial_he"):
        check(call(name), values([0.5, 0.5]), values([129.0, 10.0]), tolerance=1e-4)
        check(call(name), values([0.5, 0.5], "float64"), values([513.0, 10.0], "float64"), tolerance=1e-10)
