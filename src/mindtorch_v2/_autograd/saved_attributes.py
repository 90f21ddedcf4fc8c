"""`grad_fn._saved_self` and similar: what a node keeps, under PyTorch's names and in its form."""

from __future__ import annotations

import re
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from .._tensor import Tensor, is_differentiable_dtype, wrap
from .graph import RELEASED, SECOND_BACKWARD, Node, Packed, detached, packed, unpack

if TYPE_CHECKING:
    from collections.abc import Callable

# PyTorch's name for the shape of an argument that is kept only for its shape.
FROM_SHAPE = re.compile(r"(?P<argument>\w+?)_sym_(?:(?P<whole>sizes(?:_opt)?)|(?P<steps>strides)|(?P<count>numel)|"
                        r"argsize_(?P<minus>minus_)?(?P<place>\d+))")
# Arguments that have another name in the op that PyTorch records.
OTHER_NAMES = {"self_sym_sizes": "input_sym_sizes", "C": "c", "N": "n", "HxW": "hxw"}
SCALES = {"scales": -1, "scales_w": -1, "scales_h": -2, "scales_d": -3}  # of a picture, from the last direction
# By class of nodes, once requested; a program's own classes are not kept alive.
NAMES: weakref.WeakKeyDictionary[type[Node], dict[str, str]] = weakref.WeakKeyDictionary()
NUMBERS = {bool: np.bool_, int: np.int64, float: np.float64, complex: np.complex128}
UNSIGNED = 2**64  # PyTorch's nodes return numbers as unsigned


def names_of_slots(kind: type[Node]) -> dict[str, str]:
    """Name -> slot of the nodes of a class."""
    found = NAMES.get(kind)
    if found is not None:
        return found
    named = result_names(kind)
    slots = [slot for slot in getattr(kind, "__slots__", ()) if slot.startswith("v_")]
    found = NAMES[kind] = {named.get(slot) or re.sub("_shape$", "_sym_sizes", slot[2:]): slot for slot in slots}
    return found


def result_names(kind: type[Node]) -> dict[str, str]:
    """Slot of a result -> its name in the op's signature, if it has one."""
    if kind.recorded_by is None:
        return {}
    results = kind.recorded_by.schema.text.rpartition("->")[2].strip(" ()").split(",")
    words = [result.split() for result in results]
    return {f"v_result{number}": parts[1] for number, parts in enumerate(words) if len(parts) == 2}


def find(node: Node, name: str) -> Any:
    """The value of an attribute `_saved_name` or `_raw_saved_name`; KeyError if there is none."""
    if name.startswith("_raw_saved_"):
        return raw(node, names_of_slots(type(node))[name.removeprefix("_raw_saved_")])
    asked = name.removeprefix("_saved_")
    slots = names_of_slots(type(node))
    if asked in SCALES and "scale_factors" in slots:
        factors = getattr(node, slots["scale_factors"])
        return None if factors is None else float(factors[SCALES[asked]])
    slot = slots.get(asked) or slots.get(OTHER_NAMES.get(asked, ""))
    if slot is not None:
        value = getattr(node, slot)
        return tensors(node, slot, value) if slot in node.saved_names else plain(node, slot, value)
    match = FROM_SHAPE.fullmatch(asked)
    if match is None:
        raise KeyError(name)
    of_shape = slots.get(match["argument"] + "_sym_sizes")
    if of_shape is not None and not match["steps"]:
        return from_shape(getattr(node, of_shape), match)
    kept = tensors(node, slots[match["argument"]], getattr(node, slots[match["argument"]]))
    if not isinstance(kept, Tensor):
        raise KeyError(name)
    return tuple(kept.stride()) if match["steps"] else from_shape(kept.shape, match)


def from_shape(shape: Any, match: re.Match[str]) -> Any:
    """The part of a shape that a name stands for. An argument that was not given has the shape (0,) in PyTorch."""
    if shape is None:
        return (0,)
    if match["whole"] is not None:
        return tuple(shape)
    if match["count"] is not None:
        count = 1
        for extent in shape:
            count *= extent
        return count
    return shape[-int(match["place"]) if match["minus"] else int(match["place"])]


