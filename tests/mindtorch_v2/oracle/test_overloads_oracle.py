"""Overloads that a profile distinguishes compute what PyTorch's do: numbers beside tensors, sections, factors."""

from __future__ import annotations

import pytest
from harness import check, check_error, data, values

FORMS = {
    "remainder of a number": (lambda t, x: t.remainder(7.5, x), [data(3, 4, low=0.5)], {"grad": False}),
    "remainder of an integer": (lambda t, x: t.remainder(7, x), [data(3, 4, dtype="int32", low=1, high=5)], {}),
    "power of a number": (lambda t, x: t.pow(2.0, x), [data(3, 4)], {}),
    "power of zero": (lambda t, x: 0 ** x, [data(3, 4, low=0.5)], {}),
    "power of a negative number": (lambda t, x: t.pow(-2.0, x), [values([1.0, 2.0, 3.0])], {"second": False}),
    "floor of a quotient": (lambda t, x: 7 // x, [data(3, low=1, dtype="int32", high=4)], {}),
    "shift of a number": (lambda t, x: 1 << x, [data(3, low=0, high=4, dtype="int32")], {}),
    "rsub with alpha": (lambda t, x: t.rsub(x, 2, alpha=3), [data(4, dtype="int64")], {}),
    "copysign of integers": (lambda t, x: t.copysign(x, -1), [data(4, dtype="int64")], {}),
    "round": (lambda t, x: t.special.round(x, decimals=1), [data(3, 4)], {}),
    "zeta": (lambda t, x: t.special.zeta(2.5, x), [data(4, low=0.5)], {"second": False}),
    "xlog1py": (lambda t, x: t.special.xlog1py(x, 2), [data(4, low=0.5)], {}),
    "isin": (lambda t, x: t.isin(x, 1), [data(3, 4, dtype="int64")], {}),
    "bucketize": (lambda t, x: t.bucketize(0.5, x.sort()[0]), [data(5)], {"grad": False}),
    "inverse of a power": (lambda t, x: t.linalg.matrix_power(x, -2), [data(3, 3, dtype="float64")], {}),
    "no power": (lambda t, x: t.linalg.matrix_power(x, 0), [data(3, 3)], {}),
    "sections in a tensor": (lambda t, x: t.tensor_split(x, t.tensor(2)), [data(5, 3)], {}),
    "indices in a tensor": (lambda t, x: t.tensor_split(x, t.tensor([1, 3])), [data(5, 3)], {}),
    "gradient": (lambda t, x: t.gradient(x, spacing=None, dim=1), [data(5, 4)], {}),
    "gradient of order two": (lambda t, x: t.gradient(x, spacing=[2.0, 0.5], edge_order=2), [data(5, 4)], {}),
    "unreduced": (lambda t, x, y: t.kl_div(x, y), [data(3, 4), data(3, 4, low=0.1, seed=1)], {}),
    "reduced": (lambda t, x, y: t.kl_div(x, y, reduction=1), [data(3, 4), data(3, 4, low=0.1, seed=1)], {}),
    "one sample": (lambda t, x: t.nn.functional.multi_margin_loss(x, t.tensor(1)), [data(4)], {"second": False}),
    "one score": (lambda t, x: t.nn.functional.multi_margin_loss(x, t.tensor(0)), [values(1.5)], {"second": False}),
    "squared and weighted": (lambda t, x: t.nn.functional.multi_margin_loss(
        x, t.tensor([1, 0]), p=2, margin=0.5, reduction="none", weight=t.tensor([0.1, 0.2, 0.3])), [data(2, 3)],
        {"second": False}),
    "labels of one sample": (lambda t, x: t.nn.functional.multilabel_margin_loss(x, t.tensor([2, 0, -1])), [data(3)],
                             {"second": False}),
    "labels twice": (lambda t, x: t.nn.functional.multilabel_margin_loss(
        x, t.tensor([[2, 0, -1], [1, 1, -1]]), reduction="none"), [data(2, 3)], {"second": False}),
    "segments by offsets": (lambda t, x: t.segment_reduce(x, "sum", offsets=t.tensor([0, 1, 4])), [data(4)],
                            {"second": False}),
    "polygamma in place": (lambda t, x: (x * 1).polygamma_(1), [data(4, low=0.5)], {"second": False, "nodes": False}),
    "log_prob of a number": (lambda t, x: t.distributions.Gamma(x, x).log_prob(2.0), [data(4, low=0.5)], {}),
    "interpolate": (lambda t, x: t.nn.functional.interpolate(x, scale_factor=1.7, mode="bilinear"),
                    [data(1, 2, 4, 4)], {}),
    "product into an output": (lambda t, x, y: t.matmul(x, y, out=t.empty(0)), [data(2, 3), data(3, 2)],
                               {"grad": False}),
    "cholesky": (lambda t, x: t.cholesky(x @ x.mT + 3 * t.eye(3, dtype=x.dtype), upper=True),
                 [data(3, 3, dtype="float64")], {}),
    "triangular_solve": (lambda t, x, y: t.triangular_solve(x, y, transpose=True),
                         [data(3, 2, dtype="float64"), data(3, 3, dtype="float64", low=0.5)], {"second": False}),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FORMS)
def test_overload(name):
    function, given, options = FORMS[name]
    check(function, *given, **options)


@pytest.mark.parametrize(("function", "given"), [
    (lambda t, x: t.hsplit(x, 2), data(5, 3)),
    (lambda t, x: t.vsplit(x, 2), data(5)),
    (lambda t, x: t.tensor_split(x, 0), data(5)),
    (lambda t, x: t.nn.functional.multi_margin_loss(x, t.tensor([5, 0])), data(2, 3)),
    (lambda t, x: t.linalg.qr(x, "bad"), data(2, 3)),
    (lambda t, x: x.H, data(2, 3, 2)),
], ids=["hsplit", "vsplit", "tensor_split", "multi_margin_loss", "qr", "H"])
def test_refusals(function, given):
    check_error(function, given)
