"""Checkpoints that keep the results of chosen ops: `create_selective_checkpoint_contexts`."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from ._python_dispatch import TorchDispatchMode
from ._pytree import tree_map


class CheckpointPolicy(enum.Enum):
    """What a checkpoint does with an op's result."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """What a policy knows besides the op and its arguments."""

    def __init__(self, *, is_recompute: bool) -> None:
        self.is_recompute = is_recompute


_NOT_ASKED = frozenset({"aten::detach"})  # ops that a policy is not asked about
_KEPT = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE, True)
Policy = Callable[..., Any]


# In the place of a result: it is computed again, or was already returned.
_AGAIN, _GONE = object(), object()


class _CachingTorchDispatchMode(TorchDispatchMode):
    """Notes the results of the forward that are to be kept."""

    def __init__(self, policy: Policy, kept: dict[Any, list[Any]]) -> None:
        super().__init__()
        self.policy, self.kept = policy, kept

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        made = func(*args, **named)
        if func.name() in _NOT_ASKED:
            return made
        if self.policy(SelectiveCheckpointContext(is_recompute=False), func, *args, **named) in _KEPT:
            self.kept[func].append(tree_map(lambda leaf: (leaf.detach(), leaf._version) if isinstance(leaf, Tensor)
                                            else (leaf, None), made))
        else:
            self.kept[func].append(_AGAIN)
        return made


class _CachedTorchDispatchMode(TorchDispatchMode):
    """Returns kept results instead of running their ops again."""

    def __init__(self, policy: Policy, kept: dict[Any, list[Any]], allow_mutation: bool) -> None:
        super().__init__()
        self.policy, self.kept, self.allow_mutation = policy, kept, allow_mutation
        self.places: dict[Any, int] = {}  # how many calls of each op this recomputation has seen

    def __enter__(self) -> Any:
        self.places = {}
        return super().__enter__()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        if func.name() in _NOT_ASKED:
            return func(*args, **named)
        place = self.places.get(func, 0)
        self.places[func] = place + 1
        known = self.kept.get(func, [])
        if place >= len(known):  # a call that the forward did not make
            if self.policy(SelectiveCheckpointContext(is_recompute=True), func, *args, **named) in _KEPT:
                raise RuntimeError(f"{func} encountered during backward but not found in storage: the recomputation "
                                   "runs other ops than the forward did")
            return func(*args, **named)
        held = known[place]
        if held is _AGAIN:
            return func(*args, **named)
        if held is _GONE:
            raise RuntimeError("Trying to backward an extra time. What a selective checkpoint has kept is handed out "
                               "in one backward only.")
        known[place] = _GONE
        return tree_map(self._taken, held, is_leaf=lambda one: isinstance(one, tuple)
                        and len(one) == 2 and (one[1] is None or isinstance(one[1], int)))

    def _taken(self, held: tuple[Any, Any]) -> Any:
        value, version = held
        if version is not None and value._version != version and not self.allow_mutation:
            raise RuntimeError("Tensor cached during selective activation checkpoint has been mutated")
        return value


def create_selective_checkpoint_contexts(policy_fn_or_list: Any,
                                         allow_cache_entry_mutation: bool = False) -> tuple[Any, Any]:
    """The contexts for the forward and the recomputation of a checkpoint that keeps what a policy names.

    The policy is a function of a `SelectiveCheckpointContext`, an op and its arguments, or a list of ops to keep.
    """
    if isinstance(policy_fn_or_list, list):
        ops = policy_fn_or_list
        for op in ops:
            if not hasattr(op, "_schema"):
                raise ValueError(f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}."
                                 + (" Please update the OpOverloadPacket to a specific OpOverload."
                                    if hasattr(op, "overloads") else ""))

        def policy(context: Any, func: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
            return CheckpointPolicy.MUST_SAVE if func in ops else CheckpointPolicy.PREFER_RECOMPUTE
    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    kept: dict[Any, list[Any]] = defaultdict(list)
    return _CachingTorchDispatchMode(policy, kept), _CachedTorchDispatchMode(policy, kept, allow_cache_entry_mutation)