def plain(node: Node, slot: str, value: Any) -> Any:
    """A value that is not a tensor: a single number stands for a list of one, and negative numbers become unsigned."""
    kind = declared_type(node, slot)
    if kind.startswith("Tensor") and type(value) in NUMBERS:
        return number_tensor(value)
    if not kind.startswith(("int", "SymInt")):
        return value
    if "[" not in kind:
        return value % UNSIGNED if type(value) is int else value
    if type(value) is int:
        value = (value,)
    if type(value) not in (list, tuple):
        return value
    length = kind.partition("[")[2].partition("]")[0]
    times = int(length) if length and len(value) == 1 else 1  # one number stands for all directions
    return tuple(one % UNSIGNED for one in value) * times


def declared_type(node: Node, slot: str) -> str:
    """The type of an argument in the op's signature, or nothing."""
    if node.recorded_by is None:
        return ""
    return next((one.type for one in node.recorded_by.schema.arguments if slot == f"v_{one.name}"), "")


def number_tensor(value: Any) -> Tensor:
    """A number in the place of a tensor, as PyTorch keeps it: in the widest type of its kind."""
    return wrap(np.array(value, NUMBERS[type(value)]))


def tensors(node: Node, slot: str, kept: Any) -> Any:
    """A saved tensor as the program sees it, or a tuple of them: an output has its history."""
    if kept is None:  # it was not needed for the requested gradients
        return None
    if type(kept) is tuple and type(kept[0]) in NUMBERS:
        return number_tensor(kept[0])
    if type(kept) is list:
        return tuple(tensors(node, slot, one) for one in kept)
    tensor = unpack(node, kept)
    is_result = kept.is_result if type(kept) is Packed else type(kept) is tuple and len(kept) == 3
    number = int(slot[len("v_result"):] or 0) if is_result else 0
    known = None if node.recorded_by is None else node.recorded_by.differentiable
    if is_result and tensor._edge is None and is_differentiable_dtype(tensor._a.dtype) and (
            known is None or number in known):
        tensor._rg, tensor._edge = True, (node, number)
    return tensor


def raw(node: Node, slot: str) -> Any:
    """What a node has saved, before it is unpacked."""
    if slot not in node.saved_names:
        raise KeyError(slot)
    kept = getattr(node, slot)
    if type(kept) is list or (kept is RELEASED and declared_type(node, slot).partition("(")[0].endswith("]")):
        return several(node, kept)
    return SavedTensor.of(node, node, slot)


def several(node: Node, kept: Any) -> tuple[SavedTensor, ...]:
    """A list of what was saved."""
    if kept is RELEASED:
        raise RuntimeError(SECOND_BACKWARD)
    return tuple(SavedTensor.of(node, kept, place) for place in range(len(kept)))


class SavedTensor:
    """A saved value, for hooks that pack it: an attribute of the holder, or an index in a list."""

    node: Node
    holder: Any
    place: str | int

    def __init__(self) -> None:
        raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden.")

    @classmethod
    def of(cls, node: Node, holder: Any, place: str | int) -> SavedTensor:
        """What is saved in one place."""
        made = object.__new__(cls)
        made.node, made.holder, made.place = node, holder, place
        return made

    def register_hooks(self, *hooks: Callable[[Any], Any]) -> None:
        """Pack the saved tensor now with the first; unpack it with the second when backward needs it."""
        if len(hooks) != 2 or not all(map(callable, hooks)):
            raise TypeError("register_hooks(): incompatible function arguments: expected two functions, to pack and "
                            "to unpack")
        saved = self.holder[self.place] if isinstance(self.place, int) else getattr(self.holder, self.place)
        if saved is RELEASED:
            raise RuntimeError("Calling register_hooks on a saved tensor after it has been freed. Saved intermediate "
                               "values of the graph are freed when you call .backward() or autograd.grad(). Specify "
                               "retain_graph=True to go through the graph a second time, or to set hooks later.")
        if type(saved) is Packed:
            raise RuntimeError("Calling register_hooks on a saved tensor whose hooks have already been set. "
                               "Hint: only one pair of hooks is allowed at a time.")
        if type(saved) is not tuple or saved[0] is None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        pack, unpack_hook = hooks
        made = packed(saved, lambda tensor: pack(detached(tensor)), unpack_hook)
        if isinstance(self.place, int):
            self.holder[self.place] = made
        else:
            setattr(self.holder, self.place, made)
        self.node.ensure_hooks()
