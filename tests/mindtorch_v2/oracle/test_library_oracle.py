"""`torch.library` and `torch.ops`: ops of a program's own, on this runtime and on PyTorch."""

from __future__ import annotations

import importlib
import typing
import warnings
from typing import Any

import pytest
from both import ours, outcome, rows, same, theirs

# Ops of the same name would replace each other: every test has a namespace of its own.


def scaled(torch: Any, space: str, **facts: Any) -> Any:
    """An op with a backward."""
    def scaled(x, by=2.0):
        return x * by

    scaled.__annotations__ = {"x": torch.Tensor, "by": float, "return": torch.Tensor}
    op = torch.library.custom_op(f"{space}::scaled", scaled, mutates_args=(), **facts)
    op.register_fake(lambda x, by=2.0: torch.empty_like(x))
    op.register_autograd(lambda ctx, grad: (grad * ctx.by, None),
                         setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1]))
    return op


def annotated(function: Any, **kinds: Any) -> Any:
    function.__annotations__ = {("return" if name == "result" else name): kind for name, kind in kinds.items()}
    return function


def of(torch: Any, space: str, function: Any, mutates: Any = (), **kinds: Any) -> Any:
    """An op of a function whose annotations are given."""
    name = function.__name__
    return torch.library.custom_op(f"{space}::{name}", mutates_args=mutates)(annotated(function, **kinds))


def test_a_custom_op_computes_and_differentiates() -> None:
    def program(torch: Any) -> Any:
        op = scaled(torch, "lib_a")
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = op(x, 3.0)
        z = (y * y).sum()
        first, = torch.autograd.grad(z, x, create_graph=True)
        return [y, op(x), torch.ops.lib_a.scaled(x, by=4), torch.ops.lib_a.scaled.default(x), z, first,
                torch.autograd.grad(first.sum(), x), [str(n) for n in [op, op._opoverload, torch.ops.lib_a.scaled]],
                op(torch.ones(2, 3, device="meta"))]

    same(program)


def test_without_a_formula_backward_raises_and_no_grad_records_nothing() -> None:
    def program(torch: Any) -> Any:
        def foo(x):
            return x.sin()

        op = of(torch, "lib_b", foo, x=torch.Tensor, result=torch.Tensor)
        x = torch.ones(2, requires_grad=True)
        y = op(x)
        with torch.no_grad():
            quiet = op(x)
        return [y, quiet, outcome(lambda: y.sum().backward(), 300), outcome(lambda: op(torch.ones(2, device="meta")))]

    assert "GeneratedBackwardFor_lib_b_foo_defaultBackward" in str(same(program))


def test_profiles_show_the_op_its_function_and_its_node() -> None:
    def program(torch: Any) -> Any:
        op = scaled(torch, "lib_c")
        x = torch.ones(3)
        leaf = torch.ones(3, requires_grad=True)

        def quiet() -> None:
            with torch.no_grad():
                op(leaf)

        def listed(x, k):
            return [one * 2 for one in x]

        many = of(torch, "lib_c", listed, x=typing.List[torch.Tensor], k=int,  # noqa: UP006
                  result=typing.List[torch.Tensor])  # noqa: UP006
        many.register_autograd(lambda ctx, grads: ([2 * one for one in grads], None))
        names = ("lib_c::", "Generated", "autograd::engine::evaluate_function: Gen")
        return [rows(torch, run, lambda name: name.startswith(names) or name == "aten::mul") for run in (
            lambda: op(x), lambda: op(leaf, 3.0), quiet, lambda: torch.ops.lib_c.scaled(leaf, 3.0).sum().backward(),
            lambda: many([leaf, leaf], 3))]

    assert len(same(program)) == 6


