"""Writes the Python source of an op's function from its declaration.

Every op gets a function of its own, with its arity, unwrapping, promotion, graph recording and the profiler's check
written out; at call time nothing loops over arguments or checks the kind of the op. For `mul` it is, in short:

    def mul(input, other, *, out=None):
        start_ = None
        try:
            if OBSERVING: ...                       # the profiler's hook: describe inputs, read the clock
            a0 = input._a
            ...                                     # array of `other`, both in one dtype
            r_ = (kernel_ if type(a0) is ndarray else device_kernel(op_, a0, 'new'))(a0, a1)
            t_ = new(Tensor); ...                   # wrap
            if v0._rg or v1._rg ...: ...            # record a node
            return t_
        except Exception as error_: raise explain(op_, error_, (input, other), "mul")
        finally:
            if start_ is not None: ...              # the profiler's hook: append the event

Names ending in a digit belong to the tensor argument of that number: `v0` the tensor, `a0` its array, `e0` its edge.
Other local names end in `_`, which no argument's does.
"""

from __future__ import annotations

from .autocast_lists import POLICIES
from .facts import Facts
from .graph_codegen import GraphWriter
from .native import NATIVE
from .out_rules import COMPOSITES, COMPUTED_AS_OUT, WITHOUT_OUT

PROMOTE_PAIR = {"binary": "promote_arrays", "compare": "promote_arrays", "difference": "differing_arrays",
                "binary_float": "float_pair", "product": "product_arrays", "quotient": "quotient_arrays"}
NUMBERS_ADD = frozenset({"add", "sub", "mul", "div", "floor_divide"})  # `torch.add(1, 2)` is a tensor
PROMOTE_SCALAR = {"binary": "promote_number", "compare": "promote_number", "difference": "differing_number",
                  "binary_float": "float_number", "product": "product_number", "quotient": "quotient_number"}
WIDE = frozenset({"product", "quotient"})  # in these, a number with 16-bit floats keeps its digits


# Ops whose variadic argument can be something else under another keyword: `x.view(dtype=torch.int32)`.
VARIADIC_OR = {"view": "dtype"}


# Ops that old programs call with factors between the tensors.
OLDER = frozenset({"add.Tensor", "sub.Tensor", "addcmul", "addcdiv", "addmm", "addmv", "addr", "addbmm", "baddbmm"})


# In place, these read their other operands while they write, as ops that promote do.
BY_ELEMENT = frozenset({"addcdiv", "addcmul", "clamp", "clamp_max", "clamp_min", "lerp"})


