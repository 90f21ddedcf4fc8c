"""Losses computed element by element or from their definition, for tests to compare with."""

from __future__ import annotations

import itertools
from typing import Any

from ... import nn
from ..._dispatch.namespace import aten

F = nn.functional


def get_reduction(module: Any) -> str:
    """How a loss is reduced."""
    return str(getattr(module, "reduction", "mean"))


def get_weight(module: Any) -> Any:
    """The weights of a loss's classes, if it has any."""
    return getattr(module, "weight", None)


def _reduced(losses: Any, reduction: str) -> Any:
    return {"none": lambda: losses, "sum": losses.sum, "mean": losses.mean}[reduction]()


def nlllossNd_reference(input: Any, target: Any, weight: Any = None, ignore_index: int = -100,
                        reduction: str = "mean") -> Any:
    """-weight[t] * input[t] at each place whose class counts; the mean is by weight."""
    weights = aten.ones((input.shape[1],), dtype=input.dtype, device=input.device) if weight is None else weight
    counted = target != ignore_index
    classes = aten.where(counted, target, aten.zeros_like(target))
    at = aten.where(counted, weights[classes], aten.zeros_like(weights[classes]))
    losses = -at * input.gather(1, classes.unsqueeze(1)).squeeze(1)
    return losses.sum() / at.sum() if reduction == "mean" else _reduced(losses, reduction)


def nllloss_reference(input: Any, target: Any, weight: Any = None, ignore_index: int = -100,
                      reduction: str = "mean") -> Any:
    """`nlllossNd_reference` for a batch of rows, or a single one."""
    if input.dim() > 1:
        return nlllossNd_reference(input, target, weight, ignore_index, reduction)
    made = nlllossNd_reference(input.unsqueeze(0), target.reshape(1), weight, ignore_index, reduction)
    return made.squeeze(0) if reduction == "none" else made


def cross_entropy_loss_reference(input: Any, target: Any, weight: Any = None, ignore_index: int = -100,
                                 reduction: str = "mean", label_smoothing: float = 0.0) -> Any:
    """The negative log likelihood of softmax; smoothing mixes in the mean over classes."""
    dim = 0 if input.dim() == 1 else 1
    scores = aten.log_softmax(input, dim)
    if target.is_floating_point():
        wanted = target * (1 - label_smoothing) + label_smoothing / input.shape[dim]
        by_class = 1 if weight is None else weight.reshape([-1] + [1] * (input.dim() - dim - 1))
        losses = -(scores * wanted * by_class).sum(dim)
        count = 1 if input.dim() == 1 else input.numel() // input.shape[1]
        return losses.sum() / count if reduction == "mean" else _reduced(losses, reduction)
    plain = nllloss_reference(scores, target, weight, ignore_index, reduction)
    if not label_smoothing:
        return plain
    smooth = F.cross_entropy(input, target, weight, ignore_index=ignore_index, reduction=reduction, label_smoothing=1.0)
    return (1 - label_smoothing) * plain + label_smoothing * smooth


def linear_cross_entropy_loss_reference(input: Any, linear_weight: Any, target: Any, linear_bias: Any = None,
                                        weight: Any = None, reduction: str = "mean", ignore_index: int | None = None,
                                        label_smoothing: float = 0.0, **rest: Any) -> Any:
    """The cross entropy of a product, of which the weight's dimensions but the last are classes and places."""
    scores = aten.tensordot(input, linear_weight, ([-1], [-1]))
    if linear_bias is not None:
        scores = scores + linear_bias
    return cross_entropy_loss_reference(scores, target, weight, -100 if ignore_index is None else ignore_index,
                                        reduction, label_smoothing)


def smoothl1loss_reference(input: Any, target: Any, reduction: str = "mean", beta: float = 1.0) -> Any:
    """Squares up to `beta`, then a line."""
    far = (input - target).abs()
    return _reduced(aten.where(far < beta, 0.5 * far ** 2 / beta, far - 0.5 * beta), reduction)


def huberloss_reference(input: Any, target: Any, reduction: str = "mean", delta: float = 1.0) -> Any:
    """Squares up to `delta`, then a line."""
    far = (input - target).abs()
    return _reduced(aten.where(far <= delta, 0.5 * far ** 2, delta * (far - 0.5 * delta)), reduction)


def kldivloss_reference(input: Any, target: Any, reduction: str = "mean", log_target: bool = False) -> Any:
    """target * (log target - input)."""
    wanted = target.exp() if log_target else target
    logs = target if log_target else aten.where(target > 0, target, aten.ones_like(target)).log()
    losses = wanted * (logs - input)
    if reduction == "batchmean":
        return losses.sum() / input.shape[0]
    return _reduced(losses, reduction)


def multilabelmarginloss_reference(input: Any, target: Any, reduction: str = "mean") -> Any:
    """How far the given classes, those before the first -1, are from being 1 above all others."""
    rows, wanted = (input, target) if input.dim() == 2 else (input.unsqueeze(0), target.unsqueeze(0))
    losses = []
    for row, classes in zip(rows, wanted):
        given = list(itertools.takewhile(lambda one: one >= 0, classes.tolist()))
        losses.append(sum(((1 - row[yes] + row[no]).clamp(min=0) for yes in given for no in range(len(row))
                           if no not in given), row.sum() * 0) / len(row))
    made = aten.stack(losses)
    return _reduced(made if input.dim() == 2 else made[0], reduction)


