"""A network, as it was before a change."""

from __future__ import annotations

from .... import nn

__all__ = ["Net"]


class Net(nn.Module):
    """A layer."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(10, 20)
