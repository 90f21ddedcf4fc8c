"""`__torch_function__` and modes: which objects are asked about which function, here and in PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from both import ours, outcome, rows, same, theirs

import mindtorch_v2._faces as faces


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    """Other tests run without functions that ask."""
    yield
    faces.FACES.for_good = False
    faces.FACES.disarm()
    assert not faces.FACES.armed


def logging(torch: Any, log: list[Any]) -> Any:
    """A subclass that notes what it is asked about and does the usual thing."""
    class Noted(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            log.append((torch.overrides.resolve_name(func), len(args), sorted(kwargs or {})))
            return super().__torch_function__(func, types, args, kwargs)

    return Noted


def on_instance(torch: Any, calls: Any) -> Any:
    """Results of calls with an instance `x` and a plain tensor `p`, and what the class was asked about."""
    log: list[Any] = []
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).as_subclass(logging(torch, log))
    p = torch.ones(2, 2)
    found = []
    for call in calls:
        log.clear()
        result = outcome(lambda call=call: call(torch, x, p), 60)
        asked = list(log)
        found.append([result, asked])
    return found


OPERATORS = [
    lambda torch, x, p: x + x, lambda torch, x, p: p + x, lambda torch, x, p: 1 + x, lambda torch, x, p: 1 - x,
    lambda torch, x, p: p - x, lambda torch, x, p: x / 2, lambda torch, x, p: 2 ** x, lambda torch, x, p: x @ p,
    lambda torch, x, p: p @ x, lambda torch, x, p: -x, lambda torch, x, p: abs(x), lambda torch, x, p: x < 2,
    lambda torch, x, p: x == x, lambda torch, x, p: x // 2, lambda torch, x, p: x % 2, lambda torch, x, p: ~(x > 0),
    lambda torch, x, p: (x > 0) & (x > 1), lambda torch, x, p: x[0], lambda torch, x, p: len(x),
    lambda torch, x, p: bool(x.sum()), lambda torch, x, p: float(x[0, 0]), lambda torch, x, p: 1 in x,
    lambda torch, x, p: list(x), lambda torch, x, p: x.clone().__iadd__(1)]
FUNCTIONS = [
    lambda torch, x, p: torch.add(x, p), lambda torch, x, p: torch.add(p, x, alpha=2), lambda torch, x, p: x.add(p),
    lambda torch, x, p: p.add(x), lambda torch, x, p: torch.relu(x), lambda torch, x, p: torch.cat([p, x]),
    lambda torch, x, p: torch.stack((x, x)), lambda torch, x, p: torch.max(x, 0), lambda torch, x, p: x.max(0),
    lambda torch, x, p: x.unbind(), lambda torch, x, p: torch.mean(x, dim=0), lambda torch, x, p: x.sum(),
    lambda torch, x, p: torch.where(x > 2, x, p), lambda torch, x, p: torch.zeros_like(x),
    lambda torch, x, p: x.new_zeros(2), lambda torch, x, p: torch.add(p, p, out=x.clone()),
    lambda torch, x, p: torch.linalg.norm(x), lambda torch, x, p: torch.fft.fft(x).real,
    lambda torch, x, p: torch.allclose(x, x), lambda torch, x, p: torch.is_floating_point(x),
    lambda torch, x, p: p.clone().copy_(x), lambda torch, x, p: p.expand_as(x),
    lambda torch, x, p: torch.nn.functional.linear(x, p), lambda torch, x, p: torch.nn.functional.linear(p, x),
    lambda torch, x, p: torch.nn.functional.gelu(x), lambda torch, x, p: torch.nn.Linear(2, 2)(x).shape,
    lambda torch, x, p: torch.is_tensor(x), lambda torch, x, p: torch.ones(2)]
ATTRIBUTES = [
    lambda torch, x, p: x.shape, lambda torch, x, p: str(x.dtype), lambda torch, x, p: str(x.device),
    lambda torch, x, p: x.grad, lambda torch, x, p: x.requires_grad, lambda torch, x, p: x.is_leaf,
    lambda torch, x, p: x.T, lambda torch, x, p: x.data, lambda torch, x, p: x.ndim, lambda torch, x, p: x.size(),
    lambda torch, x, p: x.size(0), lambda torch, x, p: x.dim(), lambda torch, x, p: x.numel(),
    lambda torch, x, p: x[0, 0].item(), lambda torch, x, p: x.tolist(), lambda torch, x, p: x.clone(),
    lambda torch, x, p: x.detach(), lambda torch, x, p: x.to(torch.float64), lambda torch, x, p: x.view(-1),
    lambda torch, x, p: x.stride(), lambda torch, x, p: x.is_contiguous(), lambda torch, x, p: setattr(x, "data", p),
    lambda torch, x, p: setattr(x, "requires_grad", False), lambda torch, x, p: x.as_subclass(torch.Tensor),
    lambda torch, x, p: x.numpy().tolist(), lambda torch, x, p: setattr(x, "note", 3)]


@pytest.mark.parametrize("calls", [OPERATORS, FUNCTIONS, ATTRIBUTES], ids=["operators", "functions", "attributes"])
def test_a_subclass_is_asked_and_results_are_of_it(calls: Any) -> None:
    same(lambda torch: on_instance(torch, calls))


def test_functions_of_nn_are_offered_by_name() -> None:
    """Here arguments are passed on as given; PyTorch adds the defaults."""
    def program(torch: Any) -> Any:
        F, nn = torch.nn.functional, torch.nn
        calls = [lambda torch, x, p: F.relu(x), lambda torch, x, p: F.softmax(x, -1),
                 lambda torch, x, p: F.mse_loss(x, p), lambda torch, x, p: F.cross_entropy(x, torch.tensor([0, 1])),
                 lambda torch, x, p: nn.ReLU()(x), lambda torch, x, p: nn.LayerNorm(2)(x).detach(),
                 lambda torch, x, p: nn.Dropout(0.0)(x), lambda torch, x, p: nn.MSELoss()(x, p),
                 lambda torch, x, p: torch.norm(x)]
        return [[result, [name and name.rpartition(".")[2] for name, _, _ in asked]]
                for result, asked in on_instance(torch, calls)]

    same(program)


def test_a_plain_subclass_stays_and_carries_gradients() -> None:
    def program(torch: Any) -> Any:
        class Mine(torch.Tensor):
            def doubled(self):
                return self * 2

        x = torch.ones(2).as_subclass(Mine).requires_grad_()
        y = x.doubled()
        (y * y).sum().backward()
        nodes = [y.grad_fn.name(), y.grad_fn.next_functions[0][0].name()]
        return [y, nodes, x.grad, torch.autograd.grad((x * 3).sum(), x), repr(torch.ones(2).as_subclass(Mine)),
                isinstance(y, torch.Tensor), Mine([1.0, 2.0]) + 1, torch.nn.Parameter(torch.ones(1)) * 2,
                rows(torch, lambda: x * 2, lambda name: name in ("aten::mul", "aten::alias"))]

    same(program)


def test_which_class_wins() -> None:
    def program(torch: Any) -> Any:
        class A(torch.Tensor):
            pass

        class B(A):
            pass

        class C(torch.Tensor):
            pass

        class Off(torch.Tensor):
            __torch_function__ = torch._C._disabled_torch_function_impl

        a, b, c, off = (torch.ones(1).as_subclass(kind) for kind in (A, B, C, Off))
        with torch._C.DisableTorchFunctionSubclass():
            quiet = a + b
        return [a + b, b + a, torch.add(a, b), outcome(lambda: a + c, 60), outcome(lambda: torch.add(a, c), 150),
                off + off, torch.add(off, a), quiet]

    same(program)


def duck(torch: Any) -> Any:
    class Duck:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, [kind.__name__ for kind in types], len(args), sorted(kwargs or {})

    return Duck


CALLS = [
    lambda torch, d, p: torch.mean(d), lambda torch, d, p: torch.add(d, p), lambda torch, d, p: torch.add(p, d),
    lambda torch, d, p: p + d, lambda torch, d, p: d + p, lambda torch, d, p: p.add(d), lambda torch, d, p: p @ d,
    lambda torch, d, p: torch.nn.functional.linear(p, d), lambda torch, d, p: torch.cat([p, d]),
    lambda torch, d, p: torch.sum(d, 0), lambda torch, d, p: torch.add(d, p, alpha=2),
    lambda torch, d, p: torch.where(p > 0, p, d), lambda torch, d, p: torch.pow(2, d), lambda torch, d, p: torch.sin(d),
    lambda torch, d, p: torch.nn.Linear(2, 2)(d), lambda torch, d, p: torch.max(d)]


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_an_object_that_is_no_tensor_is_asked(number: int) -> None:
    """The first time that an op gets one, and later, when functions ask by themselves."""
    def program(torch: Any) -> Any:
        d, p = duck(torch)(), torch.ones(2)
        return [CALLS[number](torch, d, p), CALLS[number](torch, d, p)]

    same(program)


def test_refusals() -> None:
    def program(torch: Any) -> Any:
        class No:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return NotImplemented

        class Neither:
            pass

        p, Duck = torch.ones(2), duck(torch)
        return [outcome(lambda: torch.add(No(), p), 120), torch.add(No(), Duck()),
                outcome(lambda: p + No(), 80), outcome(lambda: torch.add(p, Neither()))[0],
                outcome(lambda: torch.sin(Neither()), 40), [torch.add(Duck(), type("Sub", (Duck,), {})())]]

    same(program)


def test_handlers_by_function() -> None:
    """As in PyTorch's documentation: a table from functions to implementations."""
    def program(torch: Any) -> Any:
        handled: dict[Any, Any] = {}
        before = torch.mean  # a reference from before anybody asks

        class Diagonal:
            def __init__(self, n, value):
                self.n, self.value = n, value

            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                if func not in handled or not all(issubclass(kind, (torch.Tensor, cls)) for kind in types):
                    return NotImplemented
                return handled[func](*args, **(kwargs or {}))

        handled[torch.mean] = lambda d: d.value / d.n
        handled[torch.add] = lambda a, b: Diagonal(2, a.value + b.value)
        handled[torch.nn.functional.relu] = lambda d, inplace=False: "relu"
        d = Diagonal(2, 4.0)
        return [torch.mean(d), before(d), torch.add(d, d).value, outcome(lambda: torch.sin(d), 40),
                torch.nn.functional.relu(d), before is torch.mean]

    same(program)


