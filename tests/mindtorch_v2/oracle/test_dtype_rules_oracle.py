"""Which dtypes ops take: the samples of our own list of ops (`op_db`), in every dtype, on both runtimes.

What PyTorch refuses is refused with an error of the same class, and what it computes has the same dtype and value. The
table of refusals (`_dispatch/dtype_rules.py`) is checked op by op where no sample reaches it.
"""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as ours
from mindtorch_v2.testing._internal import common_methods_invocations as samples
from mindtorch_v2.testing._internal.common_dtype import get_all_dtypes

theirs = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

pytestmark = pytest.mark.filterwarnings("ignore")
DATABASE = [*samples.op_db, *samples.foreach_unary_op_db, *samples.foreach_binary_op_db,
            *samples.foreach_pointwise_op_db, *samples.foreach_reduce_op_db]
# Ties: PyTorch leaves the choice open.
DEVICE = os.environ.get("MINDTORCH_TEST_DEVICE", "cpu")
ORDER = ("topk", "sort", "msort")
# How the NPU says that it lacks a kernel or a dtype.
ON_NPU = re.compile(r"'NPU' backend|the NPU has|; FLOAT|must be of floating types")
HALVES = re.compile("'(Half|BFloat16)'")
TYPES = [kind for kind in get_all_dtypes() if DEVICE != "npu" or not kind.is_complex]


def other(value: Any) -> Any:
    """A tensor of ours as PyTorch's, in containers too."""
    if isinstance(value, ours.Tensor):
        plain = theirs.from_numpy((value.float() if value.dtype is ours.bfloat16 else value).cpu().numpy().copy())
        return plain.bfloat16() if value.dtype is ours.bfloat16 else plain
    if isinstance(value, (list, tuple)):
        return type(value)(other(one) for one in value)
    return {key: other(one) for key, one in value.items()} if isinstance(value, dict) else value


def found(run: Any) -> Any:
    """Dtypes, shapes and contents of what a call returns, or its error."""
    try:
        made = run()
    except Exception as error:
        return error
    return [(str(one.dtype).rpartition(".")[2], tuple(one.shape), one) for one in
            (made if isinstance(made, (list, tuple)) else [made])]


def contents(torch: Any, value: Any) -> np.ndarray:
    wide = torch.complex128 if value.is_complex() else torch.float64
    return np.asarray(value.detach().to(wide).resolve_conj().cpu().numpy())


def check(name: str, mine: Any, expected: Any) -> None:
    if DEVICE == "npu" and isinstance(mine, Exception) and ON_NPU.search(str(mine)):
        return
    if isinstance(expected, Exception):
        if DEVICE == "npu" and not isinstance(mine, Exception) and HALVES.search(str(expected)):
            return  # accelerators compute with halves that the CPU refuses
        assert isinstance(mine, Exception), f"{name}: accepted, PyTorch: {expected!r}"
        assert type(expected).__name__ in [cls.__name__ for cls in type(mine).__mro__], f"{mine!r} for {expected!r}"
        return
    if isinstance(mine, Exception):
        raise AssertionError(f"{name}: PyTorch computes this") from mine
    assert [one[:2] for one in mine] == [one[:2] for one in expected]
    for (kind, _, one), (_, _, wanted) in zip(mine, expected, strict=True):
        near = 2e-2 if kind in ("float16", "bfloat16") else 1e-4
        if not name.startswith(ORDER) or kind != "int64":
            np.testing.assert_allclose(contents(ours, one), contents(theirs, wanted), near, near)


def public(torch: Any, name: str) -> Any:
    for part in name.split("."):
        torch = getattr(torch, part)
    return torch


@pytest.mark.parametrize("op", DATABASE, ids=lambda op: op.formatted_name)
def test_dtypes(op: Any) -> None:
    run = (lambda x, times: x.repeat(times)) if op.name == "repeat" else public(theirs, op.name)
    for kind in TYPES:
        ours.manual_seed(0)
        computed = False
        for sample in op.sample_inputs(DEVICE, kind):
            mine = found(lambda sample=sample: op(sample.input, *sample.args, **sample.kwargs))
            expected = found(lambda sample=sample: run(other(sample.input), *other(sample.args),
                                                       **other(sample.kwargs)))
            check(f"{op.name} of {kind}", mine, expected)
            computed = computed or not isinstance(expected, Exception)
        # PyTorch's own list leaves out some dtypes that PyTorch computes.
        assert computed or kind not in op.dtypes, f"{op.name}: the list has {kind}, which PyTorch refuses"