def test_lists_of_tensors_have_gradients() -> None:
    def program(torch: Any) -> Any:
        def listed(x, y):
            return [one * y for one in x]

        op = of(torch, "lib_d", listed, x=typing.Sequence[torch.Tensor], y=torch.Tensor, result=list[torch.Tensor])
        x = [torch.ones(2, requires_grad=True), torch.ones(1)]
        y = torch.full((1,), 3.0, requires_grad=True)
        seen: list[Any] = []

        def backward(ctx: Any, grads: Any) -> Any:
            seen.append(ctx.needs_input_grad)
            return [one * 3 for one in grads], sum(one.sum() for one in grads).reshape(1)

        op.register_autograd(backward)
        good = torch.autograd.grad(sum(one.sum() for one in op(x, y)), [x[0], y])
        op.register_autograd(lambda ctx, grads: (grads[0], None))
        bad = outcome(lambda: torch.autograd.grad(op(x, y)[0].sum(), y), 80)
        return [op(x, y), op(tuple(x), y), good, seen, bad]

    same(program)


def test_mutated_arguments_are_counted_and_keep_their_history() -> None:
    def program(torch: Any) -> Any:
        def change(x, others, z):
            x.add_(1)
            return z + 1

        op = of(torch, "lib_e", change, {"x", "others"}, x=torch.Tensor, others=typing.List[torch.Tensor],  # noqa: UP006
                z=torch.Tensor, result=torch.Tensor)
        x, others = torch.zeros(2), [torch.zeros(1)]
        made = op(x, others, torch.ones(2))
        leaf = torch.ones(2, requires_grad=True)
        product = leaf * leaf
        op(product, others, torch.ones(2))
        return [x, made, x._version, others[0]._version, product, str(op._opoverload._schema),
                op._opoverload._schema.is_mutable, outcome(lambda: op.register_autograd(lambda ctx, g: g)),
                outcome(lambda: product.sum().backward(), 60)]

    same(program)


def test_outputs_must_be_new_memory() -> None:
    def program(torch: Any) -> Any:
        def same_one(x):
            return x

        def view(x):
            return x.view(-1)

        def twice(x):
            y = x * 2
            return y, y[:1]

        one = {"x": torch.Tensor, "result": torch.Tensor}
        ops = [of(torch, "lib_f", same_one, **one), of(torch, "lib_f", view, **one),
               of(torch, "lib_f", twice, x=torch.Tensor, result=typing.Tuple[torch.Tensor, torch.Tensor])]  # noqa: UP006
        return [outcome(lambda op=op: op(torch.ones(3)), 160) for op in ops]

    assert all("may not alias" in one[2] for one in same(program)[1:])


def test_schemas_are_inferred_from_annotations() -> None:
    def program(torch: Any) -> Any:
        T = torch.Tensor
        infer = torch.library.infer_schema

        host = torch.device("cpu")

        def full(x, k=3, a=1.5, b=True, s="q", d=torch.float32, v=host, o=None, n=None, *, z=-1):
            return x

        def one(x):
            return x

        def rest(*x):
            return x

        every = annotated(full, x=T, k=int, a=float, b=bool, s=str, d=torch.dtype, v=torch.device,
                          o=typing.Optional[T], n=typing.Optional[int], z=int, result=typing.Tuple[T, int])  # noqa: UP006, UP045
        made = torch.library.custom_op("lib_g::full", mutates_args=())(every)
        cases: list[Any] = [infer(every, mutates_args=()), infer(every, mutates_args="unknown", op_name="named"),
                            infer(annotated(one, x="int", result=None), mutates_args=()),
                            str(made._opoverload._schema),
                            [(a.name, str(a.type), a.default_value, a.kwarg_only)
                             for a in made._opoverload._schema.arguments if a.name != "v"]]
        for kinds in ({"x": T}, {"result": T}, {"x": object, "result": T}, {"x": T, "result": object},
                      {"x": typing.Tuple[int, int], "result": T}):  # noqa: UP006
            cases.append(outcome(lambda kinds=kinds: infer(annotated(one, **kinds), mutates_args=())))
        cases.append(outcome(lambda: infer(annotated(rest, result=T), mutates_args=())))
        cases.append(outcome(lambda: infer(annotated(one, x=int, result=T), mutates_args={"x"})))
        cases.append(outcome(lambda: infer(annotated(one, x=T, result=T), mutates_args={"y"})))
        cases.append(outcome(lambda: infer(annotated(one, x=T, result=T), mutates_args="some")))
        return cases

    same(program)


