"""`__torch_dispatch__` modes: which ops they get, and what happens to their answers."""

from __future__ import annotations

import importlib
import json
from typing import Any

import pytest
from both import ours, outcome, same

import mindtorch_v2.utils._python_dispatch  # noqa: F401  (tests take it from the module)
from mindtorch_v2._dispatch.observer import HOOK


def mode_class(torch: Any) -> Any:
    return importlib.import_module(f"{torch.__name__}.utils._python_dispatch").TorchDispatchMode


def noting(torch: Any, log: list[Any]) -> Any:
    class Noting(mode_class(torch)):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            log.append((str(func), len(args)))
            return func(*args, **(kwargs or {}))

    return Noting()


PROGRAMS = [
    lambda torch, x, w: x + x, lambda torch, x, w: w + x * 2, lambda torch, x, w: x @ w, lambda torch, x, w: w.view(-1),
    lambda torch, x, w: torch.nn.functional.linear(x, w, x[0]), lambda torch, x, w: torch.nn.functional.linear(x, w),
    lambda torch, x, w: torch.ones(2), lambda torch, x, w: torch.zeros(2).add_(1, alpha=2), lambda torch, x, w: w.sum(),
    lambda torch, x, w: x.sum(dim=0), lambda torch, x, w: torch.nn.functional.softmax(x, -1),
    lambda torch, x, w: torch.nn.functional.conv2d(x[None, None], w[None, None]), lambda torch, x, w: x[0, 1],
    lambda torch, x, w: torch.cat([x, w]), lambda torch, x, w: torch.max(x, 0), lambda torch, x, w: x.to(torch.float64),
    lambda torch, x, w: x.mean(), lambda torch, x, w: torch.nn.functional.layer_norm(x, [2]),
    lambda torch, x, w: torch.zeros_like(x), lambda torch, x, w: x.T.contiguous(), lambda torch, x, w: x.reshape(4),
    lambda torch, x, w: x.chunk(2), lambda torch, x, w: torch.nn.functional.relu(x), lambda torch, x, w: x[0, 0].item(),
    lambda torch, x, w: torch.nn.functional.leaky_relu_(x), lambda torch, x, w: torch.nn.functional.elu_(x),
    lambda torch, x, w: torch.manual_seed(0) and x.normal_(1.0, 2.0), lambda torch, x, w: x.pow_(2),
    lambda torch, x, w: x.pow_(x), lambda torch, x, w: x.floor_divide_(2), lambda torch, x, w: x.t_().squeeze_(0),
    lambda torch, x, w: torch.nn.functional.layer_norm(w, [2]), lambda torch, x, w: w.max(0),
    lambda torch, x, w: w.kthvalue(1), lambda torch, x, w: w.sort(), lambda torch, x, w: w.topk(1),
    lambda torch, x, w: torch.nn.functional.nll_loss(w, x[0].long() - 1)]


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_a_mode_is_given_every_op(number: int) -> None:
    def program(torch: Any) -> Any:
        log: list[Any] = []
        x, w = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.ones(2, 2, requires_grad=True)
        with noting(torch, log):
            made = PROGRAMS[number](torch, x, w)
        PROGRAMS[number](torch, x, w)
        return [made, log]

    same(program)


def test_a_mode_is_given_the_ops_of_backward() -> None:
    def program(torch: Any) -> Any:
        log: list[Any] = []
        w = torch.ones(2, 2, requires_grad=True)
        loss = (w * w).sum()
        with noting(torch, log):
            loss.backward()
        return [w.grad, [name for name, _ in log if name.startswith(("aten.mul", "aten.expand", "aten.add"))]]

    assert len(same(program)[2]) == 5


def test_answers_take_the_place_of_results_and_autograd_is_above() -> None:
    def program(torch: Any) -> Any:
        class More(mode_class(torch)):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                made = func(*args, **(kwargs or {}))
                return made * 10 if func is torch.ops.aten.mul.Tensor else made

        class Instead(mode_class(torch)):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                return torch.zeros(2) if func == torch.ops.aten.add.Tensor else func(*args, **(kwargs or {}))

        w = torch.ones(2, requires_grad=True)
        with More():
            y = w * 3
            z = torch.exp(w * 0.1)
        with Instead():
            q = w + 1
        changed = torch.ones(2, requires_grad=True) * 1
        with More():
            changed.mul_(changed)
        return [y, z, q, torch.autograd.grad(y.sum(), w), torch.autograd.grad(z.sum(), w), changed]

    same(program)


