"""The meaning of the Ascend runtime's status codes, and the exceptions for them."""

from __future__ import annotations

from typing import Any

from ..._errors import AcceleratorError

CODES = {
    100000: "an argument is invalid",
    100001: "the runtime is not initialised",
    100002: "the runtime is initialised already",
    100037: "the runtime is finalised already",
    100042: "profiling runs already",
    100043: "profiling does not run",
    107000: "an argument of the runtime is invalid",
    107001: "there is no such device",
    107002: "the thread has no device",
    107003: "the stream does not belong to the current device",
    107006: "the event has no time",
    107008: "an address is not aligned",
    107019: "waiting took too long",
    107020: "a task took too long",
    161001: "a required argument is NULL",
    161002: "an argument does not suit the operator",
    200000: "the host has no memory left",
    200006: "the feature is not supported",
    207000: "the feature is not supported",
    207001: "the device has no memory left",
    207004: "there is no device",
    207018: "a task found no memory on the device",
    361001: "a call of the runtime failed inside the operator",
    507000: "internal error",
    507015: "a kernel failed on an AI core",
    507035: "a kernel failed on a vector core",
    507046: "waiting for a stream took too long",
    507047: "waiting for an event took too long",
    507899: "internal error of the driver",
    561001: "the operator could not infer a shape",
    561002: "the operator could not be tiled",
    561003: "the operator has no kernel for these arguments",
    561103: "internal NULL in the operator",
    561107: "ASCEND_OPP_PATH is not set",
}
NO_MEMORY = frozenset({200000, 207001, 207018})
# After one of these, a device does nothing more until the process is restarted.
LOST = frozenset({507015, 507035, 507899, 507010, 507011, 507013, 507014})


class AclError(AcceleratorError):
    """A call of the Ascend runtime failed: `function` and `code` say which and how, `detail` is what it reported."""

    def __init__(self, function: str, code: int, detail: str = "") -> None:
        self.function, self.code, self.detail = function, code, detail
        self.error_code = code
        meaning = CODES.get(code, "unknown error")
        super().__init__(f"NPU error: {function} returned {code} ({meaning})" + (f": {detail}" if detail else ""))

    def __reduce__(self) -> Any:
        return type(self), (self.function, self.code, self.detail)


class MissingSymbol(RuntimeError):
    """A function is in none of the libraries found: they have another version."""
