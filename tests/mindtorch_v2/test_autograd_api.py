"""The autograd API: backward, grad, hooks, modes, custom functions, saved tensors, views."""

from __future__ import annotations

import gc
import threading
import tracemalloc
import weakref

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.utils.checkpoint import checkpoint

pytestmark = pytest.mark.usefixtures("walk")


@pytest.fixture
def x():
    return torch.tensor([1.0, 2.0, 3.0], requires_grad=True)


class TestBackward:
    def test_accumulates_into_leaves(self, x):
        (x * x).sum().backward()
        (x * 2).sum().backward()
        assert x.grad.tolist() == [4.0, 6.0, 8.0]

    def test_non_scalar_needs_a_gradient(self, x):
        with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
            (x * 2).backward()
        (x * 2).backward(torch.tensor([1.0, 0.0, 2.0]))
        assert x.grad.tolist() == [2.0, 0.0, 4.0]

    def test_without_graph(self):
        with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
            torch.ones(1).backward()

    def test_second_backward_needs_retain_graph(self, x):
        y = (x * x).sum()
        y.backward(retain_graph=True)
        y.backward()
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            y.backward()
        assert x.grad.tolist() == [4.0, 8.0, 12.0]

    def test_inputs_limits_where_gradients_go(self, x):
        w = torch.ones(3, requires_grad=True)
        (x * w).sum().backward(inputs=[w])
        assert x.grad is None
        assert w.grad.tolist() == [1.0, 2.0, 3.0]

    def test_broadcast_is_summed_back(self):
        a = torch.ones(3, 1, requires_grad=True)
        b = torch.ones(4, requires_grad=True)
        (a * b).sum().backward()
        assert a.grad.shape == (3, 1)
        assert a.grad.tolist() == [[4.0]] * 3
        assert b.grad.tolist() == [3.0] * 4

    def test_gradient_has_the_leafs_dtype(self):
        a = torch.ones(2, dtype=torch.float32, requires_grad=True)
        b = torch.ones(2, dtype=torch.float64, requires_grad=True)
        (a * b).sum().backward()
        assert a.grad.dtype is torch.float32
        assert b.grad.dtype is torch.float64

    def test_diamond(self, x):
        y = x * 2
        (y * y + y).sum().backward()
        assert x.grad.tolist() == [10.0, 18.0, 26.0]


class TestGrad:
    def test_values_and_untouched_leaves(self, x):
        (g,) = torch.autograd.grad((x * x).sum(), x)
        assert g.tolist() == [2.0, 4.0, 6.0]
        assert x.grad is None

    def test_intermediate_tensors(self, x):
        y = x * x
        (g,) = torch.autograd.grad((y * 3).sum(), y)
        assert g.tolist() == [3.0, 3.0, 3.0]

    def test_unused(self, x):
        other = torch.ones(1, requires_grad=True)
        with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
            torch.autograd.grad((x * x).sum(), [x, other])
        found = torch.autograd.grad((x * x).sum(), [x, other], allow_unused=True)
        assert found[1] is None
        found = torch.autograd.grad((x * x).sum(), [x, other], materialize_grads=True)
        assert found[1].tolist() == [0.0]

    def test_second_derivative(self, x):
        (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x)
        assert second.tolist() == [6.0, 12.0, 18.0]

    def test_batched_grads(self, x):
        (found,) = torch.autograd.grad(x * x, x, torch.eye(3), is_grads_batched=True)
        assert found.tolist() == [[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 6.0]]

    @pytest.mark.parametrize(("given", "words"), [(None, "got none"), (torch.ones(0, 3), "size 0")])
    def test_batched_grads_need_a_batch(self, x, given, words):
        with pytest.raises(ValueError, match=words):
            torch.autograd.grad(x * x, x, given, is_grads_batched=True)


