"""Memory that is kept longer than it should be."""

from __future__ import annotations

import contextlib
import gc
import pathlib
import weakref

from ..registry import ANY, case
from ..tools import resident_mb


@case(recorders=ANY)
def trees_of_batches(directory: pathlib.Path) -> None:
    """`tree_map` over large batches keeps nothing until the garbage collector runs."""
    import mindtorch_v2 as torch
    from mindtorch_v2.utils import _pytree

    gc.disable()
    torch.ones(1)
    before = resident_mb()
    for _ in range(60):
        _pytree.tree_map(lambda x: x, {"a": [torch.ones(1_000_000)]})
    assert resident_mb() - before < 40, resident_mb() - before


@case(recorders=ANY, seconds=90)
def nothing_waits_for_the_collector(directory: pathlib.Path) -> None:
    """Forward, backward, optimizer, loader, hooks, checkpoints and errors make no cycles that hold tensors."""
    import mindtorch_v2 as torch
    from mindtorch_v2.utils.checkpoint import checkpoint

    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    optimizer = torch.optim.Adam(model.parameters())

    def train(x: torch.Tensor) -> None:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()

    def hooked(x: torch.Tensor) -> None:
        x = x.clone().requires_grad_()
        x.register_hook(lambda grad: grad * 2)
        (x * x).sum().backward()

    def failing(x: torch.Tensor) -> None:
        with contextlib.suppress(RuntimeError):
            x @ torch.ones(7)

    def twice(x: torch.Tensor) -> None:
        x = x.clone().requires_grad_()
        (grad,) = torch.autograd.grad((x ** 3).sum(), x, create_graph=True)
        grad.sum().backward()

    def loaded(x: torch.Tensor) -> None:
        for _ in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x), batch_size=2):
            pass

    def profiled(x: torch.Tensor) -> None:
        with torch.profiler.profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
            model(x)
        prof.key_averages()

    uses = (train, hooked, failing, twice, loaded, lambda x: checkpoint(model, x, use_reentrant=False).sum().backward(),
            lambda x: torch.func.grad(lambda y: (y * y).sum())(x), lambda x: torch.vmap(lambda y: y * 2)(x),
            lambda x: torch.linalg.multi_dot([x, torch.ones(3, 3), torch.ones(3, 2)]), lambda x: repr(x),
            lambda x: model.load_state_dict(model.state_dict()), profiled)
    for use in uses:
        for _ in range(2):
            use(torch.ones(4, 3))  # so that nothing is done for the first time
        gc.collect()
        gc.disable()
        x = torch.ones(4, 3)
        seen = weakref.ref(x)
        use(x)
        del x
        assert seen() is None, f"{use} keeps its argument"
        gc.enable()


@case(recorders=ANY)
def graphs_of_a_hundred_thousand_nodes(directory: pathlib.Path) -> None:
    """A graph of any depth runs backward and is freed without recursion."""
    import mindtorch_v2 as torch

    for run in (True, False):
        x = torch.ones(1, requires_grad=True)
        y = x
        for _ in range(100_000):
            y = y + 1
        if run:
            y.backward()
            assert x.grad.tolist() == [1.0]
        del y
        gc.collect()
