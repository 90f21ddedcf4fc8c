"""Streams of files: their paths, their streams, what is in them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sized
from io import IOBase
from typing import Any

from ..checks import validate_pathname_binary_tuple
from ..datapipe import IterDataPipe, functional_datapipe
from ..utils.common import get_file_binaries_from_pathnames, get_file_pathnames_from_root
from ..utils.decoder import Decoder, basichandlers, extension_extract_fn, imagehandler
from .transforming import IterableWrapperIterDataPipe


@functional_datapipe("list_files")
class FileListerIterDataPipe(IterDataPipe):
    """The paths of the files in directories whose names fit a pattern."""

    def __init__(self, root: Any = ".", masks: str | list[str] = "", *, recursive: bool = False, abspath: bool = False,
                 non_deterministic: bool = False, length: int = -1) -> None:
        if isinstance(root, str):
            root = [root]
        self.datapipe = root if isinstance(root, IterDataPipe) else IterableWrapperIterDataPipe(root)
        self.masks, self.recursive, self.abspath = masks, recursive, abspath
        self.non_deterministic, self.length = non_deterministic, length

    def __iter__(self) -> Iterator[str]:
        for path in self.datapipe:
            yield from get_file_pathnames_from_root(path, self.masks, self.recursive, self.abspath,
                                                    self.non_deterministic)

    def __len__(self) -> int:
        if self.length == -1:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return self.length


@functional_datapipe("open_files")
class FileOpenerIterDataPipe(IterDataPipe):
    """Each path with a stream of its file."""

    def __init__(self, datapipe: Iterable[str], mode: str = "r", encoding: str | None = None,
                 length: int = -1) -> None:
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"Invalid mode {mode}")
        if "b" in mode and encoding is not None:
            raise ValueError("binary mode doesn't take an encoding argument")
        self.datapipe, self.mode, self.encoding, self.length = datapipe, mode, encoding, length

    def __iter__(self) -> Iterator[Any]:
        yield from get_file_binaries_from_pathnames(self.datapipe, self.mode, self.encoding)

    def __len__(self) -> int:
        if self.length == -1:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return self.length


@functional_datapipe("read_from_stream")
class StreamReaderIterDataPipe(IterDataPipe):
    """Each path with what is in its stream, in pieces of `chunk` bytes."""

    def __init__(self, datapipe: IterDataPipe, chunk: int | None = None) -> None:
        self.datapipe, self.chunk = datapipe, chunk

    def __iter__(self) -> Iterator[Any]:
        for path, stream in self.datapipe:
            while True:
                piece = stream.read(self.chunk)
                if not piece:
                    stream.close()
                    break
                yield path, piece


@functional_datapipe("routed_decode")
class RoutedDecoderIterDataPipe(IterDataPipe):
    """Each path with what the file stands for, by its ending."""

    def __init__(self, datapipe: Iterable[tuple[str, IOBase]], *handlers: Callable[..., Any],
                 key_fn: Callable[..., Any] = extension_extract_fn) -> None:
        warnings.warn("`RoutedDecoderIterDataPipe()` and its functional API `.routed_decode()` are deprecated since "
                      "1.12 and will be removed in 1.13.\nSee https://github.com/pytorch/data/issues/163 for details.",
                      FutureWarning, stacklevel=2)
        self.datapipe = datapipe
        self.decoder = Decoder(*(handlers or (basichandlers, imagehandler("torch"))), key_fn=key_fn)

    def add_handler(self, *handler: Callable[..., Any]) -> None:
        """Add handlers, tried after the others."""
        self.decoder.add_handler(*handler)

    def __iter__(self) -> Iterator[Any]:
        for sample in self.datapipe:
            validate_pathname_binary_tuple(sample)
            path, stream = sample
            decoded = self.decoder({path: stream})
            yield path, decoded[path]

    def __len__(self) -> int:
        if isinstance(self.datapipe, Sized):
            return len(self.datapipe)
        raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
