"""A softmax for very many classes: frequent ones in the head, rare ones in clusters with smaller projections."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

from ..._device import DeviceLike
from ..._dispatch.namespace import aten
from ..._dtype import DType
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ("output", "loss"))


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities and loss of classes that are sorted by frequency and cut into clusters."""

    def __init__(self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0,
                 head_bias: bool = False, device: DeviceLike = None, dtype: DType | None = None) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (cutoffs != sorted(cutoffs) or min(cutoffs) <= 0 or max(cutoffs) > n_classes - 1
                or len(set(cutoffs)) != len(cutoffs) or any(int(c) != c for c in cutoffs)):
            raise ValueError("cutoffs should be a sequence of unique, positive integers sorted in an increasing order, "
                             "where each value is between 1 and n_classes-1")
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, device=device, dtype=dtype)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            hidden = int(in_features // div_value ** (i + 1))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(Sequential(Linear(in_features, hidden, bias=False, device=device, dtype=dtype),
                                        Linear(hidden, size, bias=False, device=device, dtype=dtype)))

    def reset_parameters(self) -> None:
        """Draw new first values."""
        self.head.reset_parameters()
        for cluster in self.tail:
            for layer in cluster.children():
                layer.reset_parameters()

    def forward(self, input_: Any, target_: Any) -> Any:
        """The log-probability of every target, and minus their mean."""
        if input_.shape[:1] != target_.shape[:1] and target_.dim() > 0:
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if target_.dim() not in (0, 1):
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if input_.dim() != target_.dim() + 1:
            raise RuntimeError(f"{target_.dim()}D target tensor expects {target_.dim() + 1}D input tensors, but found "
                               f"inputs with size {input_.shape}")
        batched = target_.dim() > 0
        input = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        used = 0
        output = input.new_zeros(target.shape)
        places = target.new_empty(target.shape)
        for i, (low, high) in enumerate(zip([0, *self.cutoffs[:-1]], self.cutoffs, strict=True)):
            mask = (target >= low) & (target < high)
            rows = mask.nonzero().squeeze()
            count = rows.numel()
            if count == 0:
                continue
            if i == 0:
                places.index_copy_(0, rows, target[mask])
            else:
                relative = target[mask] - low
                scores = self.tail[i - 1](input.index_select(0, rows))
                places.index_fill_(0, rows, self.shortlist_size + i - 1)
                chosen = aten.log_softmax(scores, 1).gather(1, relative.unsqueeze(1))
                output.index_copy_(0, rows, chosen.squeeze(1))
            used += count
        if used != target.size(0):
            raise RuntimeError(f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                               f"[{target.min().item()}, {target.max().item()}] were found. ")
        head = aten.log_softmax(self.head(input), 1)
        output += head.gather(1, places.unsqueeze(1)).squeeze()
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _get_full_log_prob(self, input: Any, head_output: Any) -> Any:
        """Log-probabilities of all classes from the head's output."""
        head = aten.log_softmax(head_output, 1)
        parts = [head[:, :self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            inside = aten.log_softmax(cluster(input), 1)
            parts.append(inside + head[:, self.shortlist_size + i].unsqueeze(1))
        return aten.cat(parts, 1)

    def log_prob(self, input: Any) -> Any:
        """Log-probabilities of all classes."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Any) -> Any:
        """The most likely class of each row, computing clusters only for rows that need them."""
        head = self.head(input)
        best = aten.argmax(head, 1)
        rare = best >= self.shortlist_size
        if not rare.any():
            return best
        if rare.all():
            return aten.argmax(self._get_full_log_prob(input, head), 1)
        best[rare] = aten.argmax(self._get_full_log_prob(input[rare], head[rare]), 1)
        return best