def test_arguments_are_cast_and_misfits_explained() -> None:
    def program(torch: Any) -> Any:
        def mixed(x, k=1, l=(), *, s=2.0):
            return x * k * s

        op = torch.library.custom_op(
            "lib_h::mixed", mutates_args=(), schema="(Tensor x, int k=1, int[] l=[], *, float s=2.) -> Tensor")(mixed)
        x = torch.ones(2)
        good = [op(x), op(x=x, k=4), op(x, True, s=3), op(x, torch.tensor(3), (1, 2))]
        bad = [lambda: op(), lambda: op(1), lambda: op(x, 1.5), lambda: op(x, None), lambda: op(x, 1, [], 2.0),
               lambda: op(x, s="a"), lambda: op(x, y=1), lambda: op(x, x=x), lambda: op(x, 1, 3),
               lambda: op(x, 1, ["a"]), lambda: op(x, 1, [], 2.0, 3)]
        return [good, [outcome(one, 150) for one in bad]]

    same(program)


def test_results_are_checked() -> None:
    def program(torch: Any) -> Any:
        T = torch.Tensor
        T2 = typing.Tuple[T, T]  # noqa: UP006

        def a(x): return 3
        def b(x): return x * 2
        def c(x): return x * 2
        def d(x): return [x * 2, x * 3]
        def e(x): return x.numel()
        kinds = {a: T, b: T2, c: None, d: T2, e: int}
        ops = [of(torch, "lib_i", function, x=T, result=kind) for function, kind in kinds.items()]
        return [[outcome(lambda op=op, x=x: op(x), 60) for x in (torch.ones(2), torch.ones(2, requires_grad=True))]
                for op in ops]

    same(program)


def test_libraries_define_and_implement() -> None:
    def program(torch: Any) -> Any:
        library = torch.library.Library("lib_j", "DEF")
        x, leaf, ghost = torch.ones(2), torch.ones(2, requires_grad=True), torch.ones(2, device="meta")
        ns = torch.ops.lib_j
        seen = [str(library), library.define("m(Tensor self, int y=2) -> Tensor"), outcome(lambda: ns.m(x), 60)]
        library.impl("m", lambda self, y=2: self * y, "CPU")
        seen += [ns.m(x), ns.m(self=x, y=3), ns.m(leaf), outcome(lambda: ns.m(ghost), 90)]
        other = torch.library.Library("lib_j", "IMPL", "Meta")
        other.impl("m", lambda self, y=2: torch.empty_like(self))
        seen.append(ns.m(ghost))
        part = torch.library.Library("lib_j", "FRAGMENT")
        part.define("c(Tensor x) -> Tensor")
        part.impl("c", lambda x: x.sin().cos())
        part.define("v.one(Tensor x) -> Tensor")
        part.define("v.two(Tensor x, int k) -> Tensor")
        part.impl("v.one", lambda x: x + 1, "CompositeExplicitAutograd")
        part.impl("v.two", lambda x, k: x + k, "CompositeExplicitAutograd")
        part.define("view(Tensor(a) x) -> Tensor(a)")
        part.impl("view", lambda x: x.view(-1), "CompositeExplicitAutograd")
        part.define("quiet(Tensor x) -> Tensor")
        part.impl("quiet", torch.library.fallthrough_kernel, "Autograd")
        part.impl("quiet", lambda x: x + 1, "CPU")
        seen += [ns.c(leaf), ns.v(x), ns.v(x, 3), ns.v.two(x, 4), ns.v.one(leaf), ns.v.overloads(), ns.view(x),
                 outcome(lambda: ns.v.three), outcome(lambda: ns.nothing), outcome(lambda: torch.ops.lib_none.nothing),
                 ns.quiet(leaf), ns.c.default.name(), ns.v.two.name(), repr(ns.v.two), repr(ns.v), repr(ns)]
        for wrong in (lambda: library.define("m(Tensor x) -> Tensor"), lambda: torch.library.Library("lib_j", "DEF"),
                      lambda: torch.library.Library("prim", "DEF"), lambda: torch.library.Library("lib_j", "XX"),
                      lambda: library.impl("m", 3, "CPU"), lambda: library.impl("m", lambda x: x, "Foo"),
                      lambda: other.define("z(Tensor x) -> Tensor"),
                      lambda: library.impl("m", lambda x: x, "CPU", allow_override=False),
                      lambda: library.fallback(lambda x: x, "CPU"), lambda: torch.library.Library("aten", "DEF")):
            seen.append(outcome(wrong, 60))
        library._destroy()
        return [*seen, outcome(lambda: ns.m(x)), ns.c(x)]

    same(program)


