"""`torch.func` and `torch.autograd.functional` beside PyTorch's."""

from __future__ import annotations

import importlib
import warnings

import pytest
from harness import assert_same, check_error, data, flat, is_tensor, make

import mindtorch_v2 as ours

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

BOTH = (ours, torch)


def leaves(value):
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in leaves(value[key])]
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves(item)]
    return flat(value)


def shape_of(value):
    """The nesting of a result, without its contents."""
    if isinstance(value, dict):
        return {key: shape_of(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [shape_of(item) for item in value]
    return tuple(value.shape) if is_tensor(value) else value


def same(run, *given, grad=False):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # PyTorch's own, of its compiler
        got, want = (run(module, *[make(module, g, grad) for g in given]) for module in BOTH)
    assert shape_of(got) == shape_of(want)
    for number, (a, b) in enumerate(zip(leaves(got), leaves(want), strict=True)):
        assert_same(a, b, str(number), 1e-4)
        if is_tensor(b) and bool((b != 0).any()):  # a zero may or may not remember what it does not depend on
            assert a.requires_grad == b.requires_grad, number


def f(x, y):
    return (x.sin() * y).sum() + (x**3).sum()


def g(x, y):
    return (x * y).exp(), {"sum": x.sum() * y}


FUNC = {
    "grad": lambda t, x, y: t.func.grad(f)(x, y),
    "grad, argnums": lambda t, x, y: t.func.grad(f, argnums=1)(x, y),
    "grad, both": lambda t, x, y: t.func.grad(f, argnums=(0, 1))(x, y),
    "grad, negative": lambda t, x, y: t.func.grad(f, argnums=-1)(x, y),
    "grad, aux": lambda t, x, y: t.func.grad(lambda x, y: (f(x, y), x * y), has_aux=True)(x, y),
    "grad, tree": lambda t, x, y: t.func.grad(lambda d: f(d["x"], d["y"][0]))({"x": x, "y": [y]}),
    "grad, keyword": lambda t, x, y: t.func.grad(lambda x, y=None: f(x, y))(x, y=y),
    "grad and value": lambda t, x, y: t.func.grad_and_value(f)(x, y),
    "grad and value, aux": lambda t, x, y: t.func.grad_and_value(
        lambda x, y: (f(x, y), (x, y * 2)), has_aux=True)(x, y),
    "unused": lambda t, x, y: t.func.grad(lambda x, y: (x * x).sum(), argnums=(0, 1))(x, y),
    "twice": lambda t, x, y: t.func.grad(lambda x: t.func.grad(f)(x, y).sum())(x),
    "three times": lambda t, x, y: t.func.grad(
        lambda x: t.func.grad(lambda x: t.func.grad(f)(x, y).sum())(x).sum())(x),
    "mixed": lambda t, x, y: t.func.grad(lambda y: t.func.grad(f)(x, y).sum())(y),
    "under no_grad": lambda t, x, y: t.no_grad()(t.func.grad(f))(x, y),
    "vjp": lambda t, x, y: (lambda out, pull: (out, pull((t.ones_like(x), {"sum": t.ones_like(y)}))))(
        *t.func.vjp(g, x, y)),
    "vjp, single": lambda t, x, y: t.func.vjp(lambda x: x * y, x)[1](y),
    "vjp, aux": lambda t, x, y: t.func.vjp(lambda x: (x * y, x), x, has_aux=True)[2],
    "vjp, again": lambda t, x, y: t.func.grad(lambda x: t.func.vjp(lambda a: a**3, x)[1](y)[0].sum())(x),
    "jacrev": lambda t, x, y: t.func.jacrev(lambda x, y: x * y.sum() + y)(x, y),
    "jacrev, both": lambda t, x, y: t.func.jacrev(g, argnums=(0, 1))(x, y),
    "jacrev, aux": lambda t, x, y: t.func.jacrev(lambda x, y: (x * y, x), has_aux=True)(x, y),
    "jacrev, matrix": lambda t, x, y: t.func.jacrev(lambda x: t.outer(x, x * y))(x),
    "jacrev, twice": lambda t, x, y: t.func.jacrev(t.func.jacrev(lambda x: (x**3).sum() * x))(x),
    "hessian": lambda t, x, y: t.func.hessian(f)(x, y),
    "hessian, both": lambda t, x, y: t.func.hessian(f, argnums=(0, 1))(x, y),
}


@pytest.mark.parametrize("name", FUNC)
@pytest.mark.parametrize("grad", [False, True])
def test_func(name, grad):
    if grad and name in ("under no_grad",):
        pytest.skip("what requires grad under no_grad is PyTorch's own affair")
    same(FUNC[name], data(3), data(3, seed=4), grad=grad)


def test_results_belong_to_an_outer_graph():
    def run(t, x, w):
        inner = t.func.grad(lambda x: (w * x**3).sum())(x)
        inner.sum().backward()
        return inner, w.grad, x.grad

    for which in (False, True):
        results = []
        for module in BOTH:
            x = make(module, data(3), which)
            w = make(module, data(3, seed=2), True)
            results.append(run(module, x, w))
        for a, b in zip(*results, strict=True):
            assert (a is None) == (b is None)
            if b is not None:
                assert_same(a, b, "outer")


def test_functional_call_and_stacking():
    def run(t, x):
        t.manual_seed(0)
        models = [t.nn.Sequential(t.nn.Linear(3, 2), t.nn.BatchNorm1d(2)) for _ in range(3)]
        parameters, buffers = t.func.stack_module_state(models)
        one = {name: p[1] for name, p in parameters.items()}
        state = {name: b[1] for name, b in buffers.items()}
        called = t.func.functional_call(models[0], (one, state), (x,))
        models[0].eval()
        gradient = t.func.grad(lambda p: t.func.functional_call(models[0], (p, state), x).sin().sum())(
            {name: p.detach() for name, p in one.items()})
        replaced = t.func.replace_all_batch_norm_modules_(models[2])
        return [parameters, buffers, called, gradient, list(replaced.state_dict()), replaced(x),
                all(p.is_leaf for p in parameters.values())]

    same(run, data(4, 3))


FUNC_ERRORS = [
    lambda t: t.func.grad(lambda x: x)(t.ones(2)), lambda t: t.func.grad(lambda x: (x, 1))(t.ones(())),
    lambda t: t.func.grad(lambda x: x.sum(), argnums=2)(t.ones(2)),
    lambda t: t.func.grad(lambda x: x.sum(), has_aux=True)(t.ones(2)),
    lambda t: t.func.grad(lambda x, y: x.sum(), argnums=())(t.ones(2), t.ones(2)),
    lambda t: t.func.vjp(lambda x: 3, t.ones(2)),
    lambda t: t.func.vjp(lambda x: x, t.ones(2))[1]((t.ones(2), t.ones(2))),
    lambda t: t.func.stack_module_state([]),
    lambda t: t.func.stack_module_state([t.nn.Linear(1, 1), t.nn.Linear(1, 1).eval()]),
    lambda t: t.func.stack_module_state([t.nn.Linear(1, 1), t.nn.ReLU()]),
    lambda t: t.func.functional_call(t.nn.Linear(1, 1), [{"weight": t.ones(1, 1)}, {"weight": t.ones(1, 1)}],
                                     t.ones(1, 1)),
    lambda t: t.func.functional_call(t.nn.Linear(1, 1), 3, t.ones(1, 1)),
    lambda t: t.func.jacrev(lambda x: x, chunk_size=-1)(t.ones(2)),
]


@pytest.mark.parametrize("number", range(len(FUNC_ERRORS)))
def test_func_errors(number):
    check_error(FUNC_ERRORS[number])


VMAP = {
    "dot": lambda t, x, y: t.func.vmap(t.dot)(x, y),
    "dims": lambda t, x, y: t.func.vmap(lambda a, b: (a * b, {"sum": b.sum()}), (0, 1), (1, 0))(x, y.T),
    "constant": lambda t, x, y: t.func.vmap(lambda a, b: a + b.sum(), in_dims=(0, None))(x, y),
    "nested": lambda t, x, y: t.func.vmap(t.func.vmap(lambda a, b: a * b, in_dims=(0, None)), in_dims=(None, 0))(x, y),
    "tree": lambda t, x, y: t.func.vmap(lambda d, b: d["a"] @ b, in_dims=({"a": 0}, None))({"a": x}, y[0]),
    "gradients": lambda t, x, y: t.func.vmap(t.func.grad(lambda a, b: (a.sin() * b).sum()), in_dims=(0, 0))(x, y),
    "jacobians": lambda t, x, y: t.func.vmap(t.func.jacrev(lambda a: a**2 * a.sum()))(x),
    "not mapped out": lambda t, x, y: t.func.vmap(lambda a: t.ones(2), out_dims=None)(x),
    "empty": lambda t, x, y: t.func.vmap(lambda a: a.exp())(x[:0]),
    "through": lambda t, x, y: t.autograd.grad(t.func.vmap(lambda a: a.exp().sum())(x.requires_grad_()).sum(), x),
    "keyword": lambda t, x, y: t.func.vmap(lambda a, k: a * k)(x, k=2),
    "jvp": lambda t, x, y: t.func.jvp(lambda a: a.sin() * a.sum(), (x,), (y,)),
    "jvp, two": lambda t, x, y: t.func.jvp(lambda a, b: (a * b, a.exp()), (x, y), (y, x)),
    "jvp, aux": lambda t, x, y: t.func.jvp(lambda a: (a**3, a * 2), (x,), (y,), has_aux=True),
    "jvp in grad": lambda t, x, y: t.func.grad(lambda a: t.func.jvp(lambda b: b**3, (a,), (y,))[1].sum())(x),
    "linear": lambda t, x, y: t.func.jvp(lambda a: a * 2, (x,), (y,)),
    "jacfwd": lambda t, x, y: t.func.jacfwd(lambda a: a.exp().sum(1))(x),
    "jacfwd, two": lambda t, x, y: t.func.jacfwd(lambda a, b: a[0] * b[1], argnums=(0, 1))(x, y),
    "per sample": lambda t, x, y: t.func.vmap(t.func.hessian(lambda a: (a**3).sum()))(x),
}
VMAP_ERRORS = [
    lambda t: t.func.vmap(lambda a, b: a + b)(t.ones(3, 2), t.ones(4, 2)),
    lambda t: t.func.vmap(lambda a: a)(3),
    lambda t: t.func.vmap(lambda a: a, in_dims=None)(t.ones(3)),
    lambda t: t.func.vmap(lambda a: 3)(t.ones(3)),
    lambda t: t.func.vmap(lambda a: a, in_dims=5)(t.ones(3, 2)),
    lambda t: t.func.vmap(lambda a: a)(),
    lambda t: t.func.vmap(lambda a: a + t.rand(1))(t.ones(3)),
    lambda t: t.func.vmap(lambda a: a, chunk_size=0)(t.ones(3)),
    lambda t: t.func.vmap(lambda a: a, randomness="often")(t.ones(3)),
    lambda t: t.func.vmap(lambda a: a, out_dims="x")(t.ones(3)),
    lambda t: t.func.vmap(lambda a: a, out_dims=4)(t.ones(3, 2)),
]


@pytest.mark.parametrize("name", VMAP)
def test_vmap_and_forward(name):
    same(VMAP[name], data(3, 4), data(3, 4))


def test_linearize():
    x, y = (make(ours, data(3, 4), False) for _ in range(2))
    value, push = ours.func.linearize(ours.sin, x)
    want = torch.func.jvp(torch.sin, (make(torch, data(3, 4), False),), (make(torch, data(3, 4), False),))
    assert_same(value, want[0], "value", 1e-6)
    assert_same(push(y), want[1], "change", 1e-6)


@pytest.mark.parametrize("number", range(len(VMAP_ERRORS)))
def test_vmap_errors(number):
    check_error(VMAP_ERRORS[number])


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_vmap_randomness(randomness):
    made = []
    for module in BOTH:
        module.manual_seed(0)
        made.append(module.func.vmap(lambda a, t=module: a + t.rand(2), randomness=randomness)(module.zeros(3, 2)))
    assert_same(made[0], made[1], randomness, 0.0)


def test_functionalize():
    def run(t):
        x = t.zeros(2)
        return t.func.functionalize(lambda a: a.add_(1) * 2)(x), x

    assert_same(*map(run, BOTH), "functionalize", 0.0)
    for module in BOTH:
        with pytest.raises(RuntimeError, match="invalid argument for remove=views"):
            module.func.functionalize(lambda a: a, remove="views")(module.zeros(2))


def test_forward_mode():
    def run(t):
        forward = t.autograd.forward_ad
        with forward.dual_level():
            made = forward.unpack_dual(t.sin(forward.make_dual(t.arange(3.0), t.ones(3))))
            return made.primal, made.tangent

    for got, want in zip(run(ours), run(torch), strict=True):
        assert_same(got, want, "dual")


def square(x, y):
    return x.pow(2) * y.sum(), (x * y).sum()


FUNCTIONAL = {
    "jacobian": lambda F, x, y: F.jacobian(square, (x, y)),
    "jacobian, single": lambda F, x, y: F.jacobian(lambda x: x.exp(), x),
    "jacobian, vectorised": lambda F, x, y: F.jacobian(lambda x: x.exp() * x.sum(), x, vectorize=True),
    "jacobian, unused": lambda F, x, y: F.jacobian(lambda x, y: x * 2, (x, y)),
    "jacobian, graph": lambda F, x, y: F.jacobian(square, (x, y), create_graph=True),
    "hessian": lambda F, x, y: F.hessian(lambda x: (x**3).sum(), x),
    "hessian, two": lambda F, x, y: F.hessian(lambda x, y: (x**3 * y).sum(), (x, y)),
    "hessian, vectorised": lambda F, x, y: F.hessian(lambda x: (x**3).sum(), x, vectorize=True),
    "vjp": lambda F, x, y: F.vjp(lambda x: x.exp(), x, y),
    "vjp, number": lambda F, x, y: F.vjp(lambda x, y: (x * y).sum(), (x, y)),
    "vjp, two": lambda F, x, y: F.vjp(square, (x, y), (y, x.sum())),
    "jvp": lambda F, x, y: F.jvp(lambda x: x.exp() * x.sum(), x, y),
    "jvp, two": lambda F, x, y: F.jvp(square, (x, y), (y, x)),
    "vhp": lambda F, x, y: F.vhp(lambda x: (x**3).sum(), x, y),
    "vhp, two": lambda F, x, y: F.vhp(lambda x, y: (x**3 * y).sum(), (x, y), (y, x)),
    "hvp": lambda F, x, y: F.hvp(lambda x: (x**3).prod(), x, y),
    "hvp, graph": lambda F, x, y: F.hvp(lambda x: (x**3).prod(), x, y, create_graph=True),
    "hvp, two": lambda F, x, y: F.hvp(lambda x, y: (x**3 * y).sum(), (x, y), (y, x)),
}


@pytest.mark.parametrize("name", FUNCTIONAL)
@pytest.mark.parametrize("grad", [False, True])
def test_autograd_functional(name, grad):
    if not grad and "graph" in name:
        pytest.skip("a graph is made for inputs that require grad")
    same(lambda t, x, y: FUNCTIONAL[name](importlib.import_module(f"{t.__name__}.autograd.functional"), x, y),
         data(3), data(3, seed=5), grad=grad)


FUNCTIONAL_ERRORS = [
    lambda F, t: F.jacobian(lambda x: x, 3), lambda F, t: F.jacobian(lambda x: 3, t.ones(2)),
    lambda F, t: F.jacobian(lambda x, y: x, (t.ones(2), 3)), lambda F, t: F.vjp(lambda x: x, t.ones(2)),
    lambda F, t: F.vjp(lambda x: x, t.ones(2), t.ones(3)), lambda F, t: F.jvp(lambda x: x, t.ones(2)),
    lambda F, t: F.hessian(lambda x: x, t.ones(2)), lambda F, t: F.hvp(lambda x: x, t.ones(2), t.ones(2)),
    lambda F, t: F.vhp(lambda x: (x.sum(), x.sum()), t.ones(2), t.ones(2)),
    lambda F, t: F.jacobian(lambda x: t.ones(2), t.ones(2), strict=True),
    lambda F, t: F.jacobian(lambda x: x, t.ones(2), strategy="sideways"),
]


@pytest.mark.parametrize("number", range(len(FUNCTIONAL_ERRORS)))
def test_autograd_functional_errors(number):
    check_error(lambda t: FUNCTIONAL_ERRORS[number](importlib.import_module(f"{t.__name__}.autograd.functional"), t))


def test_forward_strategy():
    made = [t.autograd.functional.jacobian(lambda x: x.pow(2), t.arange(3.0), vectorize=True, strategy="forward-mode")
            for t in (ours, torch)]
    assert_same(*made, "forward")
