"""Writes the part of an op's function that records a node, and the node's own function, `apply`.

Names are those of `codegen`. A formula's parameter names say what the node saves for it, in slots that begin with `v_`.
"""

from __future__ import annotations

from .facts import Facts
from .schema import Argument, parse_schema


class GraphWriter:
    """Collects the lines of one function; knows the op's derivative."""

    pairwise: bool  # whether two operands are converted to one dtype

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.inplace = facts.inplace
        self.schema = parse_schema(facts.schema_text)
        self.name = self.schema.name + "_" * facts.inplace
        self.lines: list[str] = []
        self.tensors = list(self.schema.tensors)
        self.slots: dict[str, str] = {}
        self.saved: list[str] = []

    def argument_names(self) -> list[str]:
        return [a.name for a in self.schema.arguments]

    def add(self, indent: int, *lines: str) -> None:
        self.lines += ["    " * indent + line for line in lines]

    # -- recording a node ------------------------------------------------------------------------------------------

    def differentiable(self) -> list[tuple[int, Argument]]:
        named = {name for names, _ in self.facts.formulas for name in names}
        return [(i, a) for i, a in enumerate(self.tensors) if a.name in named]

    def needs_grad(self) -> str:
        tests = []
        for i, argument in self.differentiable():
            if argument.is_list:
                name = argument.python_name
                tests.append(f"any(t_._rg or t_._of is not None and t_._of[0]._rg for t_ in {name})")
            else:
                tests.append(f"v{i}._rg or v{i}._of is not None and v{i}._of[0]._rg")
        return "(" + " or ".join(tests) + ") and (s_ := THREAD.state).grad"

    def edges(self, indent: int) -> None:
        """Where gradients go. Of a change in place they are asked for before it counts: views follow it later."""
        for i, argument in self.differentiable():
            if argument.is_list:
                self.add(indent, f"e{i} = [edge(t_) for t_ in {argument.python_name}]")
            else:
                plain = f"v{i}._edge or (leaf_edge(v{i}) if v{i}._rg else None)"
                self.add(indent, f"e{i} = ({plain}) if v{i}._of is None else edge(v{i})")

    def everyone(self) -> set[str]:
        """The arguments that can have a gradient."""
        return {argument.name for _, argument in self.differentiable()}

    def users_of(self, parameter: str) -> set[str]:
        """The arguments whose gradients are computed from something saved."""
        return {name for names, parameters in self.facts.formulas if parameter in parameters for name in names}

    def saves(self, indent: int) -> None:
        index = {a.name: i for i, a in enumerate(self.tensors)}
        users: dict[str, list[str]] = {}
        for names, parameters in self.facts.formulas:
            for parameter in parameters:
                if parameter not in ("grad", "grads", "given_grads", "needs"):
                    users.setdefault(parameter, []).extend(names)
        conditions: dict[str, str] = {}  # conditions under which an argument is kept, if not always
        for parameter, wanted in users.items():
            slot = f"v_{parameter}"
            self.slots[parameter] = slot
            value, is_saved = self.saved_value(parameter, index)
            if is_saved:
                self.saved.append(slot)
                if set(wanted) != self.everyone() and all(not self.tensors[index[n]].is_list for n in wanted):
                    test = " or ".join(f"e{index[n]} is not None" for n in dict.fromkeys(wanted))
                    value = f"({value}) if {test} else None"
                    conditions[parameter] = f" if {test} else None"
            self.add(indent, f"node_.{slot} = {value}")
        kept = [f"type(v{index[p]}._st){conditions.get(p, '')}" for p in users
                if p in index and not self.tensors[index[p]].is_list]
        if kept:
            self.add(indent, f"if INFERENCE_SEEN and InferenceShared in ({', '.join(kept)},): refuse_saving()")

    def saved_value(self, parameter: str, index: dict[str, int]) -> tuple[str, bool]:
        if parameter in index:
            i = index[parameter]
            argument = self.tensors[i]
            if argument.is_list:
                return f"save_list({argument.python_name})", True
            if self.inplace and i == 0:
                return "save(kept_)", True
            # An operand that shares the changed memory is kept as it was before: backward refuses it.
            version = f"v{i}._st.version - (v{i}._st is v0._st)" if self.inplace else f"v{i}._st.version"
            kept = f"(v{i}, 0 if v{i}._st is None else {version})"
            if (self.pairwise and i == 1) or argument.is_optional:
                return f"({argument.python_name}, -1) if v{i} is NO_TENSOR else {kept}", True
            return kept, True
        if parameter.startswith("result"):
            number = int(parameter[len("result"):] or 0)
            # Array, what it shares with the output, version: the output itself would keep this node alive.
            if self.schema.returns == ("Tensor",) and not self.inplace and not self.facts.view:
                return "(r_, first_share(t_), 0)", True
            output = self.output(number)
            return f"({output}._a, {output}._st or {output}.shared(), {output}._version)", True
        # For formulas that need only the memory layout of an argument; its contents are not kept.
        if parameter.endswith("_strides") and parameter[: -len("_strides")] in index:
            return f"v{index[parameter[: -len('_strides')]]}._a.strides", False
        if parameter.endswith("_geometry"):
            return f"geometry(v{index[parameter[: -len('_geometry')]]})", False
        if parameter.endswith("_options"):
            i = index[parameter[: -len("_options")]]
            return f"(v{i}.dtype, v{i}.device)", False
        if parameter.endswith("_shape") and parameter not in self.argument_names():
            i = index[parameter[: -len("_shape")]]
            if self.tensors[i].is_list:
                return f"[t_._a.shape for t_ in {self.tensors[i].python_name}]", False
            if self.tensors[i].is_optional:
                return f"None if a{i} is None else a{i}.shape", False
            return f"a{i}.shape", False
        names = {a.name: a.python_name for a in self.schema.arguments}
        if parameter not in names:
            raise TypeError(f"{self.facts.key}: formula asks for unknown {parameter!r}")
        if any(a.name == parameter and a.type == "Any" for a in self.schema.arguments):  # tensors that index
            return f"save_list({names[parameter]})", True
        kind, default = next((a.type, a.default) for a in self.schema.arguments if a.name == parameter)
        name = names[parameter]
        if kind in ("Scalar", "Scalar?") and "Scalar" not in self.facts.key:
            # A tensor that was given for a number may change before backward. Most calls leave an alpha at its 1.
            first = f"{name} is ONE or " if default == "1" else ""
            return f"{name} if {first}type({name}) in NUMBERS else number_of({name})", False
        return name, False

    def output(self, number: int) -> str:
        return "t_" if len(self.schema.returns) == 1 else f"t_[{number}]"

    def record(self, indent: int) -> None:
        returns = self.schema.returns
        self.add(indent, "node_ = new(node_class_)")
        if not self.inplace:
            self.edges(indent)
        parts = [f"*e{i}" if argument.is_list else f"e{i}" for i, argument in self.differentiable()]
        self.add(indent, f"node_.edges = ({', '.join(parts)},)")
        self.add(indent, "node_.seq = s_.seq", "s_.seq += 1", "node_.hooks = None")
        self.saves(indent)
        if len(returns) == 1 and returns[0] == "Tensor":
            self.add(indent, "node_.meta = ((r_.shape, r_.dtype),)")
            if self.inplace:
                self.add(indent, "rebase(t_, node_)")
            else:
                self.add(indent, "t_._rg = True", "t_._edge = (node_, 0)")
        else:
            self.add(indent, "node_.meta = tuple((x._a.shape, x._a.dtype) for x in t_)")
            if self.facts.differentiable is None:
                self.add(indent, "for i_, x_ in enumerate(t_): x_._rg = True; x_._edge = (node_, i_)")
            else:
                chosen = self.facts.differentiable
                self.add(indent, f"for i_ in {chosen!r}: t_[i_]._rg = True; t_[i_]._edge = (node_, i_)")
        self.add(indent, "if s_.pack_hooks: apply_pack_hooks(node_)")

    # -- the node's apply ------------------------------------------------------------------------------------------

    def apply_source(self) -> str:
        """Source of `apply(node, *grads)` for this op's node class; call after `source`."""
        order = [a.name for _, a in self.differentiable()]
        lines = ["def make(" + ", ".join(["unpack", "unpack_result", "F", "zeros_for"]) + "):"]
        multiple = self.schema.returns != ("Tensor",)
        lines.append("    def apply(node, *grads):")
        uses_grads = any("grads" in parameters for _, parameters in self.facts.formulas)
        if multiple and uses_grads:
            lines.append("        grads = zeros_for(node, grads)")
        lines.append("        grad = grads[0]" if self.facts.differentiable in (None, (0,)) else
                     f"        grad = grads[{self.facts.differentiable[0]}]")
        lines.append("        edges = node.edges")
        listed = [a for _, a in self.differentiable() if a.is_list]
        if listed and len(order) > 1:
            raise TypeError(f"{self.facts.key}: a tensor list may only be differentiated alone")
        position = {name: i for i, name in enumerate(order)}
        results: dict[str, str] = {}
        # By name, as in PyTorch, so that a profile shows the same order.
        for g, (names, parameters) in sorted(enumerate(self.facts.formulas), key=lambda group: group[1][0]):
            arguments = [self.apply_argument(parameter, names, position) for parameter in parameters]
            call = f"F[{g}]({', '.join(arguments)})"
            if listed:
                lines.append(f"        return tuple({call})")
                return "\n".join(lines) + "\n    return apply\n"
            test = " or ".join(f"edges[{position[n]}] is not None" for n in names)
            if len(names) == 1:
                lines.append(f"        g{g} = {call} if {test} else None")
                results[names[0]] = f"g{g}"
            else:
                nothing = ", ".join("None" for _ in names)
                lines.append(f"        g{g} = {call} if {test} else ({nothing})")
                # A value that was computed with the rest but is not needed is freed here, not when the node is done.
                results.update({name: f"(g{g}[{k}] if edges[{position[name]}] is not None else None)"
                                for k, name in enumerate(names)})
        lines.append(f"        return ({', '.join(results[name] for name in order)},)")
        return "\n".join(lines) + "\n    return apply\n"

    def apply_argument(self, parameter: str, names: tuple[str, ...], position: dict[str, int]) -> str:
        if parameter in ("grad", "grads"):
            return parameter
        if parameter == "given_grads":  # with None for unused outputs; for formulas that allow this
            return "grads"
        if parameter == "needs":
            inside = ", ".join(f"edges[{position[n]}] is not None" for n in names)
            return f"({inside},)"
        slot = self.slots[parameter]
        if slot not in self.saved:
            return f"node.{slot}"
        if parameter.startswith("result"):
            return f"unpack_result(node, node.{slot}, {int(parameter[len('result'):] or 0)})"
        return f"unpack(node, node.{slot})"
