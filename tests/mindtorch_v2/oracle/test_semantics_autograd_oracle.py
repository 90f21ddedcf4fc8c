"""Autograd in the corners, as tables of programs: each runs on PyTorch and here, and the outcomes must agree."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import mindtorch_v2 as ours

pytestmark = pytest.mark.usefixtures("walk")

theirs = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

# Words of PyTorch's errors that programs look for.
KEYS = ("must be either a Tensor", "should contain a single Tensor", "invalid size", "can only be None",
        "does not require gradients", "is independent of", "strict mode", "vectorize=True", "single element",
        "Jacobian mismatch", "at least one input tensor to require gradient", "stride 0", "different size", "no level",
        "Nested forward mode", "cannot be empty", "leaf Variable", "inplace", "multiple views", "custom Function",
        "changed the size", "incorrect number of gradients", "second time", "scalar outputs", "can only save",
        "No hooks", "cannot be nested")


def plain(torch: Any, value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        if value.dtype.is_complex:
            value = torch.view_as_real(value.detach().resolve_conj()) if torch is theirs else torch.view_as_real(
                value.detach())
        contents = [float(f"{one:.4g}") for one in value.detach().flatten().tolist()]
        return tuple(value.shape), str(value.dtype), contents
    if isinstance(value, (list, tuple)):
        return [plain(torch, one) for one in value]
    return value if isinstance(value, (bool, int, float, type(None))) else str(value)


def outcome(torch: Any, program: Callable[[Any], Any]) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return plain(torch, program(torch))
    except Exception as error:
        return type(error).__name__, [key for key in KEYS if key.lower() in str(error).lower()]


def agree(program: Callable[[Any], Any]) -> None:
    assert outcome(ours, program) == outcome(theirs, program)


# -- torch.autograd.functional ----------------------------------------------------------------------------------------

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "exp": lambda torch: lambda x: x.exp().sum(1),
    "two outputs": lambda torch: lambda x: (x * 2, x.sum()),
    "number": lambda torch: lambda x: x.pow(3).sum(),
    "detached": lambda torch: lambda x: x.detach(),
    "independent": lambda torch: lambda x: torch.ones(2, 2, requires_grad=True).clone(),
    "linear": lambda torch: lambda x: x.clone(),
    "linear number": lambda torch: lambda x: x.sum(),
    "not a tensor": lambda torch: lambda x: "no",
    "partly a tensor": lambda torch: lambda x: (x, 1),
}
CALLS: dict[str, Callable[..., Any]] = {
    "vjp": lambda F, f, x, v, options: F.vjp(f, x, v, **options),
    "jvp": lambda F, f, x, v, options: F.jvp(f, x, v, **options),
    "vhp": lambda F, f, x, v, options: F.vhp(f, x, v, **options),
    "hvp": lambda F, f, x, v, options: F.hvp(f, x, v, **options),
    "jacobian": lambda F, f, x, v, options: F.jacobian(f, x, **options),
    "hessian": lambda F, f, x, v, options: F.hessian(f, x, **options),
    "jacobian at once": lambda F, f, x, v, options: F.jacobian(f, x, vectorize=True, **options),
    "jacobian forward": lambda F, f, x, v, options: F.jacobian(f, x, vectorize=True, strategy="forward-mode"),
    "jacobian slowly forward": lambda F, f, x, v, options: F.jacobian(f, x, strategy="forward-mode"),
}
VECTORS: dict[str, Callable[[Any], Any]] = {
    "like the input": lambda torch: torch.full((2, 2), 0.5),
    "a row": lambda torch: torch.full((2,), 0.5),
    "none": lambda torch: None,
    "two": lambda torch: (torch.ones(2, 2), torch.ones(2, 2)),
}


@pytest.mark.parametrize("options", [{}, {"strict": True}, {"create_graph": True},
                                     {"strict": True, "create_graph": True}], ids=str)
@pytest.mark.parametrize("call", CALLS)
def test_functional(call: str, options: dict[str, bool]) -> None:
    differences = []
    for function in FUNCTIONS:
        for vector in VECTORS if call in ("vjp", "jvp", "vhp", "hvp") else ("none",):
            def program(torch: Any, function: str = function, vector: str = vector) -> Any:
                x = torch.tensor([[0.5, 1.0], [1.5, 2.0]])
                return CALLS[call](torch.autograd.functional, FUNCTIONS[function](torch), x, VECTORS[vector](torch),
                                   options)

            mine, other = outcome(ours, program), outcome(theirs, program)
            if mine != other:
                differences.append((function, vector, mine, other))
    assert not differences


# -- gradcheck and forward mode ---------------------------------------------------------------------------------------

CHECKED: dict[str, Callable[[Any], Any]] = {
    "sin": lambda torch: lambda x: x.sin(),
    "square": lambda torch: lambda x: x * x,
    "matrix": lambda torch: lambda x: x.reshape(2, 2) @ x.reshape(2, 2).t(),
    "magnitude": lambda torch: lambda x: x.abs(),
    "conjugate": lambda torch: lambda x: x * x.conj() + x ** 2,
    "two": lambda torch: lambda x: (x.exp(), x.sum()),
    "detached": lambda torch: lambda x: x.detach() * 2,
    "wrong": lambda torch: wrong(torch),
}
CHECKS: dict[str, dict[str, bool]] = {
    "": {}, "forward": {"check_forward_ad": True}, "fast": {"fast_mode": True},
    "forward only": {"check_forward_ad": True, "check_backward_ad": False}, "quiet": {"raise_exception": False},
}


def wrong(torch: Any) -> Any:
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

        @staticmethod
        def jvp(ctx: Any, tangent: Any) -> Any:
            return tangent * 2

    return Wrong.apply


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("function", CHECKED)
def test_gradcheck(function: str, check: str, dtype: str) -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor([0.5, 1.0, 1.5, 2.0], dtype=getattr(torch, dtype)) + 0.25
        return torch.autograd.gradcheck(CHECKED[function](torch), x.requires_grad_(), **CHECKS[check])

    mine, other = outcome(ours, program), outcome(theirs, program)
    if isinstance(other, tuple):
        # The order of the checks decides which of the two modes the error names.
        assert isinstance(mine, tuple)
        assert mine[0] == other[0]
    else:
        assert mine == other


FORWARD: dict[str, Callable[[Any, Any, Any], Any]] = {
    "product": lambda torch, fw, d: fw.unpack_dual(d * d),
    "view": lambda torch, fw, d: fw.unpack_dual(d.view(2, 2).t()),
    "itself": lambda torch, fw, d: fw.unpack_dual(d),
    "independent": lambda torch, fw, d: fw.unpack_dual(torch.ones(4)),
    "sum": lambda torch, fw, d: fw.unpack_dual(d.sum()),
    "in place": lambda torch, fw, d: fw.unpack_dual((d * 1).mul_(3)),
    "matmul": lambda torch, fw, d: fw.unpack_dual(d.view(2, 2) @ d.view(2, 2)),
    "softmax": lambda torch, fw, d: fw.unpack_dual(d.softmax(0)),
    "other shape": lambda torch, fw, d: fw.make_dual(torch.ones(4), torch.ones(2)),
    "nested": lambda torch, fw, d: fw.enter_dual_level(),
    "second": lambda torch, fw, d: fw.unpack_dual(d * fw.make_dual(torch.arange(4.0), torch.ones(4))),
}


@pytest.mark.parametrize("use", FORWARD)
def test_forward_mode(use: str) -> None:
    def program(torch: Any) -> Any:
        forward_ad = torch.autograd.forward_ad
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(torch.tensor([0.5, 1.0, 1.5, 2.0]), torch.tensor([1.0, 0.0, 2.0, -1.0]))
            return FORWARD[use](torch, forward_ad, dual)

    agree(program)


# -- the graph --------------------------------------------------------------------------------------------------------


def _custom(torch: Any, forward: Callable[..., Any], backward: Callable[..., Any]) -> Any:
    return type("Custom", (torch.autograd.Function,), {
        "forward": staticmethod(forward), "backward": staticmethod(backward)})


def _leaf(torch: Any) -> Any:
    return torch.tensor([1.0, 2.0, 3.0], requires_grad=True)


def _retained(torch: Any) -> Any:
    x = _leaf(torch)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    y.sum().backward()
    return y.grad, x.grad


def _retained_view(torch: Any) -> Any:
    x = _leaf(torch)
    y = x * 2
    view = y[:2]
    view.retain_grad()
    y.mul_(3)
    (y.sum() + view.sum()).backward()
    return view.grad, x.grad


def _mutated(torch: Any) -> Any:
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        x = _leaf(torch)
        y = x.clone()
        z = (y ** 2).sum() + y.sin().sum()
        y.zero_()
        z.backward()
        return x.grad


def _hooked_in_place(torch: Any) -> Any:
    x, seen = _leaf(torch), []
    y = x * 2
    y.register_hook(lambda grad: seen.append(("old", grad.tolist())))
    y.mul_(3)
    y.register_hook(lambda grad: seen.append(("new", grad.tolist())))
    y.sum().backward()
    return seen


def _edges(torch: Any) -> Any:
    x = _leaf(torch)
    y = x * 2
    edge = torch.autograd.graph.get_gradient_edge(y)
    return torch.autograd.grad((y * 3).sum(), edge, retain_graph=True), torch.autograd.grad(edge, x, torch.ones(3))


def _disabled(torch: Any) -> Any:
    graph = torch.autograd.graph
    with graph.disable_saved_tensors_hooks("No hooks"), graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        return None


GRAPH: dict[str, Callable[[Any], Any]] = {
    "retain_grad then in place": _retained,
    "retain_grad of a view": _retained_view,
    "hooks before and after": _hooked_in_place,
    "saved and changed": _mutated,
    "edges": _edges,
    "hooks disabled": _disabled,
    "no inputs": lambda torch: torch.autograd.grad(_leaf(torch).sum(), []),
    "twice": lambda torch: [y.backward() for y in [(_leaf(torch) ** 2).sum()] * 2],
    "not a number": lambda torch: (_leaf(torch) * 2).backward(),
    "leaf": lambda torch: _leaf(torch).add_(1),
    "view of a leaf": lambda torch: _leaf(torch)[0].add_(1),
    "one of many": lambda torch: (_leaf(torch) * 1).unbind()[0].add_(1),
    "as_strided": lambda torch: [
        torch.autograd.grad((x.as_strided((3, 3), (2, 1)) * torch.arange(9.0).view(3, 3)).sum(), x)
        for x in [torch.arange(12.0).requires_grad_()]],
    "as_strided of expanded": lambda torch: [
        torch.autograd.grad((x.as_strided((3, 2), (1, 0)) * torch.arange(6.0).view(3, 2)).sum(), x)
        for x in [torch.ones(3, 1).expand(3, 4).detach().requires_grad_()]],
    "real and imaginary parts": lambda torch: [
        (setattr(x, "real", torch.ones(2)), setattr(x, "imag", torch.full((2,), 2.0)), x)
        for x in [torch.zeros(2, dtype=torch.complex64)]],
    "custom view in place": lambda torch: _custom(
        torch, lambda ctx, x: x.view(-1), lambda ctx, g: g).apply(_leaf(torch).clone()).add_(1),
    "custom identity in place": lambda torch: _custom(
        torch, lambda ctx, x: x, lambda ctx, g: g * 2).apply(_leaf(torch).clone()).add_(1),
    "custom identity": lambda torch: [
        torch.autograd.grad(_custom(torch, lambda ctx, x: x, lambda ctx, g: g * 2).apply(x).sum(), x)
        for x in [_leaf(torch)]],
    "custom many": lambda torch: _custom(
        torch, lambda ctx, x: (x[:1], x[1:]), lambda ctx, g, h: torch.cat([g, h])).apply(
            _leaf(torch).clone())[0].add_(1),
    "saved number": lambda torch: _custom(
        torch, lambda ctx, x: (ctx.save_for_backward(1), x * 2)[1], lambda ctx, g: g).apply(_leaf(torch)),
    "too many gradients": lambda torch: _custom(
        torch, lambda ctx, x: x * 2, lambda ctx, g: (g, g)).apply(_leaf(torch)).sum().backward(),
    "resized by a hook": lambda torch: [(x.register_hook(lambda grad: grad.sum()), x.sum().backward())
                                        for x in [_leaf(torch)]],
    "power of complex": lambda torch: [
        torch.autograd.grad(torch.view_as_real(x ** y).sum(), (x, y))
        for x, y in [(torch.tensor([1 + 2j, 2 - 1j], requires_grad=True),
                      torch.tensor([2 + 0j, 1j], requires_grad=True))]],
    "preserved version": lambda torch: [
        (preserved(torch, x), x._version) for x in [torch.ones(2)]],
}


def preserved(torch: Any, x: Any) -> None:
    with torch.autograd._unsafe_preserve_version_counter(x):
        x.mul_(2)


@pytest.mark.parametrize("case", GRAPH)
def test_graph(case: str) -> None:
    agree(GRAPH[case])


def test_fast_gradcheck_asks_for_a_few_values_only() -> None:
    def calls(torch: Any) -> int:
        seen: list[int] = []

        def counted(x: Any) -> Any:
            seen.append(1)
            return x * x

        torch.autograd.gradcheck(counted, torch.ones(500, dtype=torch.float64, requires_grad=True), fast_mode=True)
        return len(seen)

    assert calls(ours) < 20
    assert calls(theirs) < 20