def test_qualified_names() -> None:
    def program(torch: Any) -> Any:
        L = torch.library
        x, leaf = torch.ones(2), torch.ones(2, requires_grad=True)
        seen = [outcome(lambda: L.define("lib_k::d", "(Tensor x) -> Tensor")),
                outcome(lambda: L.define("lib_k::d", "(Tensor x) -> Tensor"), 40),
                outcome(lambda: L.define("d", "(Tensor x) -> Tensor")), outcome(lambda: L.define(3, "(Tensor x)")),
                outcome(lambda: L.define("lib_k::e", "Tensor x -> Tensor"))]
        L.impl("lib_k::d", "cpu")(lambda x: x * 7)
        L.register_fake("lib_k::d")(lambda x: torch.empty_like(x))
        seen += [torch.ops.lib_k.d(x), torch.ops.lib_k.d(torch.ones(2, device="meta"))]
        L.register_autograd("lib_k::d", lambda ctx, grad: grad * 7)
        seen += [torch.ops.lib_k.d(leaf), torch.autograd.grad(torch.ops.lib_k.d(leaf).sum(), leaf)]
        L.register_kernel("lib_k::d", "cpu")(lambda x: x * 100)
        return [*seen, torch.ops.lib_k.d(x), outcome(lambda: L.register_autograd("lib_k::f", lambda ctx, grad: grad))]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns of the kernel that is replaced
        same(program)


def test_a_kernel_without_autograd_warns_when_a_gradient_arrives() -> None:
    def program(torch: Any) -> Any:
        library = torch.library.Library("lib_l", "DEF")
        library.define("m(Tensor x) -> Tensor")
        library.impl("m", lambda x: x * 2, "CPU")
        library.define("n(Tensor x) -> Tensor")
        library.impl("n", lambda x: torch.from_numpy(x.detach().numpy() * 2), "CPU")
        x = torch.ones(2, requires_grad=True)
        found = []
        for op in (torch.ops.lib_l.m, torch.ops.lib_l.n):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                result = op(x)
                grad = torch.autograd.grad(result.sum(), x, allow_unused=True)
            found += [result.requires_grad, grad, [str(one.message)[:60] for one in caught]]
        return found

    assert "autograd kernel was not registered" in str(same(program))


