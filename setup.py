"""Builds the optional C twin of the recorder; everything else about the package is in pyproject.toml."""

from __future__ import annotations

from pathlib import Path

from setuptools import Extension, setup

try:
    import numpy
except ImportError:  # an installation without build isolation; the Python twin records
    numpy = None

SOURCES = Path("src/mindtorch_v2/_dispatch/csrc")

native = [] if numpy is None else [Extension(
    "mindtorch_v2._dispatch._native",
    sources=sorted(str(path) for path in SOURCES.glob("*.c")),
    depends=[str(SOURCES / "native.h")],
    include_dirs=[numpy.get_include()],
    extra_compile_args=["-O2", "-fvisibility=hidden"],
    optional=True,  # where it cannot be built, the Python twin records
)]

setup(ext_modules=native)