def handled(torch: Any) -> list[Any]:
    """What a table of handlers answers, written before the first object that overrides."""
    kind = torch.Tensor
    table = {getattr(kind, name): name for name in ("mul", "add", "sub", "matmul", "exp", "sum", "ne", "__pow__",
                                                    "__rsub__", "__getitem__", "requires_grad_")}
    table.update({getattr(torch, name): f"torch.{name}" for name in ("mul", "sub", "matmul", "exp", "sum")})

    def answer(cls, func, types, args=(), kwargs=None):
        return table.get(func, "nothing")

    other = type("Other", (), {"__torch_function__": classmethod(answer)})()
    x = torch.ones(2, 2)
    found = [x * other, x + other, x - other, other - x, x @ other, x**other, x != other, x.mul(other),
             torch.mul(x, other), torch.exp(other), torch.sub(other, x), torch.sum(other), torch.matmul(other, x)]
    mine = torch.ones(2).as_subclass(type("Mine", (torch.Tensor,), {"__torch_function__": classmethod(answer)}))
    return [*found, mine * 2, mine.exp(), torch.exp(mine), 1 - mine, mine.sum(), mine[0], mine.requires_grad_(),
            kind.mul is kind.mul, kind.mul is torch.mul, kind.mul(x, 2).sum().item()]


