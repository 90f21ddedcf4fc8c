"""Look-up of vectors by number."""

from __future__ import annotations

from ..._autograd.grad_mode import no_grad
from ..._dispatch.namespace import aten
from ..._tensor import Tensor


def checked_padding_index(padding_idx: int | None, rows: int) -> int | None:
    """The padding row counted from the start."""
    if padding_idx is None:
        return None
    if not -rows <= padding_idx < rows and padding_idx != 0:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return padding_idx + rows if padding_idx < 0 else padding_idx


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
              norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    """The rows of `weight` that `input` names; the padding row gets no gradient.

    >>> import mindtorch_v2 as torch
    >>> torch.nn.functional.embedding(torch.tensor([1, 0]), torch.eye(2))
    tensor([[0., 1.],
            [1., 0.]])
    """
    padding = checked_padding_index(padding_idx, weight._a.shape[0])
    if max_norm is not None:
        input = aten.contiguous(input)
        with no_grad():
            aten.embedding_renorm_(aten.detach(weight), input, max_norm, norm_type)
    return aten.embedding(weight, input, -1 if padding is None else padding, scale_grad_by_freq, sparse)
