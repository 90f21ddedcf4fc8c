"""`torch.testing._internal.common_device_type`: tests that PyTorch runs on every device, here on the CPU."""

from __future__ import annotations

import enum
import functools
import inspect
import unittest
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .info_parametrization import OVER, over
from .test_case import TestCase
from .test_conditions import runs_anyway
from .test_parametrization import bound, expanded, parametrize

Test = Callable[..., Any]
_DTYPES, _ONLY, _DEVICES = "_device_test_dtypes", "_device_test_only", "_device_test_devices"
tol = namedtuple("tol", ["atol", "rtol"])
SkipSpec = namedtuple("SkipSpec", ["op", "variant", "device_type", "dtypes", "reason"],
                      defaults=(None, None, None, ""))


def __getattr__(name: str) -> Any:
    """Marks for other devices do not change a test on the CPU."""
    others = ("CUDA", "ROCM", "Rocm", "XPU", "MPS", "HPU", "XLA", "Lazy", "Meta", "PRIVATEUSE1", "GPU")
    if name.startswith(tuple(f"skip{one}If" for one in others)):
        return skipCUDAIf if name.endswith("If") else runs_anyway
    if name.startswith(tuple(f"{kind}{one}" for kind in ("skip", "expectedFailure") for one in others)):
        return runs_anyway
    if name == "skipCPUIfNoMkldnn":
        return unittest.skip("oneDNN is not available to programs")
    if name.startswith(("skipCPUIfNo", "disable")):
        return runs_anyway
    if name.startswith("onlyNative"):
        return onlyNativeDeviceTypesAnd
    if name.startswith("only"):
        return _only(name.removeprefix("only"))
    if name.startswith("dtypesIf"):
        return dtypesIfCUDA
    if name.isupper():
        return False
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class dtypes:
    """Run a test once for each of some element types, which it is given as `dtype` (of some tuples, as `dtypes`)."""

    def __init__(self, *args: Any, device_type: str = "all") -> None:
        self.args, self.device_type = args, device_type

    def __call__(self, fn: Test) -> Test:
        if self.device_type in ("all", "cpu") and (self.device_type == "cpu" or not hasattr(fn, _DTYPES)):
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


class onlyOn:
    """Run on some devices only."""

    def __init__(self, device_type: str | Iterable[str]) -> None:
        self.device_type = device_type

    def __call__(self, fn: Test) -> Test:
        wanted = _names(self.device_type)
        return fn if "cpu" in wanted else _only(" or ".join(wanted))(fn)


def onlyNativeDeviceTypes(fn: Test) -> Test:
    """Run on the CPU as on other devices of PyTorch itself."""
    return fn


def onlyNativeDeviceTypesAnd(devices: Any = None) -> Callable[[Test], Test]:
    """Run on the CPU as on other devices of PyTorch itself, and on some more."""
    return lambda fn: fn


def skipIf(dep: Any, reason: str, device_type: Any = None) -> Callable[[Test], Test]:
    """Skip on a device if something holds; a text names an attribute of the test's class."""

    def decorate(fn: Test) -> Test:
        if device_type is not None and "cpu" not in _names(device_type):
            return fn

        @functools.wraps(fn)
        def test(self: Any, *args: Any, **kwargs: Any) -> Any:
            if getattr(self, dep, True) if isinstance(dep, str) else dep:
                raise unittest.SkipTest(reason)
            return fn(self, *args, **kwargs)

        return test

    return decorate


def skipCPUIf(dep: Any, reason: str) -> Callable[[Test], Test]:
    """Skip on the CPU if something holds."""
    return skipIf(dep, reason, "cpu")


def skipCUDAIf(dep: Any = None, reason: str = "") -> Callable[[Test], Test]:
    """Skip on CUDA if something holds: this is the CPU, so the test runs."""
    return lambda fn: fn


def expectedFailure(device_type: str) -> Callable[[Test], Test]:
    """The test must fail on a device."""
    return unittest.expectedFailure if device_type == "cpu" else lambda fn: fn


def expectedFailureCPU(fn: Test) -> Test:
    """The test must fail on the CPU."""
    return unittest.expectedFailure(fn)


def deviceCountAtLeast(num_required_devices: int) -> Callable[[Test], Test]:
    """Give a test a list of devices, and skip it if there are fewer: there is one CPU."""

    def mark(fn: Test) -> Test:
        setattr(fn, _DEVICES, num_required_devices)
        return fn

    return mark


def largeTensorTest(size: Any, device: Any = None, inductor: bool = False) -> Callable[[Test], Test]:
    """Skip unless a device has this much memory, in bytes or as "12GB"."""
    units = {"KB": 1, "MB": 2, "GB": 3}
    wanted = size if isinstance(size, int) else int(float(size[:-2]) * 1024 ** units[size[-2:].upper()])
    return skipIf(_free_memory() < wanted, f"Insufficient memory: {size} needed", None)