def test_handlers_are_found_by_the_methods_of_the_class() -> None:
    same(handled)


@pytest.mark.parametrize("name", ["linalg.eigh", "linalg.svd", "fft.rfft", "special.entr"])
def test_handlers_are_found_by_functions_of_modules_at_the_first_call(name: str) -> None:
    def program(torch: Any) -> Any:
        function = getattr(getattr(torch, name.partition(".")[0]), name.partition(".")[2])
        asked: list[Any] = []
        other = type("Other", (), {"__torch_function__": classmethod(
            lambda cls, func, types, args=(), kwargs=None: asked.append(func))})()
        function(other)
        return asked[0] is function

    same(program)


def noting(torch: Any, log: list[Any], tag: str = "") -> Any:
    class Noting(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            log.append((tag, torch.overrides.resolve_name(func), len(args), sorted(kwargs or {})))
            return func(*args, **(kwargs or {}))

    return Noting()


def test_modes_see_every_public_function() -> None:
    def program(torch: Any) -> Any:
        log: list[Any] = []
        p = torch.ones(2, 2)
        torch.manual_seed(0)
        layer = torch.nn.Linear(2, 2)
        with noting(torch, log):
            made = [torch.add(p, p), p + p, p.shape, torch.ones(2), torch.tensor([1.0]), torch.zeros_like(p),
                    torch.cat([p, p]), layer(p).detach(), p[0], p.sum().item(), torch.as_tensor([1]), p.numpy().sum()]
            torch.ones(1, requires_grad=True).sum()
            torch.manual_seed(0)
            torch.is_grad_enabled()
            torch.get_default_dtype()
        seen = len(log)
        torch.add(p, p)
        return [made[:-1], log, len(log) == seen]

    same(program)


def test_modes_nest_and_replace() -> None:
    def program(torch: Any) -> Any:
        class Mine(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                return "mine" if func is torch.add else func(*args, **(kwargs or {}))

        class No(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                return NotImplemented

        log: list[Any] = []
        p = torch.ones(2)
        x = p.as_subclass(logging(torch, log))
        found = []
        with noting(torch, log, "outer"), noting(torch, log, "inner"):
            torch.add(p, p)
        with Mine():
            found += [torch.add(p, p), p.add(p)]
        with No():
            found.append(outcome(lambda: torch.add(p, p), 110))
        with torch.overrides.BaseTorchFunctionMode():
            found.append(torch.add(p, p))
        with noting(torch, log, "with class"):
            found.append(torch.add(x, p))
            with torch._C.DisableTorchFunctionSubclass():
                found.append(torch.add(x, p))
            with torch._C.DisableTorchFunction():
                found.append(torch.add(x, p))
        return [found, log]

    same(program)


def test_initialisation_can_be_skipped() -> None:
    """As Lightning's empty initialisation does."""
    def program(torch: Any) -> Any:
        class Empty(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                kwargs = kwargs or {}
                if getattr(func, "__module__", None) == "torch.nn.init":
                    return kwargs["tensor"] if "tensor" in kwargs else args[0]
                return func(*args, **kwargs)

        torch.manual_seed(0)
        before = torch.get_rng_state()
        with Empty():
            torch.nn.Linear(3, 3)
        return bool((torch.get_rng_state() == before).all())

    assert same(program) is True


def test_the_protocol_for_functions_of_a_program() -> None:
    def program(torch: Any) -> Any:
        O = torch.overrides
        Duck, F = duck(torch), torch.nn.functional
        p, parameter = torch.ones(1), torch.nn.Parameter(torch.ones(1))
        x = p.as_subclass(type("Sub", (torch.Tensor,), {}))

        def doubled(value):
            if O.has_torch_function_unary(value):
                return O.handle_torch_function(doubled, (value,), value)
            return value * 2

        return [[O.has_torch_function((one,)) for one in (p, parameter, x, Duck(), 3)],
                [O.is_tensor_like(one) for one in (p, x, Duck(), 3)], O.has_torch_function_variadic(p, x),
                doubled(p), doubled(x), doubled(Duck()),
                [O.resolve_name(one) for one in (torch.add, torch.Tensor.add, F.relu, torch.Tensor.sum, F.linear,
                                                 torch.Tensor.shape.__get__, print)],
                [O.is_tensor_method_or_property(one)
                 for one in (torch.add, torch.Tensor.add, torch.Tensor.shape.__get__)],
                torch.add in O.get_overridable_functions()[torch]]

    same(program)


def test_make_subclass() -> None:
    def program(torch: Any) -> Any:
        class Mine(torch.Tensor):
            @staticmethod
            def __new__(cls, data, label):
                made = torch.Tensor._make_subclass(cls, data, True)
                made.label = label
                return made

        x = Mine(torch.ones(2), "a")
        one = torch.Tensor._make_subclass(Mine, torch.ones(1))
        return [x, x.label, x * 2, one, list(torch.utils.data.DataLoader([one, one], batch_size=2))]

    same(program)


def converted_modules(torch: Any) -> Any:
    """`Module.to` and `load_state_dict` call `Tensor.to` and `Tensor.copy_`, and buffers keep their class."""
    log: list[Any] = []
    kind = logging(torch, log)
    module = torch.nn.Module()
    module.register_buffer("b", torch.ones(2).as_subclass(kind))
    module.p = torch.nn.Parameter(torch.ones(2).as_subclass(kind))
    module.to(torch.float64)
    module.load_state_dict(module.state_dict())
    asked = [name for name, *_ in log if name in ("torch.Tensor.to", "torch.Tensor.copy_")]
    return asked, type(module.b) is kind, type(module.p) is kind, module.b.dtype == torch.float64


def redispatched(torch: Any) -> Any:
    """It skips one question: of an op, a method, an attribute, and of a function that asks itself."""
    log: list[str] = []

    class Noted(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            log.append(func.__name__)
            return torch.overrides.redispatch_function(func, types, args, kwargs)

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            log.append("mode " + func.__name__)
            with self:
                return torch.overrides.redispatch_function(func, types, args, kwargs)

    def scaled(a: Any, b: Any) -> Any:
        if torch.overrides.has_torch_function((a, b)):
            return torch.overrides.handle_torch_function(scaled, (a, b), a, b)
        return a.mul(b) + 1

    x = torch.ones(2).as_subclass(Noted)
    kinds = [type(made) is torch.Tensor for made in (torch.relu(x), x.neg(), x.data, scaled(x, x))]
    with Mode():
        kinds.append(type(scaled(torch.ones(2), torch.ones(2))) is torch.Tensor)
    return kinds, log, list(x.shape)


@pytest.mark.parametrize("program", [converted_modules, redispatched])
def test_programs_with_subclasses(program: Any) -> None:
    same(program)


@pytest.mark.parametrize("module", [ours, theirs], ids=["ours", "pytorch"])
def test_objects_of_torch_ops_are_offered(module):
    """A mode and a class see the op that was called, not what its kernel calls."""
    seen = []

    class Watch(module.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    class Own(module.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return super().__torch_function__(func, types, args, kwargs or {})

    library = module.library.Library("offered", "FRAGMENT")
    library.define("plain(Tensor x) -> Tensor")
    library.impl("plain", lambda x: x.sin(), "CPU")
    made = module.library.custom_op("offered::made", lambda x: x.clone(), mutates_args=(),
                                    schema="(Tensor x) -> Tensor")
    calls = [module.ops.offered.plain, module.ops.offered.plain.default, module.ops.aten.sin,
             module.ops.aten.sin.default, made]
    plain = module.ones(1)
    with Watch():
        for call in calls:
            call(plain)
    own = module.ones(1).as_subclass(Own)
    assert [type(call(own)) for call in calls] == [Own] * 5
    names = ["offered.plain", "offered.plain.default", "aten.sin", "aten.sin.default", "offered.made.default"]
    assert seen == names * 2
