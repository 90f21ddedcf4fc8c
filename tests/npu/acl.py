"""The simulator's C ABI through plain ctypes: no part of the binding under `_backends/npu` is used here."""

from __future__ import annotations

import ctypes as c
from collections.abc import Sequence

import ml_dtypes
import numpy as np

DTYPES = {
    "float32": 0,
    "float16": 1,
    "int8": 2,
    "int32": 3,
    "uint8": 4,
    "int16": 6,
    "int64": 9,
    "float64": 11,
    "bool": 12,
    "bfloat16": 27,
}
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
H2H, H2D, D2H, D2D = range(4)
SYNC, TIME_LINE = 0x1, 0x8
CREATED = ("Tensor", "Scalar", "IntArray", "FloatArray", "BoolArray", "TensorList", "ScalarList")


class AclError(RuntimeError):
    """A call returned a code other than 0; `.code` has it, the text is ACL's."""

    def __init__(self, name: str, code: int, text: str) -> None:
        super().__init__(f"{name} returned {code}: {text}")
        self.code = code


class Activity(c.Structure):
    """`mtsimActivity`: one entry of the simulator's own log."""

    _fields_ = [
        ("kind", c.c_uint32),
        ("device", c.c_uint32),
        ("stream", c.c_int32),
        ("copy_kind", c.c_int32),
        *[(name, c.c_uint64) for name in ("correlation", "submit", "start", "end", "bytes", "operations")],
        ("name", c.c_char_p),
        ("type", c.c_char_p),
    ]


class Buffer:
    """A NumPy array's copy in device memory, and the description of a view of it."""

    def __init__(
        self,
        acl: Acl,
        array: np.ndarray,
        shape: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
        offset: int = 0,
    ) -> None:
        array = np.asarray(array)
        self.acl, self.dtype = acl, array.dtype
        self.storage = np.ascontiguousarray(array).reshape(-1)
        self.shape = tuple(array.shape if shape is None else shape)
        self.strides = None if strides is None else tuple(strides)
        self.offset = offset
        self.pointer = acl.malloc(max(self.storage.nbytes, 1))
        if self.storage.nbytes:
            acl.call(
                "aclrtMemcpy", self.pointer, self.storage.nbytes, self.storage.ctypes.data, self.storage.nbytes, H2D
            )

    def tensor(self) -> int:
        shape = (c.c_int64 * len(self.shape))(*self.shape)
        strides = None if self.strides is None else (c.c_int64 * len(self.shape))(*self.strides)
        storage = (c.c_int64 * 1)(self.storage.size)
        return self.acl.create(
            "aclCreateTensor",
            shape,
            c.c_uint64(len(self.shape)),
            DTYPES[self.dtype.name],
            strides,
            c.c_int64(self.offset),
            2,
            storage,
            c.c_uint64(1),
            c.c_void_p(self.pointer),
        )

    def numpy(self) -> np.ndarray:
        """The view's values, after everything queued has run."""
        self.acl.call("aclrtSynchronizeDevice")
        read = np.empty_like(self.storage)
        if read.nbytes:
            self.acl.call("aclrtMemcpy", read.ctypes.data, read.nbytes, self.pointer, read.nbytes, D2H)
        if self.strides is None:
            return read[self.offset : self.offset + int(np.prod(self.shape))].reshape(self.shape)
        return np.lib.stride_tricks.as_strided(
            read[self.offset :], self.shape, [step * read.itemsize for step in self.strides]
        )