IMAGE, LINE, BOX = (1, 2, 4, 4), (1, 2, 4), (1, 2, 4, 4, 4)
# Calls whose dtypes the table restricts: the shape of the tensor, the call.
CALLS: dict[str, tuple[tuple[int, ...], Any]] = {
    "adaptive_avg_pool2d": (IMAGE, lambda t, x: t.nn.functional.adaptive_avg_pool2d(x, 2)),
    "adaptive_avg_pool3d": (BOX, lambda t, x: t.nn.functional.adaptive_avg_pool3d(x, 2)),
    "adaptive_max_pool2d": (IMAGE, lambda t, x: t.nn.functional.adaptive_max_pool2d(x, 2)),
    "avg_pool2d": (IMAGE, lambda t, x: t.nn.functional.avg_pool2d(x, 2)),
    "avg_pool3d": (BOX, lambda t, x: t.nn.functional.avg_pool3d(x, 2)),
    "max_pool2d": (IMAGE, lambda t, x: t.nn.functional.max_pool2d(x, 2)),
    "max_pool3d": (BOX, lambda t, x: t.nn.functional.max_pool3d(x, 2)),
    "max_unpool2d": ((1, 1, 1, 1), lambda t, x: t.nn.functional.max_unpool2d(x, t.zeros(1, 1, 1, 1).long(), 2)),
    "batch_norm": (LINE, lambda t, x: t.nn.functional.batch_norm(x, None, None, training=True)),
    "group_norm": (LINE, lambda t, x: t.nn.functional.group_norm(x, 2)),
    "layer_norm": (LINE, lambda t, x: t.nn.functional.layer_norm(x, (4,))),
    "nll_loss": ((2, 3), lambda t, x: t.nn.functional.nll_loss(x, t.tensor([0, 1]))),
    "multi_margin_loss": ((2, 3), lambda t, x: t.nn.functional.multi_margin_loss(x, t.tensor([0, 1]))),
    "grid_sample": (IMAGE, lambda t, x: t.nn.functional.grid_sample(x, t.zeros(1, 2, 2, 2).to(x.dtype))),
    "cross_entropy": ((2, 3), lambda t, x: t.nn.functional.cross_entropy(x, t.tensor([0, 1]))),
    "huber_loss": ((3,), lambda t, x: t.nn.functional.huber_loss(x, x)),
    "smooth_l1_loss": ((3,), lambda t, x: t.nn.functional.smooth_l1_loss(x, x)),
    "kl_div": ((3,), lambda t, x: t.nn.functional.kl_div(x, x)),
    "threshold": ((3,), lambda t, x: t.nn.functional.threshold(x, 1, 2)),
    "unfold": (IMAGE, lambda t, x: t.nn.functional.unfold(x, 2)),
    **{f"pad_{mode}": (LINE, lambda t, x, mode=mode: t.nn.functional.pad(x, (1, 1), mode=mode))
       for mode in ("reflect", "replicate")},
    **{f"interpolate_{mode}": (shape, lambda t, x, mode=mode: t.nn.functional.interpolate(x, scale_factor=2, mode=mode))
       for mode, shape in (("nearest", IMAGE), ("linear", LINE), ("bicubic", IMAGE), ("trilinear", BOX))},
    "searchsorted": ((3,), lambda t, x: t.searchsorted(x, x)),
    "bucketize": ((3,), lambda t, x: t.bucketize(x, x)),
    "isin": ((3,), lambda t, x: t.isin(x, x)),
    "index_reduce": ((3,), lambda t, x: x.index_reduce(0, t.tensor([0]), x[:1], "amax")),
    "scatter_reduce": ((3,), lambda t, x: x.scatter_reduce(0, t.tensor([0]), x[:1], "amin")),
    "unique_consecutive": ((3,), lambda t, x: t.unique_consecutive(x)),
    "round": ((3,), lambda t, x: t.round(x, decimals=1)),
    "logit": ((3,), lambda t, x: t.logit(x, 0.1)),
    "mvlgamma": ((3,), lambda t, x: t.mvlgamma(x + 5 if x.dtype != t.bool else x, 1)),
    "trapezoid": ((3,), lambda t, x: t.trapezoid(x)),
    "addcmul": ((3,), lambda t, x: t.addcmul(x, x, x)),
    "cdist": ((2, 2), lambda t, x: t.cdist(x, x + 1)),
    "cross": ((2, 3), lambda t, x: t.linalg.cross(x, x)),
    "vander": ((3,), lambda t, x: t.linalg.vander(x)),
    **{name: ((2, 2), lambda t, x, name=name: getattr(t.linalg, name)(x)) for name in (
        "inv", "inv_ex", "cholesky_ex", "qr", "svd", "eigvals", "eigvalsh", "lu", "lu_factor", "det")},
    "geqrf": ((2, 2), lambda t, x: t.geqrf(x)),
    "cholesky_inverse": ((2, 2), lambda t, x: t.cholesky_inverse(x)),
    "householder_product": ((2, 2), lambda t, x: t.linalg.householder_product(x, x[0].clone())),
}


@pytest.mark.parametrize("kind", TYPES, ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_refused(name: str, kind: Any) -> None:
    shape, call = CALLS[name]
    size = int(np.prod(shape))
    one = (ours.arange(1, size + 1).reshape(shape) % 4).to(kind)
    if shape == (2, 2):
        one = ours.tensor([[2, 0], [0, 1]]).to(kind)
    mine, expected = found(lambda: call(ours, one)), found(lambda: call(theirs, other(one)))
    # Factors have a sign and an order of their own: only that they exist is compared, and of which dtype.
    if shape == (2, 2) and not isinstance(expected, Exception) and not isinstance(mine, Exception):
        assert [kinds[:2] for kinds in mine] == [kinds[:2] for kinds in expected]
    else:
        check(name, mine, expected)
