"""Builds the optional C parts: recorder, backward pass, kernels, reader of Chrome traces, launcher of the NPU's work;
all else is in pyproject.toml.
"""

from __future__ import annotations

from pathlib import Path

from setuptools import Extension, setup

try:
    import numpy
except ImportError:  # an installation without build isolation; the Python twin records
    numpy = None

SOURCES = Path("src/mindtorch_v2/_native/recorder")

native = [] if numpy is None else [Extension(
    "mindtorch_v2._native._recorder",
    sources=sorted(str(path) for path in SOURCES.glob("*.c")),
    depends=sorted(str(path) for path in SOURCES.glob("*.h")),
    include_dirs=[numpy.get_include()],
    extra_compile_args=["-O2", "-fvisibility=hidden"],
    optional=True,  # where it cannot be built, the Python twin records
)]

ENGINE = Path("src/mindtorch_v2/_native/engine")
engine = [] if numpy is None else [Extension(
    "mindtorch_v2._autograd._walk",
    sources=sorted(str(path) for path in ENGINE.glob("*.c")),
    depends=sorted(str(path) for path in ENGINE.glob("*.h")),
    include_dirs=[numpy.get_include()],
    extra_compile_args=["-O2", "-fvisibility=hidden"],
    optional=True,  # where it cannot be built, the Python twin walks
)]

reader = Extension(
    "mtprof.store._kineto_scan",
    sources=["src/mtprof/store/csrc/kineto_scan.c"],
    extra_compile_args=["-O2", "-fvisibility=hidden"],
    optional=True,  # where it cannot be built, the Python twin reads
)

KERNELS = Path("src/mindtorch_v2/_native/kernels")
kernels = [] if numpy is None else [Extension(
    "mindtorch_v2._backends.cpu._kernels",
    sources=sorted(str(path) for path in KERNELS.glob("*.c")),
    depends=sorted(str(path) for path in KERNELS.glob("*.h")),
    include_dirs=[numpy.get_include()],
    # No flag for a processor: each level's file asks for the instructions it needs; the best is chosen at import.
    extra_compile_args=["-std=gnu11", "-O3", "-fno-math-errno", "-fno-trapping-math", "-fvisibility=hidden", "-pthread",
                        "-Wno-psabi"],
    extra_link_args=["-pthread"],
    optional=True,  # where it cannot be built, NumPy computes
)]

LAUNCHER = Path("src/mindtorch_v2/_native/launcher")
launcher = Extension(
    "mindtorch_v2._backends.npu._launch",
    sources=[str(LAUNCHER / "launcher.c")],
    extra_compile_args=["-std=gnu11", "-O2", "-fvisibility=hidden"],
    optional=True,  # where it cannot be built, Python queues the NPU's work
)

setup(ext_modules=[*native, *engine, *kernels, reader, launcher])