class Writer(GraphWriter):
    """Collects the lines of an op's function."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.pairwise = facts.promote in PROMOTE_PAIR
        self.older = facts.key in OLDER
        self.has_out = (not facts.inplace and not facts.view
                        and (not facts.composite or self.schema.name in COMPOSITES)
                        and self.schema.name not in WITHOUT_OUT and "out" not in self.argument_names())

    # -- signature -------------------------------------------------------------------------------------------------

    def signature(self) -> str:
        parts: list[str] = []
        starred = False
        for argument in self.schema.arguments:
            name = argument.python_name
            if self.facts.variadic == argument.name:
                parts.append(f"*{name}_")
                starred = True
                parts.append(f"{name}=None")
                if self.schema.name in VARIADIC_OR:
                    parts.append(f"{VARIADIC_OR[self.schema.name]}=None")
                continue
            if argument.keyword_only and not starred:
                parts.append("*")
                starred = True
            # PyTorch's Python functions have False where its signatures have None.
            public = not self.schema.name.startswith("_")
            default = "False" if name == "pin_memory" and public else argument.default
            parts.append(name if argument.default is None else f"{name}={default}")
        extra = ["out=None"] if self.has_out else []
        names = self.argument_names()
        if "dim" in names and self.facts.where != "n":
            extra.append("axis=None")
        if "keepdim" in names and self.facts.where != "n":
            extra.append("keepdims=None")
        if self.older:
            # Old programs put a factor between the tensors: `torch.add(x, 2, y)`.
            at = parts.index("*") if "*" in parts else len(parts)
            parts[at:at + 1] = ["*older_"]
            starred = True
        if extra and not starred:
            parts.append("*")
        return ", ".join(parts + extra)

    def normalise(self) -> None:
        if self.older:
            tensors = ", ".join(a.python_name for a in self.tensors)
            self.add(3, f"if older_: return older_form({self.name}, ({tensors}, *older_)"
                        f"{', out=out' if self.has_out else ''})")
        variadic = self.facts.variadic
        if variadic is not None:
            name = "input" if variadic == "self" else variadic
            other = VARIADIC_OR.get(self.schema.name)
            given = f"{name}_" if other is None else f"({name}_ if {other} is None else ({other},))"
            self.add(3, f"if {name} is None: {name} = {given} or argument_missing({self.name!r}, {name!r})")
            self.add(3, f"if len({name}) == 1 and not hasattr({name}[0], '__index__'):")
            self.add(4, f"{name} = {name}[0]")
            if other == "dtype":  # other bytes: no gradient flows back through them
                first = self.tensors[0].python_name
                self.add(4, f"if type({name}) is DTYPE and {first}.requires_grad: {first} = alias({first})")
        names = self.argument_names()
        if self.facts.where != "n":
            if "dim" in names:
                self.add(3, "if axis is not None: dim = axis")
            if "keepdim" in names:
                self.add(3, "if keepdims is not None: keepdim = keepdims")
        for name in (a.name for a in self.schema.arguments if a.type.startswith("ScalarType")):
            self.add(3, f"if {name} is not None and type({name}) is not DTYPE: "
                        f"{name} = as_dtype({name}, {self.name!r})")
        if self.has_out and self.schema.name in COMPUTED_AS_OUT and "dtype" in names:
            self.add(3, "if out is not None and dtype is None: dtype = out.dtype")

    def values(self) -> str:
        names = [a.python_name for a in self.schema.arguments]
        return f"({', '.join(names)}{',' if len(names) == 1 else ''})"

    # -- tensors to arrays -----------------------------------------------------------------------------------------

    def unwrap(self) -> None:
        for i, argument in enumerate(self.tensors):
            name = argument.python_name
            if argument.is_list:
                self.add(3, f"a{i} = [t_._a for t_ in {name}]")
                if self.facts.promote == "list":
                    self.add(3, f"a{i} = promote_list(a{i})")
            elif self.pairwise and i == 1:
                self.unwrap_second(name)
            elif argument.is_optional:
                self.add(3, f"if {name} is None: v{i} = NO_TENSOR; a{i} = None",
                         f"else: v{i} = {name}; a{i} = {name}._a")
            elif i == 0 and self.schema.name in NUMBERS_ADD and not self.inplace:
                # Both may be numbers. An exception that is not raised costs nothing.
                other = self.tensors[1].python_name if len(self.tensors) > 1 else None
                self.add(3, f"try: a0 = (v0 := {name})._a",
                         f"except AttributeError: v0 = number_tensor({name}, {other}); a0 = v0._a")
            else:
                self.add(3, f"v{i} = {name}", f"a{i} = v{i}._a")
        if self.facts.promote == "float":
            self.add(3, "if a0.dtype is not FLOAT32 and a0.dtype not in FLOAT_DTYPES: a0 = to_float(a0)")
        elif self.facts.promote in ("ternary", "ternary_float"):
            names = [f"a{i}" for i, a in enumerate(self.tensors)]
            joined = ", ".join(names)
            self.add(3, f"{joined} = promote_list([{joined}])")
            if self.facts.promote == "ternary_float":
                self.add(3, f"if a0.dtype not in FLOAT_DTYPES: {joined} = [to_float(a) for a in ({joined})]")

    def unwrap_second(self, name: str) -> None:
        promote = self.facts.promote or ""
        pair, scalar = PROMOTE_PAIR[promote], PROMOTE_SCALAR[promote]
        test = "a0.dtype is not a1.dtype"
        if promote in ("binary_float", "quotient"):
            test += " or a0.dtype not in FLOAT_DTYPES"
        self.add(
            3,
            f"kind_ = type({name})",
            "if kind_ is Tensor or kind_ in TENSOR_TYPES:",
            f"    v1 = {name}; a1 = v1._a",
            f"    if {test}: a0, a1 = {pair}(a0, a1)",
            "else:",
            f"    v1 = NO_TENSOR; plan_ = {'WIDE_PLANS' if promote in WIDE else 'NUMBER_PLANS'}.get((kind_, a0.dtype))",
            f"    if plan_ is None: a0, a1 = {scalar}(a0, {name})",
            f"    else: a1 = plan_({name})",
        )

    # -- the kernel ------------------------------------------------------------------------------------------------

    def call(self) -> None:
        arrays = {a.name: f"a{i}" for i, a in enumerate(self.tensors)}
        full = ", ".join(arrays.get(a.name, a.python_name) for a in self.schema.arguments)
        form = "'inplace'" if self.inplace else "'new'"
        if self.facts.cpu_full and not (self.inplace and self.facts.cpu_inplace):
            short = ", ".join(arrays.values())
            kernel_call = (f"r_ = kernel_({short}) if {self.other_defaults()} and type(a0) is ndarray else "
                           f"(kernel_full_ if type(a0) is ndarray else device_kernel(op_, a0, {form}))({full})")
        elif self.tensors:
            first, empty = ("a0[0]", "not a0 or ") if self.tensors[0].is_list else ("a0", "")
            kernel_call = (f"r_ = (kernel_ if {empty}type({first}) is ndarray else "
                           f"device_kernel(op_, {first}, {form}))({full})")
        else:
            kernel_call = f"r_ = kernel_({full})"
        self.add(3, kernel_call)

    def other_defaults(self) -> str:
        """A test whether all arguments except the tensors have their defaults."""
        tests = {"None": "is None", "1": "is ONE"}
        return " and ".join(f"{a.python_name} {tests.get(str(a.default), f'== {a.default}')}"
                            for a in self.schema.arguments if not a.is_tensor)

    def write_directly(self) -> None:
        """A ufunc writes directly into `out` if that fits; otherwise the result is stored there afterwards."""
        if not self.has_out or not self.facts.ufunc:
            return
        tests = ["out is not None"]
        if self.facts.cpu_full:
            tests.append(self.other_defaults())
        if self.differentiable():
            tests.append(f"not ({self.needs_grad()})")
        arrays = ", ".join(f"a{i}" for i in range(len(self.tensors)))
        self.add(3, f"if {' and '.join(tests)} and writes_into(kernel_, out, {arrays}): return out")

    # -- the profiler's hook, in two twins that record the same ----------------------------------------------------

    def describe(self) -> None:
        listed = ", ".join(a.python_name for a in self.schema.arguments)
        described = f"describe_[0]({listed})"
        if self.has_out:
            described = (f"({described} if out is None else describe_any({listed}, "
                         "*(out if type(out) in (tuple, list) else (out,))))")
        inputs = f"{described} if DESCRIBE else None"
        given_out = ["*(() if out is None else out if type(out) in (tuple, list) else (out,))"] * self.has_out
        used = [a.python_name for a in self.schema.arguments] + given_out
        uses = f"    if USES is not None: USES({', '.join(used)})"
        names = [a.python_name for a in self.schema.arguments] + ["out"] * self.has_out
        other = VARIADIC_OR.get(self.schema.name)  # given by its own name, if it is what was given
        many = self.facts.variadic
        words = {many: f"({other!r} if type({many}) is DTYPE else {many!r})"} if other else {}
        given = ", ".join(f"{words.get(name, repr(name))}: {name}" for name in names)
        # A tap notes the arguments and calls this function again, which it then does not take. It may be a mode of the
        # program's, whose calls are recorded.
        heard = "(p_ is None or setprofile(p_)); " if NATIVE is None else ""
        tap = (f"    if (tap_ := TAP) is not None and tap_.takes(): {heard}"
               f"return tap_.run(op_, {self.inplace}, {{{given}}})")
        # As in PyTorch, an op without tensor arguments has no place in the graph.
        in_graph = bool(self.tensors)
        if self.facts.namespace != "aten":
            # The code inside is the program's, whose calls are recorded like any others.
            place = "s_.seq if (s_ := THREAD.state).grad else -1" if in_graph else "-1"
            self.add(3, "if OBSERVING:", tap, uses, f"    start_ = open_stretch({inputs}, {place})")
            return
        if NATIVE is not None:
            # One call notes uses, describes the arguments and makes the mark.
            values = ", ".join([str(in_graph), *(a.python_name for a in self.schema.arguments)])
            begin = f"begin(describe_[0], {values})"
            if self.has_out:
                # Given outputs are inputs of PyTorch's `out` overloads, after the others.
                begin = (f"{begin} if out is None else begin(describe_any, {values}, "
                         "*(out if type(out) in (tuple, list) else (out,)))")
            self.add(3, "if OBSERVING:", tap, f"    start_ = {begin}")
            return
        self.add(
            3,
            "if OBSERVING:",
            tap,
            "    o_ = THREAD.state",
            "    seq_ = o_.seq if o_.grad else -1" if in_graph else "    seq_ = -1",
            "    if CALLS: seq_ += place()",
            uses,
            f"    d_ = {inputs}",
            "    start_ = clock()",
        )

    def report(self) -> None:
        scalar = self.facts.scalar_overload and self.pairwise
        event = "id_ if v1 is not NO_TENSOR else id_scalar_" if scalar else "id_"
        end = f"start_.end({event})" if NATIVE is not None or self.facts.namespace != "aten" else (
            f"o_.extend(({event}, start_, clock(), seq_, d_))")
        # Converted operands are dropped first: a profile of memory shows them freed in the op, as in PyTorch.
        freed = "".join(f"a{i} = " for i in range(len(self.tensors))) + "None; " if self.facts.promote else ""
        self.add(3, f"if start_ is not None: {freed}{end}")
        if NATIVE is None:
            self.add(3, "if p_ is not None: setprofile(p_)")

    # -- autocast, for the ops that it casts -----------------------------------------------------------------------

    def autocast(self) -> None:
        policy = POLICIES.get(self.facts.key)
        if policy is None or self.inplace:
            return
        arguments = self.schema.arguments
        values = "".join(f"{a.python_name}, " for a in arguments if not a.keyword_only)
        named = ", ".join(f"{a.python_name!r}: {a.python_name}" for a in arguments if a.keyword_only)
        # With `out=`, PyTorch casts nothing.
        condition = "AUTOCAST and out is None" if self.has_out else "AUTOCAST"
        self.add(3, f"if {condition} and (r_ := autocast_call(op_, {policy!r}, ({values}), {{{named}}})) is not None: "
                    "return r_")

    # -- results ---------------------------------------------------------------------------------------------------

    def wrap(self) -> None:
        returns = self.schema.returns
        if len(returns) == 1 and returns[0] == "Tensor":
            if self.inplace:
                self.add(3, "t_ = v0")
                return
            # A device's kernels return its own arrays; the CPU's may return a NumPy number.
            known = " and type(r_) is not type(a0)" if self.tensors and not self.tensors[0].is_list else ""
            self.add(
                3,
                f"if type(r_) is not ndarray{known}: r_ = as_array(r_)",
                *([] if self.facts.view else ["if ALLOCATED is not None: ALLOCATED(r_)"]),
                "t_ = new(Tensor)",
                "t_._a = r_",
                "t_._rg = False",
            )
            if self.facts.view:
                self.add(
                    3,
                    "t_._edge = t_._ag = None",
                    "st_ = v0._st",
                    "if st_ is None: st_ = v0.shared()",
                    "t_._st = st_",
                    "of_ = v0._of",
                    "t_._of = (v0, st_.version, 0) if of_ is None else (of_[0], st_.version, of_[2])",
                )
            else:
                self.add(3, "t_._edge = t_._ag = t_._st = t_._of = None",
                         "if INFERENCE and THREAD.state.inference: t_._st = InferenceShared()")
        elif self.facts.view:
            self.add(3, "t_ = wrap_views(v0, r_)")
        else:
            self.add(3, "t_ = tuple([wrap(x if type(x) is ndarray else as_array(x)) for x in r_])")

    def source(self) -> str:
        constants = "op_, kernel_, kernel_full_, node_class_, id_, id_scalar_, describe_, operator_"
        self.add(0, f"def make({constants}):")
        self.add(1, f"def {self.name}({self.signature()}):")
        self.add(2, "start_ = None")
        if NATIVE is None:
            # A function that records calls has paused when it saw this op begin: inside an op there is nothing to
            # record, and recording costs more than the op.
            self.add(2, "p_ = None", "if OBSERVING and (p_ := THREAD.state.paused) is not None: "
                                     "THREAD.state.paused = None")
        if self.facts.scalar_overload and self.pairwise:
            self.add(2, "v1 = None")
        self.add(2, "try:")
        self.normalise()
        self.describe()
        self.autocast()
        if self.facts.composite:
            called = f"kernel_({', '.join(a.python_name for a in self.schema.arguments)})"
            self.add(3, f"return {called}" if not self.has_out else
                     f"return {called} if out is None else write_out(op_, out, {called})")
        else:
            self.kernel_body()
        self.add(2, "except Exception as error_:")
        if NATIVE is None:
            # An argument may answer instead of the op, with the program's code.
            self.add(3, "if p_ is not None: setprofile(p_)")
        # The exception refers to this frame: a frame that also refers to the exception would keep the arguments alive.
        self.add(3, "try:",
                 f"    problem_ = explain(op_, error_, {self.values()}, {self.name!r}, operator_)",
                 f"    if problem_ is NotImplemented: return operator_(*{self.values()}[:2])",
                 "    if problem_ is error_: raise",
                 "    if type(problem_) is Taken: return problem_.result",
                 "    raise problem_ from None",
                 "finally: problem_ = None")
        self.add(2, "finally:")
        self.report()
        self.add(1, f"return {self.name}")
        return "\n".join(self.lines) + "\n"

    def kernel_body(self) -> None:
        self.unwrap()
        graph = bool(self.differentiable())
        if self.inplace:
            self.add(3, "target_ = v0._a", "graph_ = False",
                     "if INFERENCE_SEEN and type(v0._st) is InferenceShared: check_inference(v0)")
            if self.facts.promote or self.schema.name in BY_ELEMENT:
                self.add(3, *[f"if (st_ := v0._st) is not None and v{i}._st is st_ and a{i} is not target_: "
                              f"check_overlap(target_, a{i})"
                              for i, argument in enumerate(self.tensors) if i and not argument.is_list])
            if graph:
                # No gradient flows through integers, whatever is written there.
                self.add(3, f"if {self.needs_grad()} and target_.dtype in FLOAT_DTYPES:", "    graph_ = True",
                         "    check_inplace(v0)")
                for_whom = self.users_of("self")
                if for_whom == self.everyone() or any(a.is_list and a.name in for_whom for a in self.tensors):
                    self.add(3, "    kept_ = original(v0)")
                elif for_whom:
                    # No copy unless a formula needs it: in `x.mul_(2)` only a gradient of 2 would.
                    asks = " or ".join(f"v{i}._rg or v{i}._edge is not None or v{i}._of is not None"
                                       for i, argument in self.differentiable() if argument.name in for_whom)
                    self.add(3, f"    if {asks}: kept_ = original(v0)")
        if (self.inplace and self.facts.ufunc and not self.facts.cpu_full
                and not self.facts.cpu_inplace):
            # A ufunc can write directly into its target.
            arrays = ", ".join(f"a{i}" for i in range(len(self.tensors)))
            self.add(3, f"if a0 is target_ and type(a0) is ndarray: r_ = kernel_({arrays}, target_)", "else:")
            mark = len(self.lines)
            self.call()
            self.lines[mark:] = ["    " + line for line in self.lines[mark:]]
        else:
            self.write_directly()
            self.call()
        if self.inplace:
            self.add(3, "if r_ is not target_: r_ = store(target_, r_)")
            if graph:
                self.add(3, "if graph_:")
                self.edges(4)
            self.add(3, "if v0._st is None: bump(v0)", "else: v0._st.version += 1")
        self.wrap()
        # An op that takes a dtype may turn floats into integers, through which no gradient flows.
        condition = self.needs_grad() + (" and r_.dtype in FLOAT_DTYPES" if "dtype" in self.argument_names() else "")
        if graph:
            if self.inplace:
                self.add(3, "if graph_:")
            elif self.has_out:
                self.add(3, f"if {condition}:", "    if out is not None: raise_out_grad(op_)")
            elif self.facts.view:
                tests, _, enabled = self.needs_grad().rpartition(" and ")
                if self.schema.name == "view":
                    tests += " and r_.dtype in FLOAT_DTYPES"  # the same bytes as integers have no gradient
                # In normal mode too, a view of memory that was made in inference mode has no history.
                self.add(3, f"if {tests}:",
                         f"    if {enabled} and not (INFERENCE_SEEN and type(v0._st) is InferenceShared):")
                self.record(5)
                if self.schema.returns == ("Tensor",):
                    # Later in-place changes of it raise an error, because they would not be recorded.
                    self.add(3, "    else: t_._of = (t_._of[0], t_._of[1], 3 if s_.inference else 1)")
                graph = False
            else:
                self.add(3, f"if {condition}:")
            if graph:
                self.record(4)
        if self.has_out:
            arrays = "".join(f"*a{i}, " if a.is_list else f"a{i}, " for i, a in enumerate(self.tensors))
            self.add(3, f"if out is not None: return write_out(op_, out, t_, ({arrays}))")
        self.add(3, "return t_")
