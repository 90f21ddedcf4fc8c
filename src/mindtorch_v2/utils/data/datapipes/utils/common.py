"""Files for pipes: which there are, their streams, and when these are closed."""

from __future__ import annotations

import fnmatch
import os
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from ..checks import check_callable as _check_unpickable_fn
from ..checks import validate_input_col, validate_pathname_binary_tuple

__all__ = ["StreamWrapper", "_check_unpickable_fn", "get_file_binaries_from_pathnames", "get_file_pathnames_from_root",
           "match_masks", "validate_input_col", "validate_pathname_binary_tuple"]


def match_masks(name: str, masks: str | list[str]) -> bool:
    """Whether a name fits a pattern, or any of several; no pattern fits all names."""
    if not masks:
        return True
    return any(fnmatch.fnmatch(name, mask) for mask in ([masks] if isinstance(masks, str) else masks))


def get_file_pathnames_from_root(root: str, masks: str | list[str], recursive: bool = False, abspath: bool = False,
                                 non_deterministic: bool = False) -> Iterator[str]:
    """The paths of the files in a directory whose names fit, or the root itself if it is a file."""
    def report(error: OSError) -> None:
        warnings.warn(f"{error.filename} : {error.strerror}", stacklevel=3)
        raise error

    if os.path.isfile(root):
        if match_masks(os.path.basename(root), masks):
            yield os.path.abspath(root) if abspath else root
        return
    # (A directory that cannot be read is an error where it is asked for itself, and a warning below it.)
    for directory, below, files in os.walk(root, onerror=report if recursive is False else _warn):
        if abspath:
            directory = os.path.abspath(directory)
        if not non_deterministic:
            files.sort()
            below.sort()
        for name in files:
            if match_masks(name, masks):
                yield os.path.join(directory, name)
        if not recursive:
            return


def _warn(error: OSError) -> None:
    warnings.warn(f"{error.filename} : {error.strerror}", stacklevel=3)


def get_file_binaries_from_pathnames(pathnames: Iterable[str], mode: str,
                                     encoding: str | None = None) -> Iterator[tuple[str, StreamWrapper]]:
    """Each path with a stream of its file."""
    if not isinstance(pathnames, Iterable):
        pathnames = [pathnames]
    if mode in ("b", "t"):
        mode = "r" + mode
    for pathname in pathnames:
        if not isinstance(pathname, str):
            raise TypeError(f"Expected string type for pathname, but got {type(pathname)}")
        yield pathname, StreamWrapper(open(pathname, mode, encoding=encoding))  # noqa: SIM115 (the reader closes it)


class StreamWrapper:
    """A stream that is closed when nobody uses it: it knows the stream that it is a part of, and its own parts."""

    session_streams: ClassVar[dict[Any, int]] = {}
    debug_unclosed_streams: bool = False

    def __init__(self, file_obj: Any, parent_stream: Any = None, name: str | None = None) -> None:
        self.file_obj = file_obj
        self.child_counter = 0
        self.parent_stream = parent_stream
        self.close_on_last_child = False
        self.name = name
        self.closed = False
        if parent_stream is not None:
            if not isinstance(parent_stream, StreamWrapper):
                raise RuntimeError(f"Parent stream should be StreamWrapper, {type(parent_stream)} was given")
            parent_stream.child_counter += 1
        if StreamWrapper.debug_unclosed_streams:
            StreamWrapper.session_streams[self] = 1

    @classmethod
    def close_streams(cls, v: Any, depth: int = 0) -> None:
        """Close all streams in nested dictionaries, lists and tuples."""
        if depth > 10:
            return
        if isinstance(v, StreamWrapper):
            v.close()
        elif isinstance(v, (dict, list, tuple)):
            for one in v.values() if isinstance(v, dict) else v:
                cls.close_streams(one, depth + 1)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["file_obj"], name)

    def close(self, *args: Any, **kwargs: Any) -> None:
        """Close the stream, and the one that it is a part of if that waits for its last part."""
        if self.closed:
            return
        if StreamWrapper.debug_unclosed_streams:
            StreamWrapper.session_streams.pop(self, None)
        parent = getattr(self, "parent_stream", None)
        if parent is not None:
            parent.child_counter -= 1
            if not parent.child_counter and parent.close_on_last_child:
                parent.close()
        if hasattr(self.file_obj, "close"):  # not everything that can be read can be closed
            self.file_obj.close(*args, **kwargs)
        self.closed = True

    def autoclose(self) -> None:
        """Close as soon as no parts are open."""
        self.close_on_last_child = True
        if self.child_counter == 0:
            self.close()

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *dir(type(self)), *dir(self.file_obj)})

    def __del__(self) -> None:
        if not vars(self).get("closed", True):
            self.close()

    def __iter__(self) -> Iterator[Any]:
        yield from self.file_obj

    def __next__(self) -> Any:
        return next(self.file_obj)

    def __repr__(self) -> str:
        return f"StreamWrapper<{self.file_obj!r}>" if self.name is None else (
            f"StreamWrapper<{self.name},{self.file_obj!r}>")

    def __getstate__(self) -> Any:
        return self.file_obj

    def __setstate__(self, obj: Any) -> None:
        self.__init__(obj)  # type: ignore[misc]