def _free_memory() -> int:
    try:
        with open("/proc/meminfo") as file:
            return 1024 * next(int(line.split()[1]) for line in file if line.startswith("MemAvailable"))
    except OSError:
        return 0


class _Tolerance:
    """Tolerances of a test by its dtype."""

    def __init__(self, d: dict[Any, Any]) -> None:
        self.d = d

    def wide(self, chosen: Any) -> tuple[float, float]:
        """Absolute and relative."""
        return float(chosen), 0.0

    def __call__(self, fn: Test) -> Test:
        fn._device_test_tolerance = self  # type: ignore[attr-defined]
        return fn


class precisionOverride(_Tolerance):
    """`assertEqual` has other absolute tolerances in this test, by dtype."""


class toleranceOverride(_Tolerance):
    """`assertEqual` has other tolerances in this test, by dtype."""

    def wide(self, chosen: Any) -> tuple[float, float]:
        return float(chosen.atol), float(chosen.rtol)


class OpDTypes(enum.Enum):
    """Which element types of an op a test runs over."""

    supported = 0
    unsupported = 1
    supported_backward = 2
    unsupported_backward = 3
    any_one = 4
    none = 5
    any_common_cpu_cuda_one = 6


class ops(over):
    """Run a test once for each op of a list and each of its element types, given as `op` and `dtype`."""

    def __init__(self, op_list: Iterable[Any], *, dtypes: Any = OpDTypes.supported, allowed_dtypes: Any = None,
                 skip_if_dynamo: bool = True) -> None:
        self.op_list, self.kinds, self.allowed = list(op_list), dtypes, allowed_dtypes

    def variants(self) -> Iterator[tuple[str, Any, Any]]:
        """The op's name, the op, a dtype."""
        for op in self.op_list:
            for kind in self._kinds(op):
                if self.allowed is None or kind is None or kind in self.allowed:
                    yield getattr(op, "formatted_name", getattr(op, "name", str(op))), op, kind

    def arguments(self, chosen: Any) -> dict[str, Any]:
        """The op."""
        return {"op": chosen}

    def _kinds(self, op: Any) -> Iterable[Any]:
        if not isinstance(self.kinds, OpDTypes):
            return self.kinds
        if self.kinds is OpDTypes.none:
            return (None,)
        backward = self.kinds in (OpDTypes.supported_backward, OpDTypes.unsupported_backward)
        found = set(op.supported_backward_dtypes("cpu") if backward else op.supported_dtypes("cpu"))
        if self.kinds in (OpDTypes.any_one, OpDTypes.any_common_cpu_cuda_one):
            return sorted(found, key=str)[:1]
        if self.kinds in (OpDTypes.unsupported, OpDTypes.unsupported_backward):
            from .common_dtype import get_all_dtypes

            found = set(get_all_dtypes()) - found
        return sorted(found, key=str)


class DeviceTypeTestBase(TestCase):
    """The base of tests of a device, which know the device."""

    device_type = "generic_device_type"

    @classmethod
    def get_primary_device(cls) -> str:
        """The device of tests that use one."""
        return cls.device_type

    @classmethod
    def get_all_devices(cls) -> list[str]:
        """All of the kind."""
        return [cls.get_primary_device()]


class CPUTestBase(DeviceTypeTestBase):
    """Tests on the CPU."""

    device_type = "cpu"


class CUDATestBase(DeviceTypeTestBase):
    """Tests on a device that this runtime does not have: none are made of it."""

    device_type = "cuda"


class XPUTestBase(CUDATestBase):
    """As `CUDATestBase`."""

    device_type = "xpu"


class MPSTestBase(CUDATestBase):
    """As `CUDATestBase`."""

    device_type = "mps"


class HPUTestBase(CUDATestBase):
    """As `CUDATestBase`."""

    device_type = "hpu"


class LazyTestBase(CUDATestBase):
    """As `CUDATestBase`."""

    device_type = "lazy"


class PrivateUse1TestBase(CUDATestBase):
    """As `CUDATestBase`."""

    device_type = "privateuseone"


device_type_test_bases = [CPUTestBase]


def get_device_type_test_bases() -> list[type[DeviceTypeTestBase]]:
    """The kinds of devices that are there."""
    return list(device_type_test_bases)


def get_all_device_types() -> list[str]:
    """The devices that are there."""
    return ["cpu"]


def has_cusolver() -> bool:
    """Whether NVIDIA's library for linear algebra is there: no."""
    return False


has_hipsolver = has_cusolver


