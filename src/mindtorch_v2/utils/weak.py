"""`torch.utils.weak`: dictionaries keyed by objects that they do not keep alive, by identity."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary", "ref"]


class WeakIdRef(weakref.ref):
    """A weak reference that is equal to another if both mean the same object; tensors compare by element."""

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Any = None) -> None:
        super().__init__(key, callback)  # type: ignore[call-arg]
        self._id = id(key)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        mine, theirs = self(), other() if isinstance(other, weakref.ref) else None
        return mine is theirs if mine is not None and theirs is not None else self is other


ref = WeakRef = weakref.ref


class _WeakHashRef(weakref.ref):
    """A weak reference with the hash and equality of its object, which it keeps when the object is gone."""

    __slots__ = ("_hash",)

    def __init__(self, key: Any, callback: Any = None) -> None:
        super().__init__(key, callback)  # type: ignore[call-arg]
        self._hash = hash(key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        mine, theirs = self(), other() if isinstance(other, weakref.ref) else None
        return bool(mine == theirs) if mine is not None and theirs is not None else self is other


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dictionary whose entries go when their keys do."""

    def __init__(self, dict: Any = None, ref_type: Any = WeakIdRef) -> None:
        self.ref_type = ref_type
        self.data: dict[Any, Any] = {}
        home = weakref.ref(self)

        def gone(reference: Any) -> None:
            mapping = home()
            if mapping is not None:
                mapping.data.pop(reference, None)

        self._gone = gone
        if dict is not None:
            self.update(dict)

    def popitem(self) -> tuple[Any, Any]:
        """Take the newest entry out."""
        while True:
            reference, value = self.data.popitem()
            key = reference()
            if key is not None:
                return key, value

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __copy__(self) -> WeakIdKeyDictionary:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> WeakIdKeyDictionary:
        made = type(self)(ref_type=self.ref_type)
        for key, value in self.items():
            made[key] = copy.deepcopy(value, memo)
        return made

    def __or__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        made = type(self)(ref_type=self.ref_type)
        made.update(other)
        made.update(self)
        return made

    def __ior__(self, other: Any) -> WeakIdKeyDictionary:
        self.update(other)
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        return {id(key): value for key, value in self.items()} == {id(key): value for key, value in other.items()}

    __hash__ = None  # type: ignore[assignment]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._gone)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Any]:
        for reference in list(self.data):
            key = reference()
            if key is not None:
                yield key

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:
            return False

    def keyrefs(self) -> list[Any]:
        """The weak references themselves."""
        return list(self.data)

    def copy(self) -> WeakIdKeyDictionary:
        """Another dictionary with the same entries."""
        made = WeakIdKeyDictionary(ref_type=self.ref_type)
        made.update(self)
        return made

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor."""

    def __init__(self, tensor: Any) -> None:
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Any:
        return self.ref()
