"""The op table: every op is one `Op`, declared once in `_ops`; everything else is derived from it.

`declare` only stores its arguments. Parsing, code generation and compilation wait until an op is first used, so
importing the package does not pay for ops that a program never calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._backends.overlap import apart
from .dtype_rules import REFUSED, choosy
from .schema import Schema, op_name, parse_schema

Formula = Callable[..., Any]


class Op:
    """One op: its signature, kernels, derivative, shape rule and cost.

    - `cpu`: kernel on arrays (tensor arguments arrive as arrays, the rest as given); `cpu_full`, if set, is used
      instead whenever a non-tensor argument differs from its default, so that `cpu` can be a bare ufunc.
      `cpu_inplace`, if set, is the kernel of the in-place form: it writes into its first array and returns it.
    - `composite`: a function on tensors, for ops that are made of other ops.
    - `grad`: maps an argument name (or a tuple of names) to its formula. A formula's parameter names say what to
      keep: `grad`/`grads` (`given_grads`: with None for unused outputs), an argument's name, `<tensor>_shape`,
      `<tensor>_strides` (in bytes), `<tensor>_geometry` (shape, strides and offset in its storage, in elements),
      `<tensor>_options` (its dtype and device), `result`, `result0`…, `needs`.
    - `promote`: how tensor operands are converted to one dtype, see `codegen`.
    - `view`: the result shares the first argument's memory.
    - `inplace`: an in-place twin `name_` exists; `inplace_node`: its nodes' name, if it is not that of the op's nodes;
      `inplace_grad`: its formulas, if they are not those of the op.
    - `where`: "f" a torch function, "m" a Tensor method, "n" only in `torch.nn.functional` or internal.
    - `meta`: shape rule on `(shape, dtype)` pairs; `flops`: formula on argument shapes.
    - `namespace`: "aten", unless a program has added the op; `signature` is then the schema to show.
    """

    __slots__ = (
        "_schema",
        "composite",
        "cpu",
        "cpu_full",
        "cpu_inplace",
        "differentiable",
        "flops",
        "forms",
        "grad",
        "inplace",
        "inplace_grad",
        "inplace_node",
        "key",
        "meta",
        "name",
        "namespace",
        "node",
        "npu",
        "overload",
        "promote",
        "scalar_overload",
        "schema_text",
        "signature",
        "variadic",
        "view",
        "where",
    )

    def __init__(self, schema: str, **facts: Any) -> None:
        self.schema_text = schema
        self.name, self.overload = op_name(schema)
        self.namespace: str = facts.pop("namespace", "aten")
        self.signature: Any = facts.pop("signature", None)
        self.key = f"{self.name}.{self.overload}" if self.overload else self.name
        if self.namespace != "aten":
            self.key = f"{self.namespace}::{self.key}"
        self.cpu: Callable[..., Any] | None = facts.pop("cpu", None)
        self.cpu_full: Callable[..., Any] | None = facts.pop("cpu_full", None)
        self.cpu_inplace: Callable[..., Any] | None = facts.pop("cpu_inplace", None)
        self.composite: Callable[..., Any] | None = facts.pop("composite", None)
        self.grad: dict[Any, Formula] = facts.pop("grad", None) or {}
        self.node: str = facts.pop("node", None) or default_node_name(self.name)
        self.inplace_grad: dict[Any, Formula] | None = facts.pop("inplace_grad", None)
        self.inplace_node: str = facts.pop("inplace_node", self.node)
        self.promote: str | None = facts.pop("promote", None)
        self.scalar_overload: str | None = facts.pop("scalar_overload", None)
        self.view: bool = facts.pop("view", False)
        self.inplace: bool = facts.pop("inplace", False)
        self.variadic: str | None = facts.pop("variadic", None)
        self.where: str = facts.pop("where", "fm")
        self.meta: Any = facts.pop("meta", None)
        self.flops: Any = facts.pop("flops", None)
        self.npu: Any = facts.pop("npu", None)
        self.differentiable: tuple[int, ...] | None = facts.pop("differentiable", None)
        self.forms: dict[bool, Callable[..., Any]] = {}
        self._schema: Schema | None = None
        if facts:
            raise TypeError(f"{self.key}: unknown facts {sorted(facts)}")
        if (self.cpu or self.cpu_inplace) is None and self.composite is None:
            raise TypeError(f"{self.key}: an op has a kernel or a composite body")
        if self.cpu_inplace is not None:
            self.inplace = True
        if self.composite is not None and self.inplace:
            raise TypeError(f"{self.key}: the in-place form of a composite is an op of its own, `{self.name}_`")

    @property
    def schema(self) -> Schema:
        """The parsed signature."""
        if self._schema is None:
            self._schema = parse_schema(self.schema_text)
        return self._schema

    def formulas(self, inplace: bool) -> dict[Any, Formula]:
        """The derivative of the plain or in-place form."""
        return self.inplace_grad if inplace and self.inplace_grad is not None else self.grad

    def __repr__(self) -> str:
        return f"<Op {self.namespace}::{self.name}{'.' * bool(self.overload)}{self.overload}>"


def default_node_name(name: str) -> str:
    """`_log_softmax` gives `LogSoftmaxBackward0`, as in PyTorch."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_")) + "Backward0"


OPS: dict[str, Op] = {}
OVERLOADS: dict[str, list[Op]] = {}
# Ops with several overloads get a chooser: a plain function with the public signature that calls the right one.
CHOOSERS: dict[str, tuple[Callable[..., Any], str]] = {}


def declare(schema: str, **facts: Any) -> Op:
    """Add an op to the table."""
    op = Op(schema, **facts)
    if op.key in REFUSED:
        for form in ("cpu", "cpu_full", "cpu_inplace"):
            kernel = getattr(op, form)
            if kernel is not None:
                setattr(op, form, choosy(op.key, kernel))
    if op.cpu_inplace is not None and op.name != "index_put":  # it calls `_index_put_impl_`
        op.cpu_inplace = apart(op.name, op.cpu_inplace)
    if op.key in OPS:
        raise ValueError(f"aten::{op.key} is declared twice")
    OPS[op.key] = op
    OVERLOADS.setdefault(op.name, []).append(op)
    return op


def choose(name: str, where: str = "fm") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: this function chooses among the overloads of `name`."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        if name in CHOOSERS:
            raise ValueError(f"{name} has two choosers")
        CHOOSERS[name] = (function, where)
        if "<" in function.__qualname__:  # which Python's own errors about arguments show, and pickles
            function.__qualname__ = name
            if "f" in where:
                function.__module__ = "torch"
        return function

    return register


def is_public(name: str, letter: str) -> bool:
    """Whether a name exists as a torch function ("f") or a Tensor method ("m"), among the loaded families."""
    if name in CHOOSERS:
        return letter in CHOOSERS[name][1]
    if name in OVERLOADS:
        return any(letter in op.where for op in OVERLOADS[name])
    return name.endswith("_") and any(op.inplace and letter in op.where for op in OVERLOADS.get(name[:-1], []))


def public_names(letter: str) -> list[str]:
    """All names that exist as torch functions ("f") or Tensor methods ("m"), in-place forms included."""
    names = {name for name, (_, where) in CHOOSERS.items() if letter in where}
    for name, ops in OVERLOADS.items():
        for op in ops:
            if letter in op.where:
                if name not in CHOOSERS:
                    names.add(name)
                if op.inplace and f"{name}_" not in CHOOSERS:
                    names.add(f"{name}_")
    return sorted(names)
