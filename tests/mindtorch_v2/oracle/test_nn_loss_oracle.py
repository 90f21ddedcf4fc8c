"""Every loss against PyTorch, with every reduction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

from harness import data, ours, theirs, values  # noqa: E402
from nn_compare import Fixed, classes, compare, signs  # noqa: E402

LOGITS, PROBABILITIES = data(4, 3), data(4, 3, low=0.05, high=0.95, seed=2)
LOSSES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "L1Loss": (lambda t, **k: t.nn.L1Loss(**k), (data(4, 3), data(4, 3, seed=1))),
    "MSELoss": (lambda t, **k: t.nn.MSELoss(**k), (data(4, 3), data(4, 3, seed=1))),
    "SmoothL1Loss": (lambda t, **k: t.nn.SmoothL1Loss(beta=0.7, **k), (data(4, 3), data(4, 3, seed=1))),
    "SmoothL1Loss zero": (lambda t, **k: t.nn.SmoothL1Loss(beta=0.0, **k), (data(4, 3), data(4, 3, seed=1))),
    "HuberLoss": (lambda t, **k: t.nn.HuberLoss(delta=0.7, **k), (data(4, 3), data(4, 3, seed=1))),
    "CrossEntropyLoss": (lambda t, **k: t.nn.CrossEntropyLoss(**k), (LOGITS, classes(4, high=3))),
    "CrossEntropyLoss 3d": (lambda t, **k: t.nn.CrossEntropyLoss(ignore_index=1, **k),
                            (data(4, 3, 2), classes(4, 2, high=3))),
    "CrossEntropyLoss weights": (
        lambda t, **k: t.nn.CrossEntropyLoss(weight=t.tensor([1.0, 2.0, 0.5]), label_smoothing=0.1, **k),
        (LOGITS, classes(4, high=3))),
    "CrossEntropyLoss probabilities": (lambda t, **k: t.nn.CrossEntropyLoss(**k), (LOGITS, PROBABILITIES)),
    "NLLLoss": (lambda t, **k: t.nn.NLLLoss(weight=t.tensor([1.0, 2.0, 0.5]), **k), (LOGITS, classes(4, high=3))),
    "BCELoss": (lambda t, **k: t.nn.BCELoss(**k), (PROBABILITIES, data(4, 3, low=0, high=1))),
    "BCELoss weights": (lambda t, **k: t.nn.BCELoss(weight=t.tensor([1.0, 2.0, 0.5]), **k),
                        (PROBABILITIES, data(4, 3, low=0, high=1))),
    "BCEWithLogitsLoss": (lambda t, **k: t.nn.BCEWithLogitsLoss(pos_weight=t.tensor([1.0, 2.0, 0.5]), **k),
                          (LOGITS, data(4, 3, low=0, high=1))),
    "KLDivLoss": (lambda t, **k: t.nn.KLDivLoss(**k), (LOGITS, PROBABILITIES)),
    "KLDivLoss log": (lambda t, **k: t.nn.KLDivLoss(log_target=True, **k), (LOGITS, data(4, 3, seed=5))),
    "PoissonNLLLoss": (lambda t, **k: t.nn.PoissonNLLLoss(full=True, **k), (LOGITS, data(4, 3, low=0, high=5))),
    "PoissonNLLLoss plain": (lambda t, **k: t.nn.PoissonNLLLoss(log_input=False, **k),
                             (PROBABILITIES, data(4, 3, low=0, high=5))),
    "GaussianNLLLoss": (lambda t, **k: t.nn.GaussianNLLLoss(full=True, **k),
                        (LOGITS, data(4, 3, seed=1), data(4, 3, low=0.1, high=1.0))),
    "HingeEmbeddingLoss": (lambda t, **k: t.nn.HingeEmbeddingLoss(**k), (LOGITS, signs(4, 3))),
    "SoftMarginLoss": (lambda t, **k: t.nn.SoftMarginLoss(**k), (LOGITS, Fixed(signs(4, 3)))),
    "MarginRankingLoss": (lambda t, **k: t.nn.MarginRankingLoss(0.3, **k), (data(4), data(4, seed=1), signs(4))),
    "CosineEmbeddingLoss": (lambda t, **k: t.nn.CosineEmbeddingLoss(0.1, **k), (LOGITS, data(4, 3, seed=1), signs(4))),
    "TripletMarginLoss": (lambda t, **k: t.nn.TripletMarginLoss(swap=True, **k),
                          (LOGITS, data(4, 3, seed=1), data(4, 3, seed=2))),
    "TripletMarginWithDistanceLoss": (
        lambda t, **k: t.nn.TripletMarginWithDistanceLoss(distance_function=t.nn.PairwiseDistance(1.0), swap=True, **k),
        (LOGITS, data(4, 3, seed=1), data(4, 3, seed=2))),
    "MultiLabelSoftMarginLoss": (lambda t, **k: t.nn.MultiLabelSoftMarginLoss(**k),
                                 (LOGITS, data(4, 3, low=0, high=1))),
    "MultiMarginLoss": (lambda t, **k: t.nn.MultiMarginLoss(p=2, **k), (LOGITS, classes(4, high=3))),
    "MultiLabelMarginLoss": (lambda t, **k: t.nn.MultiLabelMarginLoss(**k),
                             (LOGITS, values([[0, -1, 1], [1, 2, -1], [-1, 0, 1], [2, 1, 0]], "int64"))),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_loss(name: str, reduction: str) -> None:
    build, given = LOSSES[name]
    compare(lambda t: build(t, reduction=reduction), *given)


def test_kl_batchmean() -> None:
    compare(lambda t: t.nn.KLDivLoss(reduction="batchmean"), LOGITS, PROBABILITIES)


@pytest.mark.parametrize(("size_average", "reduce"), [(True, None), (False, None), (None, False), (False, True)])
def test_old_reduction_flags(size_average: bool | None, reduce: bool | None) -> None:
    texts = []
    for module in (theirs, ours):
        with pytest.warns(UserWarning, match="size_average and reduce args will be deprecated") as caught:
            loss = module.nn.MSELoss(size_average=size_average, reduce=reduce)
        texts.append((str(caught[0].message), loss.reduction))
        with pytest.warns(UserWarning, match="size_average and reduce args"):
            module.nn.functional.mse_loss(module.ones(2), module.zeros(2), size_average, reduce)
    assert texts[0] == texts[1]
