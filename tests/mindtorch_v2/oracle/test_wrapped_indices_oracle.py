"""What classes and modes see of indices: lists of tensors, also of tensors of their own class."""

from __future__ import annotations

from both import same

import mindtorch_v2.utils._pytree  # noqa: F401  (both are used by their runtime's name)


def wrapper(torch, seen):
    """A class that wraps a tensor and notes the ops on it."""
    tree_map = torch.utils._pytree.tree_map

    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
            made.inner = inner
            return made

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            seen.append((str(func), [type(one).__name__ for one in args]))
            plain = tree_map(lambda one: one.inner if isinstance(one, Wrapper) else one, (args, kwargs or {}))
            return tree_map(lambda one: cls(one) if isinstance(one, torch.Tensor) else one,
                            func(*plain[0], **plain[1]))

    return Wrapper


def test_indices_of_a_wrapping_class():
    def program(torch):
        seen = []
        kind = wrapper(torch, seen)
        x, index = torch.arange(24.0).reshape(2, 3, 4), torch.tensor([0, 1])
        wrapped, places = kind(x), kind(index)
        found = [wrapped[places], wrapped[:, places], x[places], torch.ops.aten.index.Tensor(wrapped, [None, places]),
                 wrapped[:, index]]
        wrapped[places] = 1.0
        wrapped[:, places] = kind(torch.tensor(2.0))
        wrapped.index_put_((places,), kind(torch.tensor(5.0)))
        return [one.inner for one in found], wrapped.inner, seen

    same(program)
