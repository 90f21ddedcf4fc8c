"""`torch.utils.data.datapipes.dataframe`: pipes of data frames are not part of this runtime; the names say so."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["CaptureDataFrame", "DFIterDataPipe", "dataframe_wrapper"]


def _refuse() -> NoReturn:
    raise NotImplementedError("data frames are not part of this runtime's pipes; use map and batch on rows")


class CaptureDataFrame:
    """Operations on a data frame, to be applied to each one later."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse()


class DFIterDataPipe:
    """A stream of data frames."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse()


class _Wrapper:
    """`dataframe_wrapper`: whatever library of data frames there is."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: _refuse()


dataframe_wrapper = _Wrapper()
