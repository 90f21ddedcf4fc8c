"""The ops of a checkpointed call and of its recomputation, side by side, for an error of `checkpoint(debug=True)`."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..testing._internal.logging_tensor import LoggingTensorMode, capture_logs

RULE = "-" * 80
GUIDANCE = (
    "You are seeing this error because you passed `debug=True` to checkpoint and tensors to be saved during the "
    "original forward and differ between those saved during recomputation. This can happen if different operators were "
    "ran in the original forward and in the recomputation.\n\nCompare the two lists of part 3 from the top: at the "
    "first line that differs, the function did something else the second time. Its place is in parts 1 and 2. Ops that "
    "only one list has at its end are those of an early stop.")


class _Noting(LoggingTensorMode):
    """Notes every op, and where it was called."""

    def __init__(self, places: list[str]) -> None:
        super().__init__()
        self.places = places

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.places.append(f"{func}\n" + "".join(traceback.format_stack(limit=25)[:-1]))
        return super().__torch_dispatch__(func, types, args, kwargs)


class _Run:
    """One run of the function."""

    def __init__(self) -> None:
        self.ops: list[str] = []
        self.places: list[str] = []

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note what runs inside, in place of what was noted before."""
        self.places.clear()
        with capture_logs(is_mode=True) as self.ops, _Noting(self.places):
            yield


class _Each:
    """A context that may be entered again."""

    def __init__(self, run: _Run) -> None:
        self.run = run

    def __enter__(self) -> None:
        self.inside = self.run.noted()
        self.inside.__enter__()

    def __exit__(self, *exc: Any) -> Any:
        return self.inside.__exit__(*exc)


class CheckpointLog:
    """Both runs of a checkpointed function."""

    def __init__(self) -> None:
        self.forward, self.again = _Run(), _Run()

    def contexts(self) -> tuple[Any, Any]:
        """For the forward pass and for the recomputation, which may run more than once."""
        return self.forward.noted(), _Each(self.again)

    def text(self) -> str:
        """Both runs, for the reader to compare."""
        parts = (("1. Stack traces of the operators that ran in the original forward", self.forward.places),
                 ("2. Stack traces of the operators that ran during recomputation", self.again.places),
                 ("3. Log of operators in the original forward and recomputation",
                  ["Operations executed during the original forward:", *self.forward.ops,
                   "\nOperations executed during recomputation:", *self.again.ops]))
        shown = "\n".join(f"{RULE}\n{title}\n{RULE}\n" + "\n".join(lines) + "\n" for title, lines in parts)
        return (" An error happened while unpacking tensors; dumping logs of latest computation\nbecause you passed "
                "`debug=True` to `torch.utils.checkpoint.checkpoint()`.\nScroll all the way down for guidance on how "
                f"to navigate these logs.\n\n{shown}\n{RULE}\nERROR: Detected non-determinism while running activation "
                f"checkpointing\n{RULE}\n{GUIDANCE}\n")
