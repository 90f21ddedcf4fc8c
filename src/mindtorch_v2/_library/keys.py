"""`torch._C.DispatchKey`: PyTorch's dispatch keys, as names; libraries switch some of them off."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any

from .._dispatch.state import THREAD

__all__ = ["BelowTransforms", "DispatchKey", "DispatchKeySet", "ExcludeKeys"]

DispatchKey = enum.Enum("DispatchKey", """Undefined CompositeExplicitAutogradNonFunctional CompositeExplicitAutograd
    CompositeImplicitAutogradNestedTensor CompositeImplicitAutograd AutogradNestedTensor AutogradOther Autograd
    Conjugate ZeroTensor Negative BackendSelect ADInplaceOrView PythonTLSSnapshot Python FuncTorchDynamicLayerFrontMode
    FuncTorchDynamicLayerBackMode FuncTorchBatchedDecomposition FuncTorchBatched FuncTorchVmapMode FuncTorchGradWrapper
    PythonDispatcher PreDispatch Functionalize AutocastCPU AutocastMPS AutocastXPU AutocastHPU AutocastIPU AutocastCUDA
    AutocastPrivateUse1 CPU CUDA HIP XLA MPS IPU XPU HPU VE Lazy MTIA MAIA PrivateUse1 PrivateUse2 PrivateUse3 Meta
    NestedTensor Sparse SparseCsr Quantized Dense
    SparseCPU SparseCUDA SparseCsrCPU SparseCsrCUDA QuantizedCPU QuantizedCUDA NestedTensorCPU NestedTensorCUDA
    AutogradCPU AutogradCUDA AutogradXLA AutogradMPS AutogradXPU AutogradHPU AutogradLazy AutogradMTIA AutogradMeta
    AutogradPrivateUse1""", module="torch._C")


class DispatchKeySet:
    """A set of keys.

    >>> cpu = DispatchKeySet(DispatchKey.AutocastCPU)
    >>> (cpu | DispatchKeySet(DispatchKey.CPU)).has(DispatchKey.CPU), cpu.has(DispatchKey.CPU)
    (True, False)
    """

    def __init__(self, keys: Any = ()) -> None:
        self.keys = frozenset(keys if isinstance(keys, Iterable) else (keys,))

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self.keys | other.keys)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self.keys & other.keys)

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self.keys - other.keys)

    def has(self, key: Any) -> bool:
        """Whether a key is in the set."""
        return key in self.keys

    def add(self, key: Any) -> DispatchKeySet:
        """The set with one more key."""
        return DispatchKeySet(self.keys | {key})

    def remove(self, key: Any) -> DispatchKeySet:
        """The set without a key."""
        return DispatchKeySet(self.keys - {key})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self.keys == other.keys

    def __hash__(self) -> int:
        return hash(self.keys)

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(sorted(key.name for key in self.keys))})"


class ExcludeKeys:
    """`torch._C._ExcludeDispatchKeyGuard`: inside, the keys of a set are skipped. This runtime can only skip
    autocast; it refuses sets with other keys."""

    def __init__(self, keys: DispatchKeySet) -> None:
        others = sorted(key.name for key in keys.keys if not key.name.startswith("Autocast"))
        if others:
            raise NotImplementedError("torch._C._ExcludeDispatchKeyGuard: this runtime has no switch for the keys "
                                      f"{', '.join(others)}; only autocast can be passed over")

    def __enter__(self) -> None:
        self.before = THREAD.state.autocast
        THREAD.state.autocast = False

    def __exit__(self, *exc: object) -> None:
        THREAD.state.autocast = self.before


class BelowTransforms:
    """`torch._C._DisableFuncTorch`: inside, the transforms of `torch.func` are passed over. Here they are no layer
    between a program and its ops, so there is nothing to pass over."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        pass
