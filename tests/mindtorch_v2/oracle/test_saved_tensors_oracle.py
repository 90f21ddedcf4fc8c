"""What nodes save and how programs see it: packing hooks, saved attributes, targets of a backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from test_semantics_autograd_oracle import agree

pytestmark = pytest.mark.usefixtures("walk")

PACKS: dict[str, Callable[[Any], Any]] = {"as it is": lambda t: t, "a copy": lambda t: t.clone(),
                                          "an array": lambda t: t.detach().cpu().numpy().copy()}


def hooked(torch: Any, pack: Callable[[Any], Any]) -> Any:
    return torch.autograd.graph.saved_tensors_hooks(
        pack, lambda kept: kept if isinstance(kept, torch.Tensor) else torch.tensor(kept))


@pytest.mark.parametrize("pack", PACKS)
def test_second_derivatives_go_through_packed_tensors(pack: str) -> None:
    def program(torch: Any) -> Any:
        x, w = (torch.tensor([value], requires_grad=True) for value in (2.0, 3.0))
        with hooked(torch, PACKS[pack]):
            inner = x * w
            first = (inner * inner * x).sin()
            y = first + inner.tanh().exp() + inner[torch.tensor([0])]
        grads = torch.autograd.grad(y.sum(), [x, w], create_graph=True)
        return [grads, torch.autograd.grad(grads[0] + grads[1], [x, w])]

    agree(program)


def test_a_custom_function_sees_histories_of_packed_tensors() -> None:
    def program(torch: Any) -> Any:
        class Exp(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                result = x.exp()
                ctx.save_for_backward(x, result)
                return result

            @staticmethod
            def backward(ctx: Any, grad: Any) -> Any:
                x, result = ctx.saved_tensors
                return grad * result * x / x

        x = torch.tensor([2.0], requires_grad=True)
        with hooked(torch, PACKS["a copy"]):
            y = Exp.apply(x)
        first = torch.autograd.grad(y, x, create_graph=True)[0]
        return [first, torch.autograd.grad(first, x)]

    agree(program)


def test_packed_tensors_keep_where_their_gradient_goes() -> None:
    def program(torch: Any) -> Any:
        x, other = torch.tensor([2.0], requires_grad=True), torch.tensor([3.0])
        with hooked(torch, PACKS["a copy"]):
            inner = x * 2
            product, power, scaled = inner * inner, inner.exp(), x * other
        saved = product.grad_fn._saved_self
        return [saved is inner, saved.requires_grad, saved.grad_fn is inner.grad_fn, saved.output_nr,
                power.grad_fn._saved_result.grad_fn is power.grad_fn, scaled.grad_fn._saved_other.requires_grad]

    agree(program)


INDEXED: dict[str, Callable[[Any, Any, Any], Any]] = {
    "index": lambda torch, x, at: x[at], "column": lambda torch, x, at: x[:, at],
    "put": lambda torch, x, at: x.clone().index_put((at,), torch.ones(3)),
    "assignment": lambda torch, x, at: x.clone().index_put_((at,), x[:2] * 2),
}


@pytest.mark.parametrize("op", INDEXED)
def test_index_tensors_are_saved_as_all_are(op: str) -> None:
    def program(torch: Any) -> Any:
        x, at, packed = torch.arange(9.0).view(3, 3).requires_grad_(), torch.tensor([0, 1]), []
        with torch.autograd.graph.saved_tensors_hooks(lambda t: (packed.append(t.dtype), t)[1], lambda t: t):
            y = INDEXED[op](torch, x, at).sum()
        y.backward()
        return [len(packed), x.grad]

    def twice(torch: Any) -> Any:
        y = INDEXED[op](torch, torch.arange(9.0).view(3, 3).requires_grad_(), torch.tensor([0, 1])).sum()
        y.backward()
        y.backward()

    def changed(torch: Any) -> Any:
        at = torch.tensor([0, 1])
        y = INDEXED[op](torch, torch.arange(9.0).view(3, 3).requires_grad_(), at).sum()
        at.zero_()
        y.backward()

    agree(program)
    agree(twice)
    agree(changed)


ATTRIBUTES: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "index": (lambda torch, x: x[:, torch.tensor([0, 1])], "indices self_sym_sizes nothing"),
    "max": (lambda torch, x: x.max(0)[0], "indices dim self_sym_sizes"),
    "sort": (lambda torch, x: x.sort()[0], "indices dim"),
    "cumsum": (lambda torch, x: x.cumsum(-1), "dim"),
    "sum": (lambda torch, x: x.sum((0, -1)), "dim self_sym_sizes"),
    "eigh": (lambda torch, x: torch.linalg.eigh(x @ x.mT)[0], "eigenvalues"),
    "mean": (lambda torch, x: x.mean(), "self_sym_numel"),
    "unfold": (lambda torch, x: torch.nn.functional.unfold(x[None, None], 2),
               "self_sym_argsize_minus_1 self_sym_argsize_minus_2 kernel_size"),
    "addbmm": (lambda torch, x: torch.addbmm(x, x[None], x[None]), "batch1_sym_argsize_0 batch1_sym_argsize_1"),
    "convolution": (lambda torch, x: torch.nn.functional.conv1d(x, torch.ones(2, 2, 1)), "bias_sym_sizes_opt stride"),
    "pooling": (lambda torch, x: torch.nn.functional.max_pool2d(x[None], 2), "kernel_size dilation result1"),
    "embedding": (lambda torch, x: torch.nn.functional.embedding(torch.tensor([0]), x),
                  "padding_idx weight_sym_argsize_0"),
}


@pytest.mark.parametrize("op", ATTRIBUTES)
def test_saved_attributes_have_pytorchs_names_and_forms(op: str) -> None:
    make, names = ATTRIBUTES[op]

    def program(torch: Any) -> Any:
        node = make(torch, torch.tensor([[1.0, 2.0], [2.0, 5.0]], requires_grad=True)).grad_fn
        return [[getattr(node, f"_saved_{name}", "absent") for name in names.split()], node.requires_grad]

    agree(program)


def test_hooks_are_set_on_single_saved_tensors() -> None:
    def program(torch: Any) -> Any:
        class Keep(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.save_for_backward(x, None)
                return x.exp()

            @staticmethod
            def backward(ctx: Any, grad: Any) -> Any:
                return grad * ctx.saved_tensors[0]

        x = torch.ones(2, 2, requires_grad=True)
        custom, indexed = Keep.apply(x), x[:, torch.tensor([0, 1])]
        found = [len(custom.grad_fn._raw_saved_tensors), len(indexed.grad_fn._raw_saved_indices)]
        custom.grad_fn._raw_saved_tensors[0].register_hooks(lambda t: t * 2, lambda t: t * 3)
        indexed.grad_fn._raw_saved_indices[1].register_hooks(lambda t: t, lambda t: t.flip(0))
        (custom + indexed * torch.arange(2.0)).sum().backward()
        return [found, x.grad]

    def nothing(torch: Any) -> Any:
        indexed = torch.ones(2, 2, requires_grad=True)[:, torch.tensor([0])]
        indexed.grad_fn._raw_saved_indices[0].register_hooks(lambda t: t, lambda t: t)

    def freed(torch: Any) -> Any:
        x = torch.ones(2, requires_grad=True)
        y = x * x
        y.sum().backward()
        y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)

    for one in (program, nothing, freed):
        agree(one)


@pytest.mark.parametrize("targets", ["b", "ab", "a", "c"])
def test_nodes_of_targets_run_in_backward_but_not_in_grad(targets: str) -> None:
    def program(torch: Any) -> Any:
        calls: list[str] = []
        a = torch.tensor([1.0], requires_grad=True)
        b = a * 2
        c = b * 2
        for name, tensor in (("a", a), ("b", b), ("c", c)):
            node = torch.autograd.graph.get_gradient_edge(tensor).node
            tensor.register_hook(lambda grad, name=name: calls.append(f"tensor {name}"))
            node.register_prehook(lambda grads, name=name: calls.append(f"before {name}"))
            node.register_hook(lambda inside, outside, name=name: calls.append(f"after {name}"))
        wanted = [{"a": a, "b": b, "c": c}[name] for name in targets]
        torch.autograd.grad(c, wanted, retain_graph=True)
        calls.append("backward")
        c.backward(inputs=wanted, retain_graph=True)
        return calls

    agree(program)


@pytest.mark.parametrize("leaf", [True, False])
def test_an_input_returned_without_recording_needs_no_gradient(leaf: bool) -> None:
    def program(torch: Any) -> Any:
        class Same(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x

            @staticmethod
            def backward(ctx: Any, grad: Any) -> Any:
                return grad

        x = torch.ones(2, requires_grad=True)
        x = x if leaf else x * 2
        with torch.no_grad():
            y = Same.apply(x)
        return [y is x, y.requires_grad, y.is_leaf, y._is_view()]

    agree(program)


def test_hooks_of_a_leaf_are_seen() -> None:
    def program(torch: Any) -> Any:
        x = torch.ones(2, requires_grad=True)
        before = x._post_accumulate_grad_hooks
        x.register_post_accumulate_grad_hook(lambda p: None)
        return [before, len(x._post_accumulate_grad_hooks)]

    agree(program)


SETS: dict[str, Callable[[Any, Any], Any]] = {
    "a result": lambda torch, x: (x * 2).set_(torch.ones(3)),
    "from what requires grad": lambda torch, x: torch.ones(3).set_(x),
    "a leaf": lambda torch, x: x.set_(torch.ones(3)),
    "plain": lambda torch, x: torch.ones(3).set_(torch.zeros(2)) + x.sum(),
}


@pytest.mark.parametrize("kind", SETS)
def test_set_has_no_derivative(kind: str) -> None:
    def program(torch: Any) -> Any:
        x = torch.ones(3, requires_grad=True)
        made = SETS[kind](torch, x)
        try:
            made.sum().backward()
        except RuntimeError as error:
            return [made.requires_grad, "derivative for set_ is not implemented" in str(error)]
        return [made.requires_grad, x.grad]

    agree(program)


def test_inference_tensors_are_refused_only_where_they_are_kept() -> None:
    def program(torch: Any) -> Any:
        with torch.inference_mode():
            layer = torch.nn.Linear(2, 2, bias=False)
        (torch.ones(1, 2) @ layer.weight + (layer.weight * torch.ones(2)).sum()).sum().backward()
        return [layer.weight.grad, layer.weight.is_inference()]

    def kept(torch: Any) -> Any:
        with torch.inference_mode():
            x = torch.ones(2)
        return x * torch.ones(2, requires_grad=True)

    agree(program)
    agree(kept)
