"""Which gradients the engine changes in place or gives away: only those that nothing else can see."""

import sys

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.utils._python_dispatch import TorchDispatchMode

pytestmark = pytest.mark.usefixtures("walk")


def leaf(*shape):
    return torch.ones(*shape, requires_grad=True)


def names(run):
    with torch.profiler.profile() as prof:
        run()
    return [event.name for event in prof.events() if event.name.startswith("aten::")]


def residual():
    """Accumulates twice in the middle, once into a leaf, and passes one gradient on to two."""
    w, b, x = leaf(4, 4), leaf(4, 4), leaf(4, 4)
    h = x * 2
    y = h + torch.tanh(h @ w) + b
    return (y * y).sum(), (w, b, x)


def watched_by(watcher):
    loss, leaves = residual()
    if watcher == "profile":
        sys.setprofile(lambda *event: None)
    elif watcher == "trace":
        kept = []  # as a debugger does, which holds frames and with them their locals

        def trace(frame, event, argument):
            kept.append((frame, argument))
            return trace

        sys.settrace(trace)
    try:
        found = names(loss.backward)
    finally:
        sys.setprofile(None)
        sys.settrace(None)
    return found, [one.grad.tolist() for one in leaves]


@pytest.mark.parametrize("watcher", ["profile", "trace"])
def test_who_watches_changes_nothing(watcher):
    assert watched_by(watcher) == watched_by(None)


def test_gradients_are_added_in_place_and_taken_over():
    found, _ = watched_by(None)
    assert found.count("aten::add_") == 2
    assert "aten::add" not in found
    # The one for `b` is still needed elsewhere when it comes.
    assert found.count("aten::detach") == 2
    assert found.count("aten::new_empty_strided") == 1


def test_a_gradient_for_two_leaves_is_copied_for_one():
    a, b = leaf(4), leaf(4)
    ((a + b) * 3).sum().backward()
    a.grad.zero_()
    assert b.grad.tolist() == [3.0] * 4


def test_views_of_one_gradient_are_what_two_leaves_get():
    """As in PyTorch: a change of one leaf's gradient shows in the other's."""
    a, b = leaf(2, 2), leaf(2, 2)
    loss = ((a.view(-1) + b.view(-1)) * 3).sum()
    assert "aten::new_empty_strided" not in names(loss.backward)
    a.grad.zero_()
    assert b.grad.tolist() == [[0.0] * 2] * 2


def test_a_gradient_that_a_leaf_got_a_view_of_is_not_changed_by_the_engine():
    a, b = leaf(2, 2), leaf(4)
    h = b * 2
    early = h * 5
    # The sum's gradient goes to a leaf as a view, and to `h`, where that of `early` is added.
    ((a.view(-1) + h) * 3 + early).sum().backward()
    assert a.grad.tolist() == [[3.0] * 2] * 2
    assert b.grad.tolist() == [16.0] * 4


def test_a_gradient_that_the_program_gave_stays_its_own():
    x, given = leaf(4), torch.ones(4)
    (x + 0).backward(given)
    (x.view(4)).backward(given)
    x.grad.add_(1)
    assert given.tolist() == [1.0] * 4


def test_what_a_hook_keeps_stays():
    kept = []
    x = leaf(4)
    h = x * 2
    h.register_hook(kept.append)
    x.register_hook(kept.append)
    y = h + h.view(4)
    (y * y).sum().backward()
    before = [one.clone() for one in kept]
    x.grad.zero_()
    assert all(torch.equal(one, old) for one, old in zip(kept, before))


def test_what_retain_grad_keeps_stays():
    x = leaf(4)
    h = x + 0
    h.retain_grad()
    (h * 3).sum().backward()
    x.grad.zero_()
    assert h.grad.tolist() == [3.0] * 4


def test_what_is_returned_for_a_target_stays():
    x = leaf(4)
    h = x * 2
    y = (h * 3 + h * 4).sum()
    (found,) = torch.autograd.grad(y, [h], retain_graph=True)
    h.retain_grad()
    torch.autograd.backward(y, inputs=[h, x])
    assert x.grad.tolist() == [14.0] * 4
    x.grad.zero_()
    assert found.tolist() == h.grad.tolist() == [7.0] * 4


def test_what_is_captured_for_a_leaf_is_not_changed_by_what_comes_later_for_its_neighbour():
    x, y = leaf(4), leaf(4)
    h = x * 2
    early = h * 3
    late = (h + y) * 5  # one gradient for h and y; that of `early` is added to it for h alone
    of_x, of_y = torch.autograd.grad((late + early).sum(), (x, y))
    assert of_x.tolist() == [16.0] * 4
    assert of_y.tolist() == [5.0] * 4


def test_what_a_custom_function_keeps_stays():
    kept = []

    class Keep(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            kept.append(grad)
            return grad

    x = leaf(4)
    h = Keep.apply(x)
    (h * 3 + h * 2).sum().backward()
    x.grad.zero_()
    assert kept[0].tolist() == [5.0] * 4


def test_what_a_mode_keeps_stays():
    kept = []

    class Keep(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            made = func(*args, **(kwargs or {}))
            if func is torch.ops.aten.mul.Tensor:
                kept.append((made, made.clone()))
            return made

    x = leaf(4)
    loss = (x * 3 + x * 2).sum()
    with Keep():
        loss.backward()
    x.grad.zero_()
    assert len(kept) == 2
    assert all(torch.equal(made, copy) for made, copy in kept)


def test_parts_of_a_gradient_go_to_their_leaves_as_they_are():
    a, b = leaf(2), leaf(3)
    loss = (torch.cat([a, b]) * 3).sum()
    assert "aten::new_empty_strided" not in names(loss.backward)
    a.grad.zero_()
    assert b.grad.tolist() == [3.0] * 3


def test_two_inputs_of_backward_have_memory_of_their_own():
    a, b = leaf(4), leaf(4)
    torch.autograd.backward(((a + b) * 3).sum(), inputs=[a, b])
    a.grad.zero_()
    assert b.grad.tolist() == [3.0] * 4


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def test_what_nobody_kept_is_taken_over():
    """Gradients that hooks and custom functions have dropped, as in PyTorch: no copy is made."""
    x = leaf(3)
    x.register_hook(lambda grad: grad * 2)
    y = Twice.apply(x)
    y.grad_fn.register_hook(lambda inputs, outputs: None)
    made = names(y.sum().backward)
    assert "aten::new_empty_strided" not in made
    assert x.grad.tolist() == [4.0] * 3


def test_a_tensor_given_for_two_leaves_is_copied_once():
    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, grad):
            made = grad * 2
            return made, made

    a, b = leaf(3), leaf(3)
    made = names(Both.apply(a, b).sum().backward)
    assert made.count("aten::new_empty_strided") == 1
    a.grad.zero_()
    assert b.grad.tolist() == [2.0] * 3