def hingeembeddingloss_reference(input: Any, target: Any, margin: float = 1.0, reduction: str = "mean") -> Any:
    """The input where the target is 1, what is missing to the margin where it is -1."""
    return _reduced(aten.where(target == 1, input, (margin - input).clamp(min=0)), reduction)


def softmarginloss_reference(input: Any, target: Any, reduction: str = "mean") -> Any:
    """log(1 + exp(-y x))."""
    return _reduced((1 + (-input * target).exp()).log(), reduction)


def multimarginloss_reference(input: Any, target: Any, p: int = 1, margin: float = 1, weight: Any = None,
                              reduction: str = "mean") -> Any:
    """How far the given class is from being a margin above each other class."""
    rows, wanted = (input, target) if input.dim() == 2 else (input.unsqueeze(0), target.reshape(1))
    losses = []
    for row, right in zip(rows, wanted.tolist()):
        by_class = 1 if weight is None else weight[right]
        losses.append(sum(by_class * (margin - row[right] + row[other]).clamp(min=0) ** p
                          for other in range(len(row)) if other != right) / len(row))
    made = aten.stack(losses)
    return _reduced(made.reshape(target.shape), reduction)


def cosineembeddingloss_reference(input1: Any, input2: Any, target: Any, margin: float = 0,
                                  reduction: str = "mean") -> Any:
    """1 - cos for pairs that belong together, what cos has above the margin for others."""
    cos = (input1 * input2).sum(-1) / ((input1 ** 2).sum(-1) * (input2 ** 2).sum(-1)).sqrt()
    return _reduced(aten.where(target == 1, 1 - cos, (cos - margin).clamp(min=0)), reduction)


def tripletmarginloss_reference(anchor: Any, positive: Any, negative: Any, margin: float = 1.0, p: int = 2,
                                eps: float = 1e-6, swap: bool = False, reduction: str = "mean") -> Any:
    """How much nearer than a margin the negative is, compared with the positive."""
    near, far = F.pairwise_distance(anchor, positive, p, eps), F.pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = aten.minimum(far, F.pairwise_distance(positive, negative, p, eps))
    return _reduced((margin + near - far).clamp(min=0), reduction)


def marginrankingloss_reference(input1: Any, input2: Any, target: Any, margin: float = 0,
                                reduction: str = "mean") -> Any:
    """What the first lacks to be ranked as the target says, by a margin."""
    return _reduced((-target * (input1 - input2) + margin).clamp(min=0), reduction)


def ctcloss_reference(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0,
                      reduction: str = "mean") -> Any:
    """The sum over all paths that collapse to the target, by the forward recursion."""
    input_lengths, target_lengths = ([int(one) for one in lengths] for lengths in (input_lengths, target_lengths))
    starts = [0, *itertools.accumulate(target_lengths)]
    losses = []
    for number, (steps, length) in enumerate(zip(input_lengths, target_lengths)):
        row = targets[number, :length] if targets.dim() == 2 else targets[starts[number]:starts[number] + length]
        labels = [blank]
        for one in row.tolist():
            labels += [one, blank]
        scores = log_probs[:, number].double()
        none = aten.full_like(scores[0, 0], -float("inf"))
        ways = [scores[0, label] if place < 2 else none for place, label in enumerate(labels)]
        for step in range(1, steps):
            before = ways
            ways = []
            for place, label in enumerate(labels):
                sources = [before[place]] + ([before[place - 1]] if place else [])
                if place > 1 and label not in (blank, labels[place - 2]):
                    sources.append(before[place - 2])
                ways.append(aten.logsumexp(aten.stack(sources), 0) + scores[step, label])
        losses.append(-aten.logsumexp(aten.stack(ways[-2:]), 0))
    made = aten.stack(losses).to(log_probs.dtype)
    if reduction == "mean":
        return (made / made.new_tensor([max(1, one) for one in target_lengths])).mean()
    return _reduced(made, reduction)


loss_reference_fns = {
    "KLDivLoss": kldivloss_reference, "NLLLoss": nllloss_reference, "NLLLossNd": nlllossNd_reference,
    "SmoothL1Loss": smoothl1loss_reference, "HuberLoss": huberloss_reference,
    "MultiLabelMarginLoss": multilabelmarginloss_reference, "HingeEmbeddingLoss": hingeembeddingloss_reference,
    "SoftMarginLoss": softmarginloss_reference, "MultiMarginLoss": multimarginloss_reference,
    "CosineEmbeddingLoss": cosineembeddingloss_reference, "TripletMarginLoss": tripletmarginloss_reference,
    "MarginRankingLoss": marginrankingloss_reference, "CTCLoss": ctcloss_reference,
    "CrossEntropyLoss": cross_entropy_loss_reference, "LinearCrossEntropyLoss": linear_cross_entropy_loss_reference,
}