def test_autocast_comes_before_modes() -> None:
    def program(torch: Any) -> Any:
        log: list[Any] = []
        x, w = torch.ones(2, 2), torch.ones(2, 2, requires_grad=True)
        with noting(torch, log), torch.autocast("cpu", torch.bfloat16):
            y = x @ w
        y.sum().backward()
        return [y, w.grad, log]

    same(program)


def test_modes_nest_and_must_be_written() -> None:
    def program(torch: Any) -> Any:
        log: list[Any] = []
        x = torch.ones(2)
        with noting(torch, log), noting(torch, log):
            x + x
        plain = mode_class(torch)()

        def bare() -> None:
            with plain:
                x + x

        return [log, outcome(bare)[0]]

    assert same(program)[2] == "NotImplementedError"
    assert HOOK["TAP"] is None


def test_a_mode_is_given_ops_of_the_program() -> None:
    def program(torch: Any) -> Any:
        def twice(x):
            return x * 2

        twice.__annotations__ = {"x": torch.Tensor, "return": torch.Tensor}
        op = torch.library.custom_op("modes_a::twice", twice, mutates_args=())
        log: list[Any] = []
        with noting(torch, log):
            made = [op(torch.ones(2)), op(torch.ones(2, requires_grad=True))]
        return [made, [entry for entry in log if entry[0] != "aten.ones.default"]]

    same(program)


def counted(torch: Any, run: Any) -> Any:
    counter = importlib.import_module(f"{torch.__name__}.utils.flop_counter").FlopCounterMode(display=False)
    with counter:
        run()
    found = counter.get_flop_counts()
    return [counter.get_total_flops(), {name: {str(op): count for op, count in found[name].items()}
                                        for name in sorted(found)}]


def test_flop_counter() -> None:
    def program(torch: Any) -> Any:
        nn, F = torch.nn, torch.nn.functional
        layers = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        image = torch.ones(2, 4, 8, 8, requires_grad=True)
        found = [counted(torch, lambda: layers(torch.ones(3, 4)).sum().backward()),
                 counted(torch, lambda: torch.bmm(torch.ones(2, 3, 4), torch.ones(2, 4, 5))),
                 counted(torch, lambda: torch.baddbmm(torch.ones(2, 3, 5), torch.ones(2, 3, 4), torch.ones(2, 4, 5))),
                 counted(torch, lambda: F.scaled_dot_product_attention(*[image] * 3).sum().backward())]
        for layer in (nn.Conv2d(4, 6, 3), nn.Conv2d(4, 8, 3, groups=2, stride=2), nn.ConvTranspose2d(4, 6, 3, stride=2),
                      nn.Conv2d(4, 4, 3, groups=4, padding=1)):
            found.append(counted(torch, lambda layer=layer: layer(image).sum().backward()))
            found.append(counted(torch, lambda layer=layer: layer(image.detach()).sum().backward()))
        return found

    same(program)


def test_the_table_and_own_formulas() -> None:
    flop_counter = importlib.import_module("mindtorch_v2.utils.flop_counter")
    own = {ours.ops.aten.relu: lambda shape, out_shape=None, **kwargs: 7}
    with flop_counter.FlopCounterMode(display=False, custom_mapping=own) as counter:
        ours.relu(ours.ones(3)) @ ours.ones(3, 2)
        ours.mm(ours.ones(2, 3), ours.ones(3, 4))
    assert counter.get_flop_counts()["Global"][ours.ops.aten.relu] == 7
    assert "aten.mm" in counter.get_table()


