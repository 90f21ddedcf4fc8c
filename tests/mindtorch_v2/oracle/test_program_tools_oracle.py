"""Tools that programs are tested with: selective checkpoints, module names, transforms' mistakes, libraries of ops."""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from test_semantics_autograd_oracle import agree, ours, outcome, theirs


def part(torch: Any, name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(f"{torch.__name__}.{name}")


def says(program: Callable[[Any], Any], words: str) -> None:
    """The same error on both sides, with these words."""
    for torch in (theirs, ours):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises((RuntimeError, TypeError, ValueError), match=re.escape(words)):
                program(torch)
    agree(program)


# -- checkpoints ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["MUST_SAVE", "PREFER_SAVE", "MUST_RECOMPUTE", "PREFER_RECOMPUTE"])
def test_a_policy_decides_once_for_each_op(name: str) -> None:
    def program(torch: Any) -> Any:
        checkpoints, asked = part(torch, "utils.checkpoint"), []

        def policy(context: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
            asked.append(f"{context.is_recompute} {op}")
            return checkpoints.CheckpointPolicy[name]

        x, w = (torch.full((2, 2), value, requires_grad=True) for value in (1.0, 0.5))
        y = checkpoints.checkpoint(
            lambda x, w: (x @ w).sin().exp(), x, w, use_reentrant=False,
            context_fn=lambda: checkpoints.create_selective_checkpoint_contexts(policy))
        y.sum().backward()
        return [asked, x.grad, w.grad]

    agree(program)


def test_what_a_selective_checkpoint_keeps_is_used_once() -> None:
    def program(torch: Any) -> Any:
        checkpoints = part(torch, "utils.checkpoint")
        x = torch.ones(2, 2, requires_grad=True)
        y = checkpoints.checkpoint(
            lambda x: (x @ x).sin(), x, use_reentrant=False,
            context_fn=lambda: checkpoints.create_selective_checkpoint_contexts([torch.ops.aten.mm.default])).sum()
        y.backward(retain_graph=True)
        y.backward()

    says(program, "Trying to backward an extra time")


def test_random_states_are_those_of_the_cpu_where_nothing_else_is_given() -> None:
    agree(lambda torch: [part(torch, "utils.checkpoint")._infer_device_type(torch.ones(1, device="cpu")),
                         part(torch, "utils.checkpoint").DefaultDeviceType.get_device_type()])


# -- modules by name --------------------------------------------------------------------------------------------------


def nested(torch: Any) -> Any:
    class Inner(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.mm(x, x)

    class Outer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.several = torch.nn.ModuleList([Inner(), Inner()])
            self.named = torch.nn.ModuleDict({"one": Inner()})

        def forward(self, x: Any) -> Any:
            return self.named["one"](self.several[1](self.several[0](x)))

    return Outer()


def test_flops_of_modules_in_containers_are_told_apart() -> None:
    def program(torch: Any) -> Any:
        counter = part(torch, "utils.flop_counter").FlopCounterMode(display=False)
        with counter:
            nested(torch)(torch.ones(2, 2, requires_grad=True)).sum().backward()
        return sorted((name, sorted((str(op), count) for op, count in counts.items()))
                      for name, counts in counter.get_flop_counts().items())

    agree(program)


# -- functions of functions -------------------------------------------------------------------------------------------

MISTAKES: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "aux of grad": (lambda f, x: f.grad(lambda x: (x.sum(), 1), has_aux=True)(x), "Expected tensors, got unsupported"),
    "aux of vjp": (lambda f, x: f.vjp(lambda x: (x, "a"), x, has_aux=True), "Expected tensors, got unsupported"),
    "cotangent": (lambda f, x: f.vjp(lambda x: x, x)[1](1), "gradients can be either Tensors or None"),
    "randomness": (lambda f, x: f.jacfwd(lambda x: x, randomness="bad")(x), "Only allowed values for randomness"),
    "tangent": (lambda f, x: f.jvp(lambda x: x, (x,), (3,)), "Expected tangents to only contain Tensors"),
    "linearize": (lambda f, x: f.linearize(lambda x: x, x)[1](x[:1]), "of the corresponding primal"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_of_transforms(mistake: str) -> None:
    call, words = MISTAKES[mistake]
    says(lambda torch: call(torch.func, torch.ones(3)), words)


JVPS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a smaller one": (lambda tangent: tangent[0], "different size"),
    "a number": (lambda tangent: 1, "expected Variable or None"),
    "two": (lambda tangent: (tangent, tangent), "invalid number of forward gradients"),
}


@pytest.mark.parametrize("jvp", JVPS)
def test_tangents_of_custom_functions_fit_the_outputs(jvp: str) -> None:
    made, words = JVPS[jvp]

    def program(torch: Any) -> Any:
        class Copy(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x.clone()

            @staticmethod
            def jvp(ctx: Any, tangent: Any) -> Any:
                return made(tangent)

        forward = part(torch, "autograd.forward_ad")
        with forward.dual_level():
            return Copy.apply(forward.make_dual(torch.ones(2), torch.full((2,), 3.0)))

    says(program, words)


def test_functions_of_parameters_in_functorchs_form() -> None:
    def program(torch: Any) -> Any:
        form = part(torch, "_functorch.make_functional")
        x, layer = torch.ones(4, 2), torch.nn.Linear(2, 3)
        model = torch.nn.Sequential(layer, torch.nn.BatchNorm1d(3))
        for one in model.parameters():
            torch.nn.init.constant_(one, 0.5)
        function, params = form.make_functional(layer)
        whole, all_params, buffers = form.make_functional_with_buffers(model, disable_autograd_tracking=True)
        stacked, many, _ = form.combine_state_for_ensemble([layer, layer])
        weights, made, names = form.functional_init(torch.nn.Linear, (5,))(2, 3)
        return [function(params, x), [one.requires_grad for one in (*params, *all_params, *many, *weights)],
                whole(all_params, buffers, x), [tuple(one.shape) for one in (*buffers, *many, *weights)], list(names),
                torch.vmap(stacked, in_dims=(0, 0, None))(many, (), x), made.__class__.__name__]

    def with_buffers(torch: Any) -> Any:
        part(torch, "_functorch.make_functional").make_functional(torch.nn.BatchNorm1d(2))

    agree(program)
    says(with_buffers, "has buffers")


# -- libraries --------------------------------------------------------------------------------------------------------


def test_a_kernel_for_another_namespace_is_refused() -> None:
    def program(torch: Any) -> Any:
        with torch.library._scoped_library("elsewhere", "FRAGMENT") as library:
            library.define("taken(Tensor x) -> Tensor")
            library.impl("somewhere::taken", lambda x: x, "CPU")

    says(program, "does not match namespace")


@pytest.mark.parametrize("mode", ["warn", "nothing"])
def test_what_happens_without_an_autograd_kernel_is_a_setting(mode: str) -> None:
    def program(torch: Any) -> Any:
        before = torch._C._get_autograd_fallback_mode()
        torch._C._set_autograd_fallback_mode(mode)
        try:
            with torch.library._scoped_library("fallbacks", "FRAGMENT") as library:
                library.define("same(Tensor x) -> Tensor")
                library.impl("same", lambda x: x.detach().clone(), "CPU")
                x = torch.ones(2, requires_grad=True, device="cpu")
                return [before, torch.ops.fallbacks.same(x).requires_grad]
        finally:
            torch._C._set_autograd_fallback_mode(before)

    agree(program)


@pytest.mark.parametrize("kind", [tuple[int, int], tuple, tuple[int, ...], tuple[int], tuple[int, float], tuple[()]])
def test_lists_that_stand_for_tuples(kind: Any) -> None:
    agree(lambda torch: str(part(torch, "_library.infer_schema").tuple_to_list(kind)))


def test_questions_about_signatures() -> None:
    def program(torch: Any) -> Any:
        ask, aten = part(torch, "_library.utils"), torch.ops.aten
        add = aten.add.Tensor._schema
        return [ask.mutates_and_returns_first_arg(aten.add_.Tensor), ask.mutates_and_returns_first_arg(aten.add.Tensor),
                ask.is_functional_schema(add), ask.is_functional_schema(aten.add_.Tensor._schema),
                [one.name for one, _ in ask.zip_schema(add, (1,), {"alpha": 3})], ask.has_kwarg_only_args(add),
                [one.has_default_value() for one in add.arguments], ask.parse_namespace("a::b")]

    agree(program)


# -- graphs -----------------------------------------------------------------------------------------------------------

TRACED: dict[str, tuple[Callable[[Any], Any], dict[str, Any]]] = {
    "dots": (lambda x: x[1:, None, ...], {}), "a tensor is given": (lambda x: x + 1, {"x": "tensor"}),
}


@pytest.mark.parametrize("function", TRACED)
def test_code_of_traced_functions(function: str) -> None:
    traced, given = TRACED[function]

    def program(torch: Any) -> Any:
        fixed = {name: torch.ones(1) for name in given}
        return torch.fx.symbolic_trace(traced, concrete_args=fixed or None).code

    agree(program)


@pytest.mark.parametrize("use", [int, range])
def test_proxies_are_no_numbers(use: Any) -> None:
    assert outcome(ours, lambda torch: torch.fx.symbolic_trace(lambda x: use(x))) == ("TypeError", [])
    agree(lambda torch: torch.fx.symbolic_trace(lambda x: use(x)))


# -- the older way to define ops --------------------------------------------------------------------------------------

GRADS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "no dictionary": (lambda grad: grad, "expected the output of the backward function to be a dict"),
    "a number": (lambda grad: {"x": 3}, "expected the gradient to be either None or a Tensor"),
    "too many": (lambda grad: {"x": grad, "y": grad}, "expected the returned grad_input dict to have keys"),
}


@pytest.fixture
def older() -> Any:
    """Makes an op on either side, with what is asked for; all are taken away again."""
    made: list[tuple[Any, str]] = []

    def make(torch: Any, backward: Any = None) -> Any:
        ops, name = part(torch, "_custom_ops"), f"older_{len(made)}"
        made.append((ops, f"olderops::{name}"))
        ops.custom_op(f"olderops::{name}", "(Tensor x, int y) -> Tensor")
        ops.impl(f"olderops::{name}")(lambda x, y: x * y)
        if backward is not None:
            ops.impl_save_for_backward(f"olderops::{name}")(lambda inputs, output: {"y": inputs.y, "x": inputs.x})
            ops.impl_backward(f"olderops::{name}")(backward)
        return getattr(torch.ops.olderops, name)

    yield make
    for ops, name in made:
        ops._destroy(name)


def test_ops_in_the_older_way(older: Any) -> None:
    def program(torch: Any) -> Any:
        op = older(torch, lambda ctx, saved, grad: {"x": grad * saved["y"] * saved["x"]})
        x = torch.full((2,), 3.0, requires_grad=True, device="cpu")
        y = op(x, 2)
        y.sum().backward()
        return [y, x.grad, op(x.detach(), 4), str(op.default._schema).partition("(")[2]]

    agree(program)


@pytest.mark.parametrize("mistake", GRADS)
def test_gradients_of_ops_in_the_older_way(mistake: str, older: Any) -> None:
    backward, words = GRADS[mistake]

    def program(torch: Any) -> Any:
        op = older(torch, lambda ctx, saved, grad: backward(grad))
        op(torch.ones(2, requires_grad=True, device="cpu"), 2).sum().backward()

    says(program, words)


def test_ops_in_the_older_way_without_gradient(older: Any) -> None:
    says(lambda torch: older(torch)(torch.ones(2, requires_grad=True), 2), "Autograd has not been implemented")


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "no namespace": (lambda ops: ops.custom_op("alone", "(Tensor x) -> Tensor"), "Expected there to be a namespace"),
    "overload": (lambda ops: ops.custom_op("olderops::m.o", "(Tensor x) -> Tensor"), "do not handle overloads"),
    "reserved": (lambda ops: ops.custom_op("aten::mine", "(Tensor x) -> Tensor"), "is a reserved namespace"),
    "changes": (lambda ops: ops.custom_op("olderops::m", "(Tensor(a!) x) -> Tensor"), "only supports functional"),
    "name": (lambda ops: ops.custom_op("olderops::m")(lambda x: x), "expected `func` to have name 'm'"),
    "unknown": (lambda ops: ops.impl("olderops::unknown")(lambda x: x), "Could not find the operator"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_mistakes_in_the_older_way(kind: str) -> None:
    call, words = REFUSED[kind]
    says(lambda torch: call(part(torch, "_custom_ops")), words)


@pytest.mark.filterwarnings("ignore:torch._custom_op is deprecated")
@pytest.mark.parametrize("torch", [ours, theirs], ids=["ours", "pytorch"])
def test_table_of_ops_in_the_older_way(torch: Any) -> None:
    parts = part(torch, "_custom_op.impl")
    part(torch, "_custom_ops").custom_op("olderops::listed", "(Tensor x) -> Tensor")
    assert "olderops::listed" in parts.global_registry
    assert parts.get_op("olderops::listed") is torch.ops.olderops.listed.default
    parts.global_registry["olderops::listed"]._destroy()
    assert "olderops::listed" not in parts.global_registry
    with pytest.raises(ValueError, match="Could not find the operator"):
        parts.get_op("olderops::never")
    with pytest.raises(RuntimeError, match="constructor is private"):
        parts.CustomOp(None, None, None, None, None)


@pytest.mark.parametrize("torch", [ours, theirs], ids=["ours", "pytorch"])
def test_namespaces_of_ops_come_and_go(torch: Any) -> None:
    for _ in range(2):
        library = torch.library.Library("comesandgoes", "FRAGMENT")
        torch.library.define("comesandgoes::doubled", "(Tensor x) -> Tensor", lib=library)
        torch.library.impl("comesandgoes::doubled", "CPU", lambda x: x * 2, lib=library)
        assert torch.ops.comesandgoes.doubled(torch.ones(1)).item() == 2
        assert torch.ops.comesandgoes.doubled.default._defined_in_python
        del torch.ops.comesandgoes
        library._destroy()
    assert not torch.ops.aten.sin.default._defined_in_python
    library = torch.library.Library("comesandgoes", "FRAGMENT")
    library.define("shaped(Tensor x) -> Tensor")
    torch.library.register_fake("comesandgoes::shaped", lambda x: x, lib=library)
    with pytest.raises(RuntimeError, match="already has a fake impl registered"):
        torch.library.register_fake("comesandgoes::shaped", lambda x: x, lib=library, allow_override=False)
    library._destroy()
