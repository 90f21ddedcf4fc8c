"""`allow_mutation_on_saved_tensors`: what backward needs is copied before it is changed in place."""

from __future__ import annotations

from collections import defaultdict
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from .._dispatch.namespace import aten
from .._tensor import Tensor
from ..utils._python_dispatch import TorchDispatchMode
from ..utils._pytree import tree_leaves
from .graph import saved_tensors_hooks

OUTSIDE = ("Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was "
           "originally recorded.")
Memory = tuple[int, int]  # where the storage is, and how often it was changed
Saved = tuple[int, int, int]  # the tensor, and its memory


class _Handle:
    """Stands for a saved tensor, with the nodes that saved it."""

    __slots__ = ("__weakref__",)


def _memory(tensor: Tensor) -> Memory:
    return tensor.untyped_storage().data_ptr(), tensor._version


class _Context:
    """What was saved inside, and the copies of what was changed since."""

    def __init__(self) -> None:
        self.cloned: WeakKeyDictionary[_Handle, Tensor] = WeakKeyDictionary()
        self.original: WeakKeyDictionary[_Handle, Tensor] = WeakKeyDictionary()
        self.tid_to_weakhandle: WeakValueDictionary[Saved, _Handle] = WeakValueDictionary()
        self.sid_to_tid: defaultdict[Memory, set[Saved]] = defaultdict(set)

    def clear(self) -> None:
        """Forget everything: no backward can run any more."""
        for table in (self.cloned, self.original, self.tid_to_weakhandle, self.sid_to_tid):
            table.clear()

    def pack(self, tensor: Tensor) -> _Handle:
        """A tensor is saved."""
        memory = _memory(tensor)
        key = (id(tensor), *memory)
        handle = self.tid_to_weakhandle.get(key)
        if handle is None or handle not in self.original:  # another tensor had this number
            handle = self.tid_to_weakhandle[key] = _Handle()
            self.original[handle] = tensor
        self.sid_to_tid[memory].add(key)
        return handle

    def unpack(self, handle: _Handle) -> Tensor:
        """The contents that were saved."""
        found = self.cloned.get(handle)
        if found is None:
            found = self.original.get(handle)
        if found is None:
            raise AssertionError(OUTSIDE)
        return found

    def copy_before_change(self, tensor: Tensor) -> None:
        """The memory of a tensor is about to be changed."""
        for key in self.sid_to_tid.get(_memory(tensor), ()):
            handle = self.tid_to_weakhandle.get(key)
            saved = None if handle is None else self.original.pop(handle, None)
            if handle is not None and saved is not None:
                self.cloned[handle] = aten.clone(aten.detach(saved))


class _CopyBeforeChange(TorchDispatchMode):
    """Looks at every op that changes an argument."""

    def __init__(self, context: _Context) -> None:
        super().__init__()
        self.context = context

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        schema = func._schema
        if schema.name.endswith("_"):
            self.look_at(args[0])
        for position, argument in enumerate(schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                self.look_at(args[position] if position < len(args) else named.get(argument.name))
        self.look_at(named.get("out"))
        return func(*args, **named)

    def look_at(self, changed: Any) -> None:
        """Copy what is saved of these tensors."""
        for one in tree_leaves(changed):
            if isinstance(one, Tensor) and not one.is_inference():
                self.context.copy_before_change(one)


class allow_mutation_on_saved_tensors(saved_tensors_hooks):
    """Let tensors that backward needs be changed in place inside: backward uses the contents that were saved.

    A saved tensor is copied before it is changed. Backward has to run inside too.

    >>> import mindtorch_v2 as torch
    >>> with torch.autograd.graph.allow_mutation_on_saved_tensors():
    ...     x = torch.ones(2, requires_grad=True)
    ...     y = x.clone()
    ...     z = y ** 2
    ...     y.zero_().detach()
    ...     torch.autograd.grad(z.sum(), x)
    tensor([0., 0.])
    (tensor([2., 2.]),)
    """

    _active = False

    def __init__(self) -> None:
        self.context = _Context()
        self.mode = _CopyBeforeChange(self.context)
        super().__init__(self.context.pack, self.context.unpack)

    def __enter__(self) -> Any:
        if allow_mutation_on_saved_tensors._active:
            raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
        super().__enter__()
        self.mode.__enter__()
        allow_mutation_on_saved_tensors._active = True
        return self.context

    def __exit__(self, *exc: object) -> None:
        allow_mutation_on_saved_tensors._active = False
        self.mode.__exit__(*exc)
        self.context.clear()
        super().__exit__(*exc)
