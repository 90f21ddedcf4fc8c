"""`torch.testing._internal.common_device_type`: tests that PyTorch runs on every device, here on the CPU."""

from __future__ import annotations

import inspect
import unittest
from collections.abc import Callable, Iterable
from typing import Any

from .test_conditions import runs_anyway
from .test_parametrization import bound, expanded

__all__ = ["deviceCountAtLeast", "disableMkldnn", "disablecuDNN", "dtypes", "expectedFailureCUDA", "expectedFailureMPS",
           "expectedFailureXPU", "get_all_device_types", "instantiate_device_type_tests", "onlyCPU", "onlyCUDA",
           "onlyNativeDeviceTypes", "onlyOn", "skipCPUIf", "skipCPUIfNoLapack", "skipCUDAIf", "skipCUDAIfNoCudnn",
           "skipCUDAIfNoMagma", "skipCUDAIfRocm", "skipCUDAVersionIn", "skipMPS", "skipMeta", "skipXPU", "skipXPUIf"]

Test = Callable[..., Any]
_DTYPES, _ONLY = "_device_test_dtypes", "_device_test_only"


class dtypes:
    """Run a test once for each of some element types, which it is given as `dtype`."""

    def __init__(self, *args: Any, device_type: str = "all") -> None:
        self.args, self.device_type = args, device_type

    def __call__(self, fn: Test) -> Test:
        if self.device_type in ("all", "cpu"):
            setattr(fn, _DTYPES, self.args)
        return fn


class dtypesIfCPU(dtypes):
    """Element types for the CPU."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args, device_type="cpu")


class dtypesIfCUDA(dtypes):
    """Element types for CUDA: nothing here."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args, device_type="cuda")


def _only(device: str) -> Callable[[Test], Test]:
    def mark(fn: Test) -> Test:
        setattr(fn, _ONLY, device)
        return fn

    return mark


onlyCPU = _only("cpu")
onlyCUDA = _only("cuda")
onlyMPS = _only("mps")
onlyXPU = _only("xpu")
onlyAccelerator = _only("an accelerator")


def onlyOn(device_type: str | Iterable[str]) -> Callable[[Test], Test]:
    """Run on some devices only."""
    wanted = _names(device_type)
    return (lambda fn: fn) if "cpu" in wanted else _only(" or ".join(wanted))


def onlyNativeDeviceTypes(fn: Test) -> Test:
    """Run on the CPU as on other devices of PyTorch itself."""
    return fn


def skipCPUIf(dep: bool, reason: str) -> Callable[[Test], Test]:
    """Skip on the CPU if something holds."""
    return unittest.skipIf(bool(dep), reason)


def skipCUDAIf(dep: bool, reason: str) -> Callable[[Test], Test]:
    """Skip on CUDA if something holds: the test runs, it is on the CPU."""
    return lambda fn: fn


# What concerns other devices leaves a test on the CPU as it is.
skipCUDAIfRocm = skipCUDAIfNoCudnn = skipCUDAIfNoMagma = skipCUDAIfNotRocm = skipXPU = skipMPS = skipMeta = runs_anyway
expectedFailureCUDA = expectedFailureMPS = expectedFailureXPU = disablecuDNN = disableMkldnn = runs_anyway
skipCPUIfNoLapack = runs_anyway
skipXPUIf = skipCUDAIf


def deviceCountAtLeast(num_required_devices: int) -> Callable[[Test], Test]:
    """Skip unless there are so many devices of the kind: there is one CPU."""
    return unittest.skipIf(num_required_devices > 1, f"{num_required_devices} devices needed, there is one CPU")


def get_all_device_types() -> list[str]:
    """The devices that are there."""
    return ["cpu"]


def skipCUDAVersionIn(versions: Iterable[Any] | None = None) -> Callable[[Test], Test]:
    """Skip for some versions of CUDA: the test runs, there is no CUDA."""
    return lambda fn: fn


def instantiate_device_type_tests(generic_test_class: type[unittest.TestCase], scope: dict[str, Any],
                                  except_for: Any = None, only_for: Any = None, include_lazy: bool = False,
                                  allow_mps: bool = False, allow_xpu: bool = False, allow_hpu: bool = False) -> None:
    """Put a class of tests for the CPU into `scope`, in place of one whose tests take a device.

    `TestX.test_y(self, device)` becomes `TestXCPU.test_y_cpu(self)`.
    """
    name = generic_test_class.__name__
    scope.pop(name, None)
    if (only_for is not None and "cpu" not in _names(only_for)) or "cpu" in _names(except_for or ()):
        return
    made: dict[str, Any] = {"device_type": "cpu", "__module__": generic_test_class.__module__}
    base = type(f"{name}CPUBase", generic_test_class.__bases__,
                {key: value for key, value in vars(generic_test_class).items()
                 if not key.startswith("test") and key not in ("__dict__", "__weakref__")})
    for key, function in vars(generic_test_class).items():
        if not key.startswith("test"):
            continue
        only = getattr(function, _ONLY, "cpu")
        for ending, test in expanded(function):
            for kind in getattr(function, _DTYPES, (None,)):
                # As in PyTorch, a test that does not name a device is not given one.
                given = {"device": "cpu"} if "device" in inspect.signature(test).parameters else {}
                if kind is not None:
                    given["dtype"] = kind
                whole = "_".join(filter(None, (key, ending, "cpu", "" if kind is None else kind.name)))
                made[whole] = bound(test, given)
                made[whole].__name__ = whole
                if only != "cpu":
                    made[whole] = unittest.skip(f"only for {only}")(made[whole])
    scope[f"{name}CPU"] = type(f"{name}CPU", (base,), made)


def _names(given: Any) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)
