"""Execution traces as PyTorch writes them: a JSON file with a node for each op, scope and thread.

The layout is schema 1.1.1-chakra.0.0.4. Numbers of nodes, tensors and storages come from one counter. A tensor is
`[number, storage's number, offset, elements, bytes per element, device]`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mtprof.json_text import text

from ..._device import device
from ..._dispatch.observer import EVENTS
from ..._dispatch.registry import OPS
from ..._dispatch.schema import Argument, list_length
from ..._dtype import dtype
from ..._memory_format import memory_format
from .op_schemas import Form, arguments_of, form_of, form_of_step, schema_text
from .tap import ExecutionTraceTap, Lane, Noted, OtherNote, TensorNote

SCHEMA = "1.1.1-chakra.0.0.4"
PROCESS = "[pytorch|profiler|execution_trace|process]"
THREAD = "[pytorch|profiler|execution_trace|thread]"

# PyTorch's names of element types, and its numbers for them.
ELEMENTS = {
    "uint8": ("unsigned char", 0), "int8": ("signed char", 1), "int16": ("short int", 2), "int32": ("int", 3),
    "int64": ("long int", 4), "float16": ("c10::Half", 5), "float32": ("float", 6), "float64": ("double", 7),
    "complex64": ("c10::complex<float>", 9), "complex128": ("c10::complex<double>", 10), "bool": ("bool", 11),
    "bfloat16": ("c10::BFloat16", 15),
}
FORMATS = {"contiguous_format": 0, "preserve_format": 1, "channels_last": 2, "channels_last_3d": 3}
# For the kinds of `EVENTS`; other kinds are work that a user or a library named.
SCOPES = {"op": 0, "backward": 0, "backward_function": 1}
USER_SCOPE = 7
# A number in place of a tensor becomes a tensor without dimensions, of these element types.
WRAPPED = {bool: ("bool", 1), int: ("long int", 8), float: ("double", 8), complex: ("c10::complex<double>", 16)}
UNDEFINED = "Tensor(nullptr (uninitialized))"


@dataclass(frozen=True)
class Described:
    """A value in the form of the file."""

    value: Any
    shape: Any
    type: str
    strides: Any


class TraceText:
    """Makes the text of a tap's notes."""

    def __init__(self, tap: ExecutionTraceTap) -> None:
        self.tap = tap
        self.finished = list(tap.finished)
        self.still_open = tap.open_nodes()
        # Outputs that cannot have a gradient, such as indices, are not among a backward function's inputs.
        self.differentiable = {op.node: op.differentiable for op in OPS.values() if op.differentiable is not None}

    def chunks(self, start_ms: int, finish_ms: int, time: str) -> Iterator[bytes]:
        """The file, piece by piece."""
        yield (f'{{\n  "schema": {text(SCHEMA)}, "pid": {self.tap.pid}, "time": {text(time)}, '
               f'"start_ts": {start_ms},\n  "nodes": [').encode()
        for node in self._nodes():
            yield node.encode() + b","
        yield (self._node(self.tap.root, PROCESS, self.tap.root, [], [], self._attributes())
               + f'\n  ],\n  "finish_ts": {finish_ms}\n}}\n').encode()

    def _nodes(self) -> Iterator[str]:
        """All nodes except the process: threads when they were first seen, the rest in the order of their ends."""
        lanes = sorted(self.tap.lanes, key=lambda lane: lane.place)
        for place, node in enumerate(self.finished):
            while lanes and lanes[0].place <= place:
                yield self._lane(lanes.pop(0))
            yield self._noted(node)
        for lane in lanes:
            yield self._lane(lane)
        for node in self.still_open:
            # Not ended yet, but others have it as their parent.
            yield self._noted(node)

    def _lane(self, lane: Lane) -> str:
        return self._node(lane.id, THREAD, self.tap.root, [], [], self._attributes(tid=lane.number))

    def _noted(self, node: Noted) -> str:
        if node.op is not None:
            form = form_of(node.op, node.inplace, node.inputs)
            values = [node.inputs[place] if place is not None else _default(argument)
                      for argument, place in arguments_of(form)]
            name = f"{node.op.namespace}::{node.op.name}{'_' * node.inplace}"
            return self._op(node, name, form, values, self._outputs(node))
        name, kind, overload, _ = EVENTS[node.event]
        if kind == "op" and name.startswith("aten::"):
            # A step of a kernel, which has an op's name and arguments.
            made = node.outputs if isinstance(node.outputs, tuple) and not isinstance(node.outputs, TensorNote) else (
                () if node.outputs is None else (node.outputs,))
            return self._op(node, name, form_of_step(name, overload, len(node.inputs)), node.inputs,
                            [self._describe(value) for value in made])
        return self._span(node, name, kind)

    def _op(self, node: Noted, name: str, form: Form | None, values: list[Any], outputs: list[Described]) -> str:
        if form is None:
            inputs = [self._list(value) if type(value) is tuple else self._describe(value) for value in values]
        else:
            inputs = self._inputs(node, form, values)
        return self._node(node.id, name, node.parent, inputs, [] if node.failed else outputs, self._attributes(
            node, scope=0, op_schema="" if form is None else schema_text(form)))

    def _span(self, node: Noted, name: str, kind: str) -> str:
        given = node.inputs
        backward = kind == "backward_function"
        if kind == "op":
            given = [value for value in given if isinstance(value, TensorNote)]  # a custom function's tensors
        elif backward and name in self.differentiable:
            given = [given[output] for output in self.differentiable[name] if output < len(given)]
        inputs = [self._undefined() if value is None and backward else self._describe(value) for value in given]
        return self._node(node.id, name, node.parent, inputs, [], self._attributes(
            node, scope=SCOPES.get(kind, USER_SCOPE)))

    # -- facts of a node ---------------------------------------------------------------------------------------------

    def _attributes(self, node: Noted | None = None, *, scope: int = USER_SCOPE, tid: int = 0,
                    op_schema: str = "") -> list[tuple[str, str, Any]]:
        ranges = "" if node is None or not node.ranges else text(
            {str(position): list(bounds) for position, bounds in node.ranges.items()})
        return [
            ("rf_id", "uint64", 0 if node is None else node.record_id),
            ("fw_parent", "uint64", 0 if node is None else node.forward_parent),
            ("seq_id", "int64", -1 if node is None else node.seq),
            ("scope", "uint64", scope),
            ("tid", "uint64", tid if node is None else node.lane.number),
            ("fw_tid", "uint64", 0 if node is None else node.forward),
            ("op_schema", "string", op_schema),
            ("kernel_backend", "string", ""),
            ("kernel_file", "string", ""),
            ("tensor_range", "string", ranges),
        ]

    def _inputs(self, node: Noted, form: Form, values: list[Any]) -> list[Described]:
        inputs = []
        factory = not form.op.schema.tensors
        for place, ((argument, _), value) in enumerate(zip(arguments_of(form), values)):
            if value is None and factory:
                # PyTorch's callers pass the device, and that the memory is not pinned.
                if argument.name == "device" and isinstance(node.outputs, TensorNote):
                    value = node.outputs.device
                elif argument.name == "pin_memory":
                    value = False
            scalar = form.scalar and place == 1
            inputs.append(self._describe(value) if scalar else self._argument(argument, value))
        if form.out:
            inputs.append(self._describe(node.inputs[-1]))
        return inputs

    def _outputs(self, node: Noted) -> list[Described]:
        returns = node.op.schema.returns if node.op is not None else ()
        if not returns or node.outputs is None:
            return []
        if len(returns) == 1:
            several = returns[0].endswith("[]")
            return [self._list(node.outputs) if several else self._describe(node.outputs)]
        return [self._describe(value) for value in node.outputs]

    # -- values ------------------------------------------------------------------------------------------------------

    def _argument(self, argument: Argument, value: Any) -> Described:
        """An argument of an op, converted to the type in the signature."""
        kind = argument.type.rstrip("?")
        if value is None:
            number = argument.default is not None and argument.default.isdecimal()
            return self._describe(int(argument.default or 0) if number else None)
        if "[" in kind:
            # A single number stands for as many as the signature has.
            items = list(value) if isinstance(value, (list, tuple)) else [value] * list_length(kind)
            element = Argument(argument.name, kind.partition("[")[0], None, False)
            return self._list([item if item is None else _converted(element, item) for item in items],
                              tensors=kind.startswith("Tensor"))
        if kind == "Tensor" and type(value) in WRAPPED:
            name, size = WRAPPED[type(value)]
            return Described([next(self.tap.ids), next(self.tap.ids), 0, 1, size, "cpu"], [], f"Tensor({name})", [])
        return self._describe(_converted(argument, value))

    def _list(self, items: Iterable[Any], *, name: str = "GenericList", tensors: bool = False) -> Described:
        described = [self._undefined() if item is None and tensors else self._describe(item) for item in items]
        return Described([d.value for d in described], [d.shape for d in described],
                         f"{name}[{','.join(d.type for d in described)}]", [d.strides for d in described])

    def _undefined(self) -> Described:
        return Described([next(self.tap.ids), 0, 0, 0, 0, ""], [], UNDEFINED, [])

    def _describe(self, value: Any) -> Described:
        if isinstance(value, TensorNote):
            name = ELEMENTS[value.dtype.name][0] if value.dtype.name in ELEMENTS else value.dtype.name
            strides = [step // value.dtype.itemsize for step in value.strides]
            return Described([value.number, value.storage, value.offset, math.prod(value.shape), value.dtype.itemsize,
                              str(value.device)], list(value.shape), f"Tensor({name})", strides)
        if isinstance(value, tuple) and not isinstance(value, OtherNote):
            return self._list(value, name="Tuple")
        if isinstance(value, list):
            return self._list(value)
        return Described(*_plain(value))

    # -- text --------------------------------------------------------------------------------------------------------

    def _node(self, identity: int, name: str, parent: int, inputs: Sequence[Described], outputs: Sequence[Described],
              attributes: Sequence[tuple[str, str, Any]]) -> str:
        facts = ",".join(f'{{"name": "{key}", "type": "{kind}", "value": {text(value)}}}'
                         for key, kind, value in attributes)
        return (f'\n      {{\n        "id": {identity}, "name": {text(name)}, "ctrl_deps": {parent},\n'
                f'        "inputs": {_columns(inputs)},\n        "outputs": {_columns(outputs)},\n'
                f'        "attrs": [{facts}]\n      }}')


def _columns(values: Sequence[Described]) -> str:
    return (f'{{"values": {text([v.value for v in values])}, "shapes": {text([v.shape for v in values])}, '
            f'"types": {text([v.type for v in values])}, "strides": {text([v.strides for v in values])}}}')


def _default(argument: Argument) -> Any:
    return {None: None, "None": None, "False": False, "True": True}.get(argument.default, argument.default)


def _converted(argument: Argument, value: Any) -> Any:
    """A Python value converted to the signature's type: `float p` turns 1 into 1.0."""
    kind = argument.type.rstrip("?")
    if kind == "float" and type(value) is int:
        return float(value)
    if kind in ("int", "SymInt") and type(value) is bool:
        return int(value)
    if kind == "bool" and type(value) is int:
        return bool(value)
    if kind == "Device" and isinstance(value, str):
        return device(value)
    return value


def _plain(value: Any) -> tuple[Any, list[Any], str, list[Any]]:
    """A constant: its value in the file, no shape, PyTorch's name of its type, no strides."""
    if value is None:
        return "<None>", [], "None", []
    if isinstance(value, bool):
        return value, [], "Bool", []
    if isinstance(value, int):
        return value, [], "Int", []
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value), [], "Double", []
    if isinstance(value, complex):
        return "<ComplexDouble>", [], "ComplexDouble", []
    if isinstance(value, str):
        return value, [], "String", []
    if isinstance(value, dtype):
        return ELEMENTS[value.name][1], [], "Int", []
    if isinstance(value, memory_format):
        return FORMATS[value.name], [], "Int", []
    if isinstance(value, device):
        return str(value), [], "Device", []
    name = value.kind.__name__ if isinstance(value, OtherNote) else type(value).__name__
    if name == "layout":
        return 0, [], "Int", []
    return f"<{name}>", [], name, []
