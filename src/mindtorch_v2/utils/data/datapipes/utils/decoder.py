"""What a file's bytes stand for, by the ending of its name."""

from __future__ import annotations

import importlib
import io
import json
import os.path
import pickle
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from .common import StreamWrapper

__all__ = ["Decoder", "ImageHandler", "MatHandler", "audiohandler", "basichandlers", "extension_extract_fn",
           "handle_extension", "imagehandler", "mathandler", "videohandler"]

_TEXTS, _NUMBERS = ("txt", "text", "transcript"), ("cls", "cls2", "class", "count", "index", "inx", "id")
_IMAGES = ("jpg", "jpeg", "png", "ppm", "pgm", "pbm", "pnm")
_VIDEOS = ("mp4", "ogv", "mjpeg", "avi", "mov", "h264", "mpg", "webm", "wmv")
_SOUNDS = ("flac", "mp3", "sox", "wav", "m4a", "ogg", "wma")


def basichandlers(extension: str, data: Any) -> Any:
    """Texts, numbers, JSON, pickles and checkpoints; None for others."""
    if extension in _TEXTS:
        return data.decode("utf-8")
    if extension in _NUMBERS:
        try:
            return int(data)
        except ValueError:
            return None
    if extension in ("json", "jsn"):
        return json.loads(data)
    if extension in ("pyd", "pickle"):
        return pickle.loads(data)
    if extension == "pt":
        package = importlib.import_module(__name__.partition(".")[0])
        return package.load(io.BytesIO(data))
    return None


def handle_extension(extensions: str, f: Callable[[Any], Any]) -> Callable[[str, Any], Any]:
    """A handler that applies a function to files of these endings; those with dots count more than one part."""
    endings = extensions.lower().split()

    def handle(key: str, data: Any) -> Any:
        parts = key.lower().split(".")
        return f(data) if any(parts[-len(one.split(".")):] == one.split(".") for one in endings) else None

    return handle


class ImageHandler:
    """Images: as arrays, tensors or pictures, grey or in colour, of bytes or of numbers between 0 and 1."""

    KINDS = ("l8", "rgb8", "rgba8", "l", "rgb", "rgba", "torchl8", "torchrgb8", "torchrgba8", "torchl", "torchrgb",
             "torch", "torchrgba", "pill", "pil", "pilrgb", "pilrgba")

    def __init__(self, imagespec: str) -> None:
        if imagespec not in self.KINDS:
            raise AssertionError(f"unknown image specification: {imagespec}")
        self.imagespec = imagespec.lower()

    def __call__(self, extension: str, data: Any) -> Any:
        if extension.lower() not in _IMAGES:
            return None
        try:
            picture = importlib.import_module("PIL.Image")
        except ImportError as error:
            raise ModuleNotFoundError("Package `PIL` is required to be installed for default image decoder. Please use "
                                      "`pip install Pillow` to install the package") from error
        kind = self.imagespec.removeprefix("torch").removeprefix("pil")
        colours = {"l": "L", "": "RGB", "rgb": "RGB", "rgba": "RGBA"}[kind.removesuffix("8")]
        with io.BytesIO(data) as stream:
            image = picture.open(stream)
            image.load()
            image = image.convert(colours)
        if self.imagespec.startswith("pil"):
            return image
        values = np.asarray(image)
        if not kind.endswith("8"):
            values = values.astype("float32") / 255
        if not self.imagespec.startswith("torch"):
            return values
        package = importlib.import_module(__name__.partition(".")[0])
        return package.tensor(values if values.ndim == 2 else values.transpose(2, 0, 1))


def imagehandler(imagespec: str) -> ImageHandler:
    """A handler of images."""
    return ImageHandler(imagespec)


def _from_file(library: str, loading: str, endings: tuple[str, ...], extension: str, data: Any) -> Any:
    """What a library reads from a file with these bytes."""
    if extension not in endings:
        return None
    try:
        module = importlib.import_module(library)
    except ImportError as error:
        raise ModuleNotFoundError(f"Package `{library.partition('.')[0]}` is required to be installed for the default "
                                  "decoder of such files") from error
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, f"file.{extension}")
        with open(path, "wb") as stream:
            stream.write(data)
        return getattr(module, loading)(path)


def videohandler(extension: str, data: Any) -> Any:
    """Videos, read by torchvision."""
    return _from_file("torchvision.io", "read_video", _VIDEOS, extension, data)


def audiohandler(extension: str, data: Any) -> Any:
    """Sounds, read by torchaudio."""
    return _from_file("torchaudio", "load", _SOUNDS, extension, data)


class MatHandler:
    """Files of Matlab, read by SciPy."""

    def __init__(self, **loadmat_kwargs: Any) -> None:
        try:
            self.sio = importlib.import_module("scipy.io")
        except ImportError as error:
            raise ModuleNotFoundError("Package `scipy` is required to be installed for mat file. Please use `pip "
                                      "install scipy` to install the package") from error
        self.loadmat_kwargs = loadmat_kwargs

    def __call__(self, extension: str, data: Any) -> Any:
        if extension != "mat":
            return None
        with io.BytesIO(data) as stream:
            return self.sio.loadmat(stream, **self.loadmat_kwargs)


def mathandler(**loadmat_kwargs: Any) -> MatHandler:
    """A handler of files of Matlab."""
    return MatHandler(**loadmat_kwargs)


def extension_extract_fn(pathname: str) -> str:
    """The last ending of a path."""
    return os.path.splitext(pathname)[1].removeprefix(".")


class Decoder:
    """Decodes each file by the first handler that knows its ending."""

    def __init__(self, *handler: Any, key_fn: Callable[[str], str] = extension_extract_fn) -> None:
        self.handlers = list(handler) if handler else []
        self.key_fn = key_fn

    def add_handler(self, *handler: Any) -> None:
        """Add handlers, tried after the others."""
        self.handlers += handler

    @staticmethod
    def _is_stream_handle(data: Any) -> bool:
        return isinstance(getattr(data, "file_obj", data), (io.BufferedIOBase, io.RawIOBase))

    def decode1(self, key: str, data: Any) -> Any:
        """What one file stands for."""
        if not data:
            return data
        if self._is_stream_handle(data):
            stream, data = data, data.read()
            (stream if isinstance(stream, StreamWrapper) else StreamWrapper(stream)).close()
        for handle in self.handlers:
            found = handle(key, data)
            if found is not None:
                return found
        return data

    def decode(self, data: Any) -> dict[str, Any]:
        """What the files of a sample stand for, by their paths."""
        made: dict[str, Any] = {}
        for key, value in data.items() if isinstance(data, dict) else data:
            if key[0] == "_":
                if isinstance(value, bytes):
                    value = value.decode("utf-8")
                made[key] = value
                continue
            made[key] = self.decode1(self.key_fn(key), value)
        return made

    def __call__(self, data: Any) -> dict[str, Any]:
        return self.decode(data)
