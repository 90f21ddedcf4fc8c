"""`ExecutionTraceObserver`: the name exists so that programs can ask; recording execution traces is not available."""

from __future__ import annotations

from typing import Any


class ExecutionTraceObserver:
    """Writes PyTorch's execution trace in a later version; using it now raises."""

    def __init__(self) -> None:
        self._registered = False

    @property
    def is_registered(self) -> bool:
        """Whether `register_callback` succeeded: never."""
        return self._registered

    def register_callback(self, output_file_path: str) -> Any:
        """Choose the output file."""
        raise NotImplementedError("ExecutionTraceObserver: execution traces are not recorded by this version; "
                                  "export_chrome_trace writes ops, shapes and nesting")

    def unregister_callback(self) -> None:
        """Undo `register_callback`; nothing was registered."""

    def start(self) -> None:
        """Begin observing."""
        self.register_callback("")

    def stop(self) -> None:
        """End observing; nothing was begun."""

    def cleanup(self) -> None:
        """Release the observer."""

    def get_output_file_path(self) -> str | None:
        """The output file: none."""
        return None


__all__ = ["ExecutionTraceObserver"]