def test_an_autograd_kernel_of_its_own() -> None:
    def program(torch: Any) -> Any:
        library = torch.library.Library("lib_m", "DEF")
        library.define("m(Tensor x) -> Tensor")
        library.impl("m", lambda x: x * 5, "CPU")

        class Five(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                with torch._C._AutoDispatchBelowAutograd():
                    return torch.ops.lib_m.m(x)

            @staticmethod
            def backward(ctx, grad):
                return grad * 55

        library.impl("m", Five.apply, "Autograd")
        x = torch.ones(2, requires_grad=True)
        return [torch.ops.lib_m.m(x), torch.autograd.grad(torch.ops.lib_m.m(x).sum(), x),
                rows(torch, lambda: torch.ops.lib_m.m(x), lambda name: name in ("lib_m::m", "Five", "aten::mul"))]

    same(program)


def test_keyword_only_arguments_reach_setup_context() -> None:
    def program(torch: Any) -> Any:
        def kw(x, a=1, *, s=2.0):
            return x * a * s

        op = of(torch, "lib_n", kw, x=torch.Tensor, a=int, s=float, result=torch.Tensor)
        seen: list[Any] = []

        def setup(ctx, inputs, keyword_only_inputs, output):
            seen.append((inputs[1:], keyword_only_inputs))
            ctx.s = keyword_only_inputs["s"]

        def backward(ctx, grad):
            seen.append(ctx.needs_input_grad)
            return grad * ctx.s, None

        op.register_autograd(backward, setup_context=setup)
        x = torch.ones(2, requires_grad=True)
        grads = [torch.autograd.grad(op(x, s=5.0).sum(), x), torch.autograd.grad(op(x, 3).sum(), x)]
        op.register_autograd(lambda ctx, grad: (grad, grad))
        return [grads, seen, outcome(lambda: torch.autograd.grad(op(x, 3).sum(), x), 200)]

    same(program)


def test_kernels_by_device_and_autocast() -> None:
    def program(torch: Any) -> Any:
        def host(x):
            return x * 2

        op = torch.library.custom_op("lib_o::host", mutates_args=(), device_types="cpu")(
            annotated(host, x=torch.Tensor, result=torch.Tensor))
        op.register_kernel("cuda")(lambda x: x)
        x = torch.ones(2)
        seen = [op(x), outcome(lambda: op(torch.ones(2, device="meta")))]
        op.register_kernel("cpu", lambda x: x * 3)
        seen.append(op(x))
        with op.set_kernel_enabled("cpu", enabled=False):
            seen.append(op(x))
        op.register_autocast("cpu", torch.bfloat16)
        with torch.autocast("cpu", torch.float16):
            seen.append(op(x))

        def made(n, device):
            return torch.ones(n)

        new = torch.library.custom_op("lib_o::made", mutates_args=(), device_types="cpu")(
            annotated(made, n=int, device=torch.device, result=torch.Tensor))
        seen += [new(3, torch.device("cpu")), outcome(lambda: new(3, torch.device("meta")))]
        return [*seen, outcome(lambda: torch.library.custom_op("lib_o::no", mutates_args=(), device_types="cpu")(
            annotated(lambda n: n, n=int, result=torch.Tensor)))]

    same(program)


def test_a_later_op_of_the_same_name_replaces_an_earlier_one() -> None:
    def program(torch: Any) -> Any:
        def g(x):
            return x * 3

        first = of(torch, "lib_p", g, x=torch.Tensor, result=torch.Tensor)

        def g(x):
            return x * 4

        second = of(torch, "lib_p", g, x=torch.Tensor, result=torch.Tensor)
        x = torch.ones(1)
        if torch is ours:  # in PyTorch the first one refers to an operator that is freed, and may crash
            assert first(x).item() == 4
        return [second(x), torch.ops.lib_p.g(x)]

    same(program)


def test_a_kernel_of_an_aten_op_can_be_replaced() -> None:
    def program(torch: Any) -> Any:
        x, leaf = torch.ones(2), torch.ones(2, requires_grad=True)
        before = torch.cosh
        library = torch.library.Library("aten", "IMPL")
        library.impl("cosh", lambda x: x * 0 + 42, "CPU")
        seen = [torch.cosh(x), x.cosh(), before(x), torch.cosh(leaf),
                rows(torch, lambda: torch.cosh(x), lambda name: name in ("aten::cosh", "aten::mul"))]
        library._destroy()
        return [*seen, torch.cosh(x)]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(program)


def test_opcheck() -> None:
    def program(torch: Any) -> Any:
        good = scaled(torch, "lib_q")

        def sneaky(x):
            x.add_(1)
            return x * 1

        bad = of(torch, "lib_q", sneaky, x=torch.Tensor, result=torch.Tensor)
        wanted = ("test_schema", "test_autograd_registration", "test_faketensor")
        failed = outcome(lambda: torch.library.opcheck(bad, (torch.ones(2),), test_utils="test_schema"), 60)
        return [torch.library.opcheck(good, (torch.ones(2),), {"by": 3.0}, test_utils=wanted), failed]

    same(program)


@pytest.mark.parametrize("torch", [ours, theirs], ids=["ours", "theirs"])
def test_vmap_of_an_op_with_a_rule(torch: Any) -> None:
    """PyTorch calls the rule once, this runtime the op for each example."""
    op = scaled(torch, "lib_r")
    op.register_vmap(lambda info, in_dims, x, by=2.0: (op(x, by), in_dims[0]))
    assert torch.func.vmap(op)(torch.ones(2, 3)).tolist() == [[2.0] * 3] * 2


SIGNATURES = [
    "any(Tensor self) -> Tensor", "any(Tensor self, int a) -> Tensor", "any(Tensor self, int a=1) -> Tensor",
    "any(Tensor self, int a=2) -> Tensor", "any(Tensor self, *, int a=1) -> Tensor", "any(Tensor? self) -> Tensor",
    "any(Tensor self) -> Tensor?", "any(Tensor self, int a=1, int b=2) -> Tensor", "any(Tensor(a!) self) -> Tensor(a!)",
    "any(Tensor self) -> (Tensor, Tensor)", "any(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    "any(Tensor self, int a=1, *, Tensor(a!) out) -> Tensor(a!)", "any(Tensor self, int[] a=[1]) -> Tensor",
    "any(Tensor self, int[2] a) -> Tensor", "any(Tensor self, int[] a) -> Tensor", "any.o(Tensor self) -> Tensor",
    "any(Tensor self) -> Tensor out", "any(Tensor self, Scalar a) -> Tensor", "any(Tensor self, float a) -> Tensor",
    "any(Tensor[] self) -> Tensor", "any(Tensor?[] self) -> Tensor", "any(Tensor self, int? a=None) -> Tensor",
    "other(Tensor self) -> Tensor", "any(Tensor self) -> int", "any() -> ()",
]


def test_signatures_that_replace_others() -> None:
    def program(torch: Any) -> Any:
        read = [torch._C.parse_schema(text) for text in SIGNATURES]
        return [[one.is_backward_compatible_with(other), *one.check_forward_compatible_with(other)]
                for one in read for other in read]

    same(program)


@pytest.mark.parametrize("text", [
    "a::b.c(Tensor(a!) x, int[2] y=[1,2], *, float? z=None, str s='q', Scalar k=1.5) -> (Tensor(a!), Tensor[] o)",
    "f(Tensor[]? x, Generator? g,  Device dev)  ->  ()", "f(Tensor self, *, Tensor(b!) out) -> Tensor(b!)"])
def test_signatures_are_read(text: str) -> None:
    def program(torch: Any) -> Any:
        read = torch._C.parse_schema(text)
        again = torch._C.parse_schema(str(read))
        return [str(read), read.name, read.overload_name, read == again, read.is_mutable,
                [[one.name, str(one.type), one.N, one.is_out, one.kwarg_only] for one in read.arguments],
                [[one.name, str(one.type)] for one in read.returns]]

    same(program)


@pytest.mark.parametrize("torch", [ours, theirs], ids=["ours", "theirs"])
@pytest.mark.parametrize("text", ["foo", "foo(", "foo(Tensor)", "foo(Foo x) -> Tensor", "foo(Tensor x)"])
def test_what_is_no_signature(torch: Any, text: str) -> None:
    with pytest.raises(RuntimeError):
        torch._C.parse_schema(text)


def test_rules_by_class() -> None:
    """They run in place of a mode's or a tensor class's own function; the op's object may replace them."""
    def program(torch: Any) -> Any:
        seen = []

        class Mode(importlib.import_module(f"{torch.__name__}.utils._python_dispatch").TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                seen.append(str(func))
                return func(*args, **(kwargs or {}))

        class Wrapped(torch.Tensor):
            @staticmethod
            def __new__(cls, inner):
                made = torch.Tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype)
                made.inner = inner
                return made

            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                raise AssertionError("the rule runs")

        op = scaled(torch, "lib_rules")
        torch.library.register_torch_dispatch(op, Mode, lambda mode, func, types, args, kwargs: (
            seen.append([type(mode) is Mode, str(func), kwargs]), args[0] + 7)[1])

        @op.register_torch_dispatch(Wrapped)
        def rule(cls, func, types, args, kwargs):
            return args[0].inner + 5

        x = torch.zeros(1)
        with Mode():
            found = [op(x).item(), torch.sin(x).item()]
        found.append(op(Wrapped(x)).item())
        op.register_torch_dispatch(Mode, lambda mode, func, types, args, kwargs: args[0] - 1)
        with Mode():
            found.append(op(x).item())
        library = torch.library.Library("lib_rules", "FRAGMENT")
        library.define("plain(Tensor x) -> Tensor")
        again = []
        for _ in range(2):
            again.append(outcome(lambda: torch.library.register_torch_dispatch(
                "lib_rules::plain", Mode, lambda *args: x, lib=library) and None, 60))
        library._destroy()
        return [found, [one for one in seen if one != "aten.add.Tensor"], again[0], "already has a" in str(again[1])]

    same(program)