class TestHooks:
    def test_tensor_hook_sees_and_replaces(self, x):
        seen = []
        y = x * 2
        handle = y.register_hook(lambda g: (seen.append(g.tolist()), g * 10)[1])
        y.sum().backward()
        assert seen == [[1.0, 1.0, 1.0]]
        assert x.grad.tolist() == [20.0] * 3
        handle.remove()

    def test_leaf_hook_and_removal(self, x):
        handle = x.register_hook(lambda g: g * 0)
        (x * 2).sum().backward()
        assert x.grad.tolist() == [0.0] * 3
        handle.remove()
        (x * 2).sum().backward()
        assert x.grad.tolist() == [2.0] * 3

    def test_hook_on_a_tensor_without_grad(self):
        with pytest.raises(RuntimeError, match="doesn't require gradient"):
            torch.ones(1).register_hook(print)

    def test_post_accumulate(self, x):
        seen = []
        x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.tolist()))
        (x * 2).sum().backward()
        assert seen == [[2.0] * 3]

    def test_node_hooks(self, x):
        y = x * 2
        order = []
        y.grad_fn.register_prehook(lambda grads: order.append("pre"))
        y.grad_fn.register_hook(lambda gi, go: order.append("post"))
        y.sum().backward()
        assert order == ["pre", "post"]

    def test_retain_grad(self, x):
        y = x * 2
        y.retain_grad()
        (y * 3).sum().backward()
        assert y.grad.tolist() == [3.0] * 3
        assert y.retains_grad

    def test_a_hook_that_raises_leaves_the_engine_usable(self, x):
        y = x * 2
        y.register_hook(lambda g: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            y.sum().backward()
        assert torch.is_grad_enabled()
        (x * 2).sum().backward()
        assert x.grad.tolist() == [2.0] * 3


class TestModes:
    def test_no_grad_contexts_and_decorators(self, x):
        @torch.no_grad()
        def twice(t):
            return t * 2

        assert not twice(x).requires_grad
        with torch.no_grad():
            assert not (x * 2).requires_grad
            with torch.enable_grad():
                assert (x * 2).requires_grad
        with torch.set_grad_enabled(False):
            assert not (x * 2).requires_grad
        assert torch.is_grad_enabled()
        with torch.inference_mode():
            assert not (x * 2).requires_grad
            assert torch.is_inference_mode_enabled()

    def test_generator(self, x):
        @torch.no_grad()
        def numbers():
            yield (x * 2).requires_grad
            yield (x * 2).requires_grad

        found = []
        for flag in numbers():
            found += [flag, torch.is_grad_enabled()]
        assert found == [False, True, False, True]

    def test_modes_are_per_thread(self):
        seen = []
        with torch.no_grad():
            thread = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
            thread.start()
            thread.join()
        assert seen == [True]

    def test_detach_shares_memory(self, x):
        y = x.detach()
        assert not y.requires_grad
        assert y.data_ptr() == x.data_ptr()

    def test_requires_grad_rules(self):
        with pytest.raises(RuntimeError, match=r"(?i)only Tensors of floating point"):
            torch.ones(1, dtype=torch.int64).requires_grad_()
        y = torch.ones(1, requires_grad=True) * 2
        with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables"):
            y.requires_grad = False


class TestInPlace:
    def test_leaf_is_refused(self, x):
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            x.add_(1)

    def test_view_of_leaf_is_refused(self, x):
        with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
            x[0].add_(1)

    def test_saved_tensor_was_changed(self, x):
        y = x * 2
        z = y * y
        y.add_(1)
        with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*version 1; expected version 0"):
            z.sum().backward()

    def test_saved_result_was_changed(self, x):
        y = torch.exp(x)
        y.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()

    def test_history_follows(self, x):
        y = x * 2
        y.mul_(x)
        y.sum().backward()
        assert x.grad.tolist() == [4.0, 8.0, 12.0]

    def test_view_changes_base_history(self):
        w = torch.tensor([2.0, 3.0], requires_grad=True)
        base = torch.ones(4)
        base[1:3].mul_(w)
        assert base.requires_grad
        (base * torch.tensor([1.0, 10.0, 100.0, 1000.0])).sum().backward()
        assert w.grad.tolist() == [10.0, 100.0]

    def test_base_changes_view_history(self):
        w = torch.tensor([2.0, 3.0], requires_grad=True)
        base = torch.ones(2)
        view = base.view(2, 1)
        base.mul_(w)
        assert view.requires_grad
        assert view.tolist() == [[2.0], [3.0]]
        (view * 5).sum().backward()
        assert w.grad.tolist() == [5.0, 5.0]

    def test_versions_are_shared_by_views_but_not_by_data(self):
        a = torch.zeros(4)
        view, data = a.view(2, 2), a.data
        view.add_(1)
        assert (a._version, view._version, data._version) == (1, 1, 0)
        assert data.tolist() == [1.0] * 4


class TestFunction:
    def test_forward_and_backward(self, x):
        class Cube(torch.autograd.Function):
            @staticmethod
            def forward(ctx, t):
                ctx.save_for_backward(t)
                return t**3

            @staticmethod
            def backward(ctx, grad):
                (t,) = ctx.saved_tensors
                return grad * 3 * t**2

        y = Cube.apply(x)
        assert y.grad_fn.name() == "CubeBackward"
        y.sum().backward()
        assert x.grad.tolist() == [3.0, 12.0, 27.0]
        assert torch.autograd.gradcheck(Cube.apply, torch.rand(3, dtype=torch.float64, requires_grad=True))
        assert torch.autograd.gradgradcheck(Cube.apply, torch.rand(3, dtype=torch.float64, requires_grad=True))

    def test_setup_context_and_non_tensor_inputs(self, x):
        class Scale(torch.autograd.Function):
            @staticmethod
            def forward(t, factor):
                return t * factor

            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.factor = inputs[1]

            @staticmethod
            def backward(ctx, grad):
                return grad * ctx.factor, None

        Scale.apply(x, 4).sum().backward()
        assert x.grad.tolist() == [4.0] * 3

    def test_every_attribute_of_ctx_belongs_to_the_user(self, x):
        class Busy(torch.autograd.Function):
            @staticmethod
            def forward(ctx, t):
                ctx.positions, ctx.saved, ctx.meta, ctx.edges, ctx.hooks, ctx.seq = 1, 2, 3, 4, 5, 6
                ctx.save_for_backward(t)
                return t * 2

            @staticmethod
            def backward(ctx, grad):
                assert (ctx.positions, ctx.saved, ctx.meta, ctx.edges, ctx.hooks, ctx.seq) == (1, 2, 3, 4, 5, 6)
                assert len(ctx.saved_tensors) == 1
                return grad * 2

        y = Busy.apply(x)
        assert y.grad_fn.positions == (0,) or y.grad_fn.positions == 1
        y.sum().backward()
        assert x.grad.tolist() == [2.0] * 3
        with pytest.raises(RuntimeError, match="second time"):
            y.sum().backward()

    def test_needs_input_grad_and_wrong_number_of_gradients(self, x):
        class Two(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a, b):
                assert ctx.needs_input_grad == (True, False)
                return a + b

            @staticmethod
            def backward(ctx, grad):
                return grad

        with pytest.raises(RuntimeError, match="returned an incorrect number of gradients"):
            Two.apply(x, torch.ones(3)).sum().backward()

    def test_non_differentiable_output(self, x):
        class Sort(torch.autograd.Function):
            @staticmethod
            def forward(ctx, t):
                flags = t > 1
                ctx.mark_non_differentiable(flags)
                return t * 1, flags

            @staticmethod
            def backward(ctx, grad, _):
                return grad

        values, flags = Sort.apply(x)
        assert values.requires_grad
        assert not flags.requires_grad

    def test_once_differentiable(self, x):
        class Once(torch.autograd.Function):
            @staticmethod
            def forward(ctx, t):
                return t * 2

            @staticmethod
            @torch.autograd.function.once_differentiable
            def backward(ctx, grad):
                return grad * 2

        y = Once.apply(x)
        (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
        with pytest.raises(RuntimeError, match="once_differentiable"):
            g.sum().backward()


class TestGraph:
    def test_next_functions_and_names(self, x):
        y = x * 2
        z = y + 1
        assert z.grad_fn.name() == "AddBackward0"
        assert z.grad_fn.next_functions[0][0] is y.grad_fn
        assert y.grad_fn.next_functions[0][0].name() == "torch::autograd::AccumulateGrad"
        assert y.grad_fn.next_functions[0][0].variable is x

    def test_saved_tensors_hooks(self, x):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(force=True).copy(), torch.from_numpy):
            y = (x * x).sum()
        y.backward()
        assert x.grad.tolist() == [2.0, 4.0, 6.0]

    def test_anomaly_names_the_node(self):
        a = torch.zeros(1, requires_grad=True)
        with (pytest.warns(UserWarning, match="Anomaly Detection|Error detected in"), torch.autograd.detect_anomaly(),
              pytest.raises(RuntimeError, match=r"'.*Backward.' returned nan values")):
            (torch.sqrt(a) * 0).sum().backward()

    def test_deep_chain(self, x):
        y = x
        for _ in range(100_000):
            y = y + 1
        y.sum().backward()
        assert x.grad.tolist() == [1.0] * 3
        del y

    def test_memory_returns(self, x):
        def run():
            y = x
            for _ in range(5000):
                y = y + 1
            y.sum().backward()

        run()
        x.grad = None
        gc.collect()
        # The graph takes some 4 MB; what may stay is the interpreter's own pool of small tuples.
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        gc.disable()
        try:
            run()
            x.grad = None
            grown = tracemalloc.get_traced_memory()[0] - before
        finally:
            gc.enable()
            tracemalloc.stop()
        assert grown < 400_000, f"{grown} bytes stayed after the graph was dropped"

    def test_threads(self):
        w = torch.ones(50, requires_grad=True)
        errors = []

        def work(seed):
            try:
                for _ in range(20):
                    local = torch.full((50,), float(seed), requires_grad=True)
                    (local * local).sum().backward()
                    assert local.grad.tolist() == [2.0 * seed] * 50
                    (g,) = torch.autograd.grad((w * seed).sum(), w)
                    assert g.tolist() == [float(seed)] * 50
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(i + 1,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []


def test_gradcheck_finds_a_wrong_formula():
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            return t * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 3

    given = torch.rand(2, dtype=torch.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        torch.autograd.gradcheck(Wrong.apply, given)
    assert torch.autograd.gradcheck(Wrong.apply, given, raise_exception=False) is False


def test_grad_assignment_is_checked(x):
    with pytest.raises(RuntimeError, match="attempting to assign a gradient of size"):
        x.grad = torch.ones(2)
    with pytest.raises(RuntimeError, match="dtype"):
        x.grad = torch.ones(3, dtype=torch.float64)
    with pytest.raises(TypeError, match="assigned grad expected to be a Tensor or None"):
        x.grad = np.ones(3)
    x.grad = torch.ones(3)
    assert x.grad.tolist() == [1.0] * 3


def test_a_failed_op_lets_go_of_its_arguments():
    """Without waiting for the garbage collector: a training loop that catches an error keeps its memory."""
    gc.collect()
    gc.disable()
    try:
        x = torch.ones(3)
        gone = weakref.ref(x)
        with pytest.raises(RuntimeError, match="must match the size"):
            x + torch.ones(4)
        del x
        assert gone() is None
    finally:
        gc.enable()


KEEPERS = {
    "right factor": lambda h: (torch.ones(3, 6) @ h.t()).sum(),
    "weight": lambda h: torch.nn.functional.linear(torch.ones(3, 6), h).sum(),
    "window": lambda h: h.as_strided((2, 2), (1, 6), 1).sum(),
    "written view": lambda h: h.t().sin_().sum(),
    "hook of a module": lambda h: watched_layer()(h).sum(),
    "checkpoint": lambda h: checkpoint(torch.sin, h, use_reentrant=False).sum(),
}


def watched_layer():
    layer = torch.nn.Identity()
    layer.register_full_backward_hook(lambda module, inputs, outputs: None)
    return layer


@pytest.mark.parametrize("name", KEEPERS)
def test_a_graph_that_was_used_keeps_no_memory(name):
    """The loss, and with it the graph, may live on after backward, as it does in most training loops."""
    gc.collect()
    gc.disable()
    try:
        leaf = torch.ones(5, 6, requires_grad=True)
        hidden = leaf * 2
        memory = weakref.ref(hidden._a)
        loss = KEEPERS[name](hidden)
        del hidden
        loss.backward()
        assert memory() is None
        assert loss.grad_fn is not None
    finally:
        gc.enable()


def test_the_right_factor_is_not_kept_for_its_own_gradient():
    """Its gradient needs the left factor only."""
    memory = []

    def product():
        right = torch.ones(5, 6, requires_grad=True) * 2
        memory.append(weakref.ref(right._a))
        return torch.ones(3, 5) @ right

    result = product()
    assert memory[0]() is None
    result.sum().backward()


def test_a_gradient_that_two_leaves_get_is_copied_into_the_order_of_each():
    rows, columns = torch.ones(3, 4, requires_grad=True), torch.ones(4, 3).t().requires_grad_()
    given = torch.arange(12.0).view(3, 4)
    (rows + columns).backward(given)
    assert [rows.grad.stride(), columns.grad.stride()] == [(4, 1), (1, 3)]
    assert rows.grad.tolist() == columns.grad.tolist() == given.tolist()
    assert rows.grad._version == columns.grad._version == 1
    given.zero_()
    assert rows.grad.sum() == columns.grad.sum() == 66