def _given(test: Test, kind: Any, more: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a test. As in PyTorch, one that does not name a device is not given one."""
    names = inspect.signature(test).parameters
    given = dict(more)
    if hasattr(test, _DEVICES):
        given["devices"] = ["cpu"]
    elif "device" in names:
        given["device"] = "cpu"
    if isinstance(kind, (list, tuple)):
        given["dtypes"] = tuple(kind)
    elif kind is not None and ("dtype" in names or not hasattr(test, OVER)):
        given["dtype"] = kind
    return given


def _tolerant(test: Test, tolerance: _Tolerance | None, kind: Any) -> Test:
    """The test with the tolerances of a dtype."""
    if tolerance is None or kind not in tolerance.d:
        return test
    absolute, relative = tolerance.wide(tolerance.d[kind])

    @functools.wraps(test)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = self.precision, self.rel_tol
        self.precision, self.rel_tol = max(self.precision, absolute), max(self.rel_tol, relative)
        try:
            return test(self, *args, **kwargs)
        finally:
            self.precision, self.rel_tol = before

    return run


def _variants(key: str, function: Test, owner: str) -> Iterator[tuple[str, Test]]:
    """The tests for the CPU that one test stands for, with their names."""
    number = getattr(function, _DEVICES, 1)
    only = getattr(function, _ONLY, "cpu")
    mark: Any = getattr(function, OVER, None)
    for ending, test in expanded(function):
        choices = mark.variants() if mark is not None else (
            ("", None, kind) for kind in getattr(function, _DTYPES, (None,)))
        for op_name, op, kind in choices:
            kinds = kind if isinstance(kind, (list, tuple)) else () if kind is None else (kind,)
            name = "_".join(filter(None, (key, ending, op_name, "cpu", *(one.name for one in kinds))))
            described: Any = op[0] if isinstance(op, tuple) else op  # of a module, its mode comes with it
            decorators = () if op is None else described.get_decorators(owner, key, "cpu", kind, {})
            made = bound(_tolerant(test, getattr(function, "_device_test_tolerance", None), kind),
                         _given(test, kind, {} if op is None else mark.arguments(op)), decorators)
            made.__name__ = name
            if only != "cpu":
                made = unittest.skip(f"only for {only}")(made)
            elif number > 1:
                made = unittest.skip(f"fewer than {number} devices detected")(made)
            yield name, made


def xfail(op_name: str, variant_name: str = "", *, device_type: Any = None, dtypes: Any = None) -> Any:
    """An entry for `skipOps`: the test of this op must fail."""
    return op_name, variant_name, device_type, dtypes, unittest.expectedFailure


def skip(op_name: str, variant_name: str = "", *, device_type: Any = None, dtypes: Any = None) -> Any:
    """An entry for `skipOps`: the test of this op is left out."""
    return op_name, variant_name, device_type, dtypes, unittest.skip("Skipped!")


def skipOps(test_case_name: str, base_test_name: str, to_skip: Iterable[Any]) -> Callable[[Test], Test]:
    """Leave out the tests of some ops of the list, or expect them to fail."""
    from .common_methods_invocations import op_db
    from .opinfo.core import DecorateInfo

    for name, variant, device_type, kinds, decorator in to_skip:
        for op in op_db:
            if op.name == name and op.variant_test_name == variant:
                op.decorators = (*op.decorators, DecorateInfo(decorator, test_case_name, base_test_name,
                                                              device_type=device_type, dtypes=kinds))
    return lambda fn: fn


def instantiate_device_type_tests(generic_test_class: type[unittest.TestCase], scope: dict[str, Any],
                                  except_for: Any = None, only_for: Any = None, include_lazy: bool = False,
                                  allow_mps: bool = False, allow_xpu: bool = False, allow_hpu: bool = False) -> None:
    """Put a class of tests for the CPU into `scope`, in place of one whose tests take a device.

    `TestX.test_y(self, device)` becomes `TestXCPU.test_y_cpu(self)`.
    """
    name = generic_test_class.__name__
    scope.pop(name, None)
    generic = {key: value for key, value in vars(generic_test_class).items() if key.startswith("test")}
    for key in generic:
        delattr(generic_test_class, key)
    if (only_for is not None and "cpu" not in _names(only_for)) or "cpu" in _names(except_for or ()):
        return
    made: dict[str, Any] = {"__module__": generic_test_class.__module__}
    for key, function in generic.items():
        made.update(_variants(key, function, name))
    # The class itself stays among the bases: its methods call `super()`.
    scope[f"{name}CPU"] = type(f"{name}CPU", (CPUTestBase, generic_test_class), made)


def _names(given: Any) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


__all__ = ["CPUTestBase", "DeviceTypeTestBase", "OpDTypes", "deviceCountAtLeast", "dtypes", "dtypesIfCPU",
           "dtypesIfCUDA", "expectedFailure", "expectedFailureCPU", "get_all_device_types",
           "get_device_type_test_bases", "instantiate_device_type_tests", "largeTensorTest", "onlyCPU", "onlyCUDA",
           "onlyNativeDeviceTypes", "onlyNativeDeviceTypesAnd", "onlyOn", "ops", "parametrize", "precisionOverride",
           "skipCPUIf", "skipCUDAIf", "skipIf", "tol", "toleranceOverride"]