class Acl:
    """The library: calls that raise, arguments for operators by their Python types."""

    def __init__(self, path: str) -> None:
        self.lib = c.CDLL(path)
        for name in CREATED:
            getattr(self.lib, f"aclCreate{name}").restype = c.c_void_p
        for name in ("aclGetRecentErrMsg", "aclrtGetSocName", "mtsimBanner", "mtsimOperator"):
            getattr(self.lib, name).restype = c.c_char_p
        for name in (
            "mtsimLiveHandles",
            "mtsimActivityRead",
            "mtsimLiveBlocks",
            "mtsimDeviceTicks",
            "mtsimTicksToMonotonic",
        ):
            getattr(self.lib, name).restype = c.c_uint64

    def raw(self, name: str, *arguments: object) -> int:
        return getattr(self.lib, name)(
            *[
                c.c_void_p(a)
                if isinstance(a, int) and not isinstance(a, bool) and abs(a) >= 1 << 31
                else c.c_size_t(a)
                if name.startswith(("aclrtMem", "aclrtMalloc")) and isinstance(a, int)
                else a
                for a in arguments
            ]
        )

    def text(self) -> str:
        return (self.lib.aclGetRecentErrMsg() or b"").decode()

    def call(self, name: str, *arguments: object) -> None:
        code = self.raw(name, *arguments)
        if code != 0:
            raise AclError(name, code, self.text())

    def code(self, name: str, *arguments: object) -> int:
        """The code of a call that is expected to fail; its text is read and must say something."""
        code = self.raw(name, *arguments)
        assert code == 0 or self.text()
        return code

    def create(self, name: str, *arguments: object) -> int:
        made = getattr(self.lib, name)(*arguments)
        if not made:
            raise AclError(name, 161002, self.text())
        return made

    def malloc(self, size: int) -> int:
        pointer = c.c_void_p()
        self.call("aclrtMalloc", c.byref(pointer), size, 0)
        return pointer.value or 0

    def handle(self, name: str, *arguments: object) -> c.c_void_p:
        made = c.c_void_p()
        self.call(name, c.byref(made), *arguments)
        return made

    def buffer(self, array: object, **view: object) -> Buffer:
        return Buffer(self, np.asarray(array), **view)  # type: ignore[arg-type]

    def empty(self, shape: Sequence[int], dtype: str) -> Buffer:
        return Buffer(self, np.zeros(shape, BFLOAT16 if dtype == "bfloat16" else dtype))

    def argument(self, value: object) -> tuple[object, tuple[str, int] | None]:
        """What to pass for a Python value, and what to destroy afterwards."""
        if value is None:
            return c.c_void_p(), None
        if isinstance(value, Buffer):
            made = value.tensor()
            return c.c_void_p(made), ("Tensor", made)
        if isinstance(value, list) and value and isinstance(value[0], Buffer):
            members = (c.c_void_p * len(value))(*[member.tensor() for member in value])
            made = self.create("aclCreateTensorList", members, c.c_uint64(len(value)))
            return c.c_void_p(made), ("TensorList", made)
        if isinstance(value, Scalar):
            made = self.create("aclCreateScalar", c.byref(value.value), value.dtype)
            return c.c_void_p(made), ("Scalar", made)
        if isinstance(value, tuple):
            if value and isinstance(value[0], bool):
                made = self.create("aclCreateBoolArray", (c.c_bool * len(value))(*value), c.c_uint64(len(value)))
                return c.c_void_p(made), ("BoolArray", made)
            made = self.create("aclCreateIntArray", (c.c_int64 * len(value))(*value), c.c_uint64(len(value)))
            return c.c_void_p(made), ("IntArray", made)
        if isinstance(value, str):
            return c.c_char_p(value.encode()), None
        return value, None  # a ctypes value: c_int64(3), c_bool(True), …

    def op(self, name: str, *values: object, stream: c.c_void_p | None = None) -> None:
        """Both phases of an operator."""
        passed, owned = [], []
        for value in values:
            argument, destroy = self.argument(value)
            passed.append(argument)
            if destroy:
                owned.append(destroy)
        size, executor = c.c_uint64(), c.c_void_p()
        try:
            self.call(f"aclnn{name}GetWorkspaceSize", *passed, c.byref(size), c.byref(executor))
            workspace = self.malloc(size.value) if size.value else None
            self.call(f"aclnn{name}", c.c_void_p(workspace), size, executor, stream)
            if workspace:
                self.call("aclrtSynchronizeStream", stream)
                self.call("aclrtFree", workspace)
        finally:
            for kind, made in owned:
                self.call(f"aclDestroy{kind}", c.c_void_p(made))

    def activities(self) -> list[Activity]:
        count = self.lib.mtsimActivityRead(None, c.c_uint64(0))
        entries = (Activity * max(count, 1))()
        return list(entries[: self.lib.mtsimActivityRead(entries, c.c_uint64(count))])


class Scalar:
    """A scalar argument: a Python number as torch_npu passes it (double, int64 or bool)."""

    def __init__(self, value: float | int | bool) -> None:
        kind, self.dtype = (
            (c.c_bool, 12)
            if isinstance(value, bool)
            else (c.c_int64, 9)
            if isinstance(value, int)
            else (c.c_double, 11)
        )
        self.value = kind(value)