def test_the_table_has_the_whole_unless_a_module_has_all_of_it() -> None:
    """The text is what PyTorch makes with the package tabulate."""
    flop_counter = importlib.import_module("mindtorch_v2.utils.flop_counter")
    model = ours.nn.Sequential(ours.nn.Linear(4, 4), ours.nn.Sequential(ours.nn.Linear(4, 4)))
    with flop_counter.FlopCounterMode(display=False) as counter:
        model(ours.ones(2, 4)).sum().backward()
    assert counter.get_table(1) == (
        "Module          FLOP    % Total\n"
        "------------  ------  ---------\n"
        "Sequential       320    100.00%\n"
        "- aten.addmm     128     40.00%\n"
        "- aten.mm        192     60.00%")
    with counter:
        model(ours.ones(200, 4))
        ours.ones(100, 3) @ ours.ones(3, 70)
    assert counter.get_table(0) == (
        "Module           FLOP    % Total\n"
        "------------  -------  ---------\n"
        "Global        54.800K    100.00%\n"
        "- aten.addmm  12.800K     23.36%\n"
        "- aten.mm     42.000K     76.64%")


@pytest.mark.parametrize("use", [
    lambda counts: counts.convert_num_with_suffix(12345, "K"), lambda counts: counts.get_suffix_str(12345678),
    lambda counts: counts.convert_to_percent_str(1, 3), lambda counts: counts.convert_to_percent_str(1, 0),
    lambda counts: counts.sdpa_flop_count((1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 6)),
    lambda counts: counts.sdpa_backward_flop_count((1, 2, 3, 6), (1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 6))])
def test_helpers_of_the_counter(use: Any) -> None:
    same(lambda torch: use(importlib.import_module(f"{torch.__name__}.utils.flop_counter")))


def test_the_innermost_mode_can_be_taken_away() -> None:
    def program(torch: Any) -> Any:
        dispatch = importlib.import_module(f"{torch.__name__}.utils._python_dispatch")
        outer, inner = dispatch.BaseTorchDispatchMode(), dispatch.BaseTorchDispatchMode()
        found = [outcome(dispatch._pop_mode), dispatch.any_torch_dispatch_mode_on_stack()]
        with outer, inner:
            with dispatch._pop_mode_temporarily() as taken:
                found += [taken is inner, dispatch._get_current_dispatch_mode() is outer, torch.ones(2)]
            found += [dispatch._get_current_dispatch_mode() is inner, dispatch._pop_mode() is inner,
                      len(dispatch._get_current_dispatch_mode_stack())]
            dispatch._push_mode(inner)
        class Wrapper(torch.Tensor):
            def __tensor_flatten__(self) -> Any:
                return [], None

            @staticmethod
            def __tensor_unflatten__(*parts: Any) -> Any:
                return None

        return [*found, dispatch.any_torch_dispatch_mode_on_stack(),
                *[dispatch.is_traceable_wrapper_subclass_type(kind) for kind in (torch.Tensor, Wrapper, int)]]

    same(program)


def test_an_execution_trace_under_a_mode(tmp_path: Any) -> None:
    """It has the op, the mode in it, and what the mode runs in that."""
    def program(torch: Any) -> Any:
        path = tmp_path / f"{torch.__name__}.json"
        x, w = torch.ones(2, 2), torch.ones(2, 2, requires_grad=True)
        observer = torch.profiler.ExecutionTraceObserver().register_callback(str(path))
        observer.start()
        with noting(torch, []):
            torch.nn.functional.linear(x, w)
        y = x * 2
        observer.stop()
        observer.unregister_callback()
        nodes = {node["id"]: node for node in json.loads(path.read_text())["nodes"]}

        def above(node: Any) -> list[str]:
            over = nodes.get(node["ctrl_deps"])
            return [] if over is None or over is node else [over["name"], *above(over)]

        names = [[node["name"], *above(node)] for node in nodes.values()]
        return [y, sorted(names) if torch is ours else sorted(one for one in names if one[0] != "aten::resolve_conj")]

    assert any("PythonDispatchMode" in str(one) for one in same(program))


def test_a_packet_has_the_overloads_of_pytorch_alone() -> None:
    def program(torch: Any) -> Any:
        aten = torch.ops.aten
        torch.ones(2, 2).t_().squeeze_()  # in-place forms of views are declared beside the ops
        return [aten.t.overloads(), aten.as_strided.overloads(), aten.leaky_relu_.overloads(), aten.elu_.overloads(),
                aten.normal_.overloads(), aten.squeeze.overloads(), aten.transpose.overloads(),
                aten.leaky_relu_.default._schema.overload_name, str(aten.rrelu_with_noise_.default),
                sorted(aten.pow_.overloads())]

    same(program)
