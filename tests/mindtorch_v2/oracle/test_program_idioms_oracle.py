"""Idioms of published programs against PyTorch: their results, the memory order of these, and what a profile shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

from harness import check, check_error, data, make, ours, theirs, values  # noqa: E402


def top_rows(t: Any, function: Any, *given: Any, grad: bool = False) -> list[tuple[str, str]]:
    """Names and shapes of the events that have no other around them."""
    inputs = [make(t, g, grad) for g in given]
    function(t, *inputs)
    with t.profiler.profile(record_shapes=True) as prof:
        function(t, *inputs)
    return [(e.name, str(e.input_shapes)) for e in prof.events() if e.cpu_parent is None]


def same_rows(function: Any, *given: Any, grad: bool = False) -> None:
    assert top_rows(ours, function, *given, grad=grad) == top_rows(theirs, function, *given, grad=grad)


# -- how results lie in memory ---------------------------------------------------------------------------------------

LAYOUTS = {
    "softmax": lambda t, x: x.softmax(1), "softmax of the last": lambda t, x: x.softmax(-1),
    "log_softmax": lambda t, x: x.log_softmax(1), "sum": lambda t, x: x.sum(0),
    "sum of doubles": lambda t, x: x.double().sum(0), "mean": lambda t, x: x.mean(0),
    "cumsum": lambda t, x: x.cumsum(1),
    "roll": lambda t, x: x.roll(1, 1), "repeat": lambda t, x: x.repeat(1, 1, 1), "abs": lambda t, x: x.abs(),
    "cat": lambda t, x: t.cat([x, x], 1), "cat with a contiguous one": lambda t, x: t.cat([x.contiguous(), x]),
    "cat of matrices": lambda t, x: t.cat([x[0], x[1]]),
    "cat of channels last": lambda t, x: t.cat([x[None].contiguous(memory_format=t.channels_last)] * 2, 1),
    "cat of both": lambda t, x: t.cat([x[None].contiguous(memory_format=t.channels_last), x[None].contiguous()]),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layout_of_results_of_a_transposed_tensor(name: str) -> None:
    strides = [tuple(LAYOUTS[name](t, make(t, data(2, 3, 4), False).transpose(1, 2)).stride()) for t in (ours, theirs)]
    assert strides[0] == strides[1]
    check(lambda t, x: LAYOUTS[name](t, x.transpose(1, 2)), data(2, 3, 4))


EINSUMS = ["ij,jk->ki", "ij,jk->ik", "bij,bjk->kbi", "ij,jkl->kli", "ij,jkl->kil", "ijl,jk->kli", "bi,bj->ji",
           "hn,bsh->bsn", "bsh,hn->snb", "ij,jk,kl->li", "ii,ij->ji", "bi,bj,bk->bijk"]


@pytest.mark.parametrize("equation", EINSUMS)
def test_einsum_multiplies_in_the_order_of_its_result(equation: str) -> None:
    sizes = dict(zip("ijklbhns", range(2, 10)))
    given = [data(*(sizes[label] for label in labels), seed=i)
             for i, labels in enumerate(equation.split("->")[0].split(","))]
    strides = [tuple(t.einsum(equation, *(make(t, g, False) for g in given)).stride()) for t in (ours, theirs)]
    assert strides[0] == strides[1]
    check(lambda t, *xs: t.einsum(equation, *xs), *given, tolerance=1e-4)
    same_rows(lambda t, *xs: t.einsum(equation, *xs).sum().backward(), *given, grad=True)


# -- names of arguments ----------------------------------------------------------------------------------------------

INDEX = values([[0, 1, 0, 1]], "int64")
BY_AXIS = {
    "cumsum": {}, "cumprod": {}, "logcumsumexp": {}, "softmax": {}, "log_softmax": {}, "logsumexp": {}, "unsqueeze": {},
    "squeeze": {}, "sort": {}, "argsort": {}, "median": {}, "mode": {}, "cummax": {}, "unbind": {}, "amax": {},
    "index_select": {"index": values([1, 0], "int64")}, "gather": {"index": INDEX}, "topk": {"k": 2},
    "kthvalue": {"k": 2}, "scatter": {"index": INDEX, "value": 1.0},
}


@pytest.mark.parametrize("name", BY_AXIS)
def test_axis_stands_for_dim(name: str) -> None:
    def call(t: Any, x: Any, of: Any) -> Any:
        further = {k: make(t, v, False) if hasattr(v, "dtype") or isinstance(v, (list, tuple)) else v
                   for k, v in BY_AXIS[name].items()}
        return getattr(of, name)(x, axis=0, **further)

    check(lambda t, x: call(t, x, t), data(3, 4))
    check(lambda t, x: call(t, x, t.Tensor), data(3, 4))


@pytest.mark.parametrize("name", ["median", "nanmedian", "mode", "kthvalue", "quantile", "nanquantile", "aminmax"])
def test_keepdims_stands_for_keepdim(name: str) -> None:
    further: dict[str, Any] = {"kthvalue": {"k": 2}, "quantile": {"q": 0.5}, "nanquantile": {"q": 0.5}}.get(name, {})
    check(lambda t, x: getattr(t, name)(x, axis=0, keepdims=True, **further), data(3, 4))
    check(lambda t, x: getattr(x, name)(dim=-1, keepdims=True, **further), data(3, 4))


@pytest.mark.parametrize("call", [
    lambda t, x: t.fft.rfft(x, axis=0), lambda t, x: t.fft.irfft(x, n=4, axis=0, norm="ortho"),
    lambda t, x: t.fft.fft2(x, axis=(1, 0)), lambda t, x: t.fft.fftshift(x, axis=1),
    lambda t, x: t.linalg.norm(x, axis=1), lambda t, x: t.linalg.vector_norm(x1=x, axis=0, keepdims=True),
    lambda t, x: t.linalg.vecdot(x=x, y=x, axis=0), lambda t, x: t.special.logsumexp(x, axis=1, keepdims=True),
    lambda t, x: t.special.xlogy(x=x, x2=x), lambda t, x: t.special.expit(a=x),
    lambda t, x: t.special.hermite_polynomial_h(x=x.detach(), n=2),
    lambda t, x: t.trapezoid(x, axis=0), lambda t, x: t.gradient(x, axis=1),
])
def test_functions_of_modules_take_numpys_names(call: Any) -> None:
    check(call, values([[0.5, 1.5, 2.5], [1.0, 2.0, 4.0]], "float64"))


@pytest.mark.parametrize("call", [
    lambda t, x: t.linalg.eig(input=x)[0].real, lambda t, x: t.linalg.cholesky_ex(input=x)[0],
    lambda t, x: t.linalg.pinv(input=x), lambda t, x: t.linalg.lstsq(input=x, b=x)[0],
    lambda t, x: t.linalg.matrix_rank(input=x), lambda t, x: t.hsplit(x, sections=1),
    lambda t, x: t.vsplit(input=x, indices=[1]),
])
def test_names_that_the_manual_writes_otherwise(call: Any) -> None:
    check(call, values([[2.0, 1.0], [1.0, 3.0]], "float64"))


@pytest.mark.parametrize("call", [
    lambda t, x: x.cumsum(), lambda t, x: x.gather(0), lambda t, x: t.softmax(x), lambda t, x: x.unsqueeze(),
    lambda t, x: x.logsumexp(),
])
def test_a_missing_dimension_is_a_type_error(call: Any) -> None:
    check_error(call, data(3, 4), words=False)


def test_split_size_by_name() -> None:
    check(lambda t, x: x.split(split_size=[1, 3], dim=1), data(3, 4))
    check(lambda t, x: x.split(split_size=2), data(3, 4))
    check_error(lambda t, x: x.split(), data(3, 4), words=False)


# -- old ways of making tensors --------------------------------------------------------------------------------------


def test_variable() -> None:
    for t in (ours, theirs):
        x = t.ones(3)
        v = t.autograd.Variable(x, requires_grad=True)
        assert (v.requires_grad, v.is_leaf, x.requires_grad) == (True, True, False)
        assert v.data_ptr() == x.data_ptr()
        assert isinstance(x, t.autograd.Variable)
        assert type(v) is t.Tensor
        assert not t.autograd.Variable(v * 2).requires_grad
        (v * v).sum().backward()
        assert v.grad.tolist() == [2.0, 2.0, 2.0]
    check_error(lambda t: t.autograd.Variable([1.0]))


@pytest.mark.parametrize("make_it", [
    lambda t: t.Tensor(2, 3).shape, lambda t: t.Tensor([[1, 2], [3, 4]]), lambda t: t.Tensor(), lambda t: t.Tensor([]),
    lambda t: t.Tensor(t.Size((2, 3))).shape, lambda t: t.LongTensor([1.7, 2.2]), lambda t: t.BoolTensor([1, 0]),
    lambda t: t.FloatTensor(np.arange(3)), lambda t: t.Tensor([t.tensor(1.0), t.tensor(2.0)]),
    lambda t: t.Tensor((2, 3)),
    lambda t: t.FloatTensor(t.ones(2)), lambda t: t.ones(1, dtype=t.int32).new([3, 4]), lambda t: t.Tensor(range(3)),
    lambda t: t.ones(2).type(t.LongTensor), lambda t: t.ones(2, dtype=t.int32).type(t.Tensor),
])
def test_old_constructors(make_it: Any) -> None:
    check(lambda t: make_it(t))


@pytest.mark.parametrize("wrong", [
    lambda t: t.LongTensor(t.ones(2)), lambda t: t.Tensor(3.0), lambda t: t.Tensor("a"), lambda t: t.ones(2).type(3),
    lambda t: t.arange(),
])
def test_old_constructors_refuse(wrong: Any) -> None:
    check_error(wrong, words=False)


def test_the_old_constructor_follows_the_default_dtype() -> None:
    for t in (ours, theirs):
        t.set_default_dtype(t.float64)
        try:
            assert t.Tensor([1]).dtype is t.float64
            assert t.Tensor(2).dtype is t.float64
            assert t.FloatTensor([1]).dtype is t.float32
        finally:
            t.set_default_dtype(t.float32)


def test_old_constructors_share_an_array() -> None:
    for t in (ours, theirs):
        array = np.zeros(2, np.float32)
        made = t.FloatTensor(array)
        array[0] = 5.0
        assert made.tolist() == [5.0, 0.0]


def test_memory_mapped_arrays(tmp_path: Any) -> None:
    path = tmp_path / "numbers.bin"
    np.arange(6, dtype=np.int64).tofile(path)
    for t in (ours, theirs):
        mapped = np.memmap(path, dtype=np.int64, mode="r+")
        x = t.from_numpy(mapped[1:5])
        assert t.stack([x, x]).sum(0).tolist() == [2, 4, 6, 8]
        assert t.tensor(mapped).tolist() == list(range(6))
        assert t.asarray(mapped, copy=False).tolist() == list(range(6))


# -- what a profile shows --------------------------------------------------------------------------------------------

NUMBERS = np.arange(3, dtype=np.float32)
SHOWN = {
    "an array": lambda t, x: t.from_numpy(NUMBERS), "a copied array": lambda t, x: t.tensor(NUMBERS),
    "as_tensor": lambda t, x: t.as_tensor([1, 2]), "as_tensor of an array": lambda t, x: t.as_tensor(NUMBERS),
    "as_tensor of a tensor": lambda t, x: t.as_tensor(x, dtype=t.float64), "sizes": lambda t, x: t.Tensor(2, 3),
    "values": lambda t, x: t.LongTensor([1, 2]), "new": lambda t, x: x.new([1.0]),
    "Variable": lambda t, x: t.autograd.Variable(x), "a list": lambda t, x: x[[0, 1]],
    "lists and None": lambda t, x: x[None, [0, 1], [1, 2]], "a mask of a list": lambda t, x: x[[True, False, True]],
    "an array as index": lambda t, x: x[np.array([0, 1])], "arange": lambda t, x: t.arange(3),
    "arange from": lambda t, x: t.arange(1, 3), "arange by": lambda t, x: t.arange(1, 9, 2),
    "eye": lambda t, x: t.eye(3),
    "a window": lambda t, x: t.hann_window(4), "a symmetric window": lambda t, x: t.hamming_window(4, periodic=False),
    "numbers in tensors": lambda t, x: x[t.tensor(0), t.tensor(1)],
    "a number in a tensor, behind a slice": lambda t, x: x[1:, t.tensor(2)],
    "hard samples": lambda t, x: t.nn.functional.gumbel_softmax(x, hard=True, dim=1),
}


@pytest.mark.parametrize("name", SHOWN)
def test_rows_of_making_and_indexing(name: str) -> None:
    same_rows(SHOWN[name], data(3, 4))


def test_rows_of_assigning_through_a_list() -> None:
    def assign(t: Any, x: Any) -> None:
        x[[0, 1]] = 1.0

    same_rows(assign, data(3, 4))


def test_rows_of_short_time_transforms() -> None:
    def there_and_back(t: Any, x: Any) -> Any:
        window = t.hann_window(16)
        spectrum = t.stft(x, 16, 4, window=window, return_complex=True)
        return t.istft(spectrum, 16, 4, window=window)

    same_rows(there_and_back, data(2, 64))


SECOND = {
    "tanh": lambda t, x: x.tanh(), "sqrt": lambda t, x: (x * x + 1).sqrt(), "mean": lambda t, x: x.mean(0) ** 2,
    "network": lambda t, x: t.nn.functional.linear(x, x).tanh(),
}


@pytest.mark.parametrize("name", SECOND)
def test_rows_of_second_derivatives(name: str) -> None:
    def penalty(t: Any, x: Any) -> None:
        (slope,) = t.autograd.grad(SECOND[name](t, x).sum(), x, create_graph=True)
        slope.pow(2).sum().backward()

    same_rows(penalty, data(3, 4), grad=True)


@pytest.mark.parametrize("option", ["avg_fn", "multi_avg_fn"])
def test_averaging_a_model(option: str) -> None:
    def prepare(t: Any) -> Any:
        t.manual_seed(0)
        model = t.nn.Linear(3, 2)
        kind = t.optim.swa_utils
        average = {"avg_fn": kind.get_ema_avg_fn(0.9), "multi_avg_fn": kind.get_ema_multi_avg_fn(0.9)}[option]
        return model, kind.AveragedModel(model, **{option: average})

    found = []
    for t in (ours, theirs):
        model, averaged = prepare(t)
        for _ in range(2):
            averaged.update_parameters(model)
            with t.no_grad():
                model.weight += 1.0
        with t.profiler.profile(record_shapes=True) as prof:
            averaged.update_parameters(model)
        rows = [(e.name, str(e.input_shapes)) for e in prof.events() if e.cpu_parent is None]
        found.append((rows, averaged.module.weight.detach().numpy().tolist(), int(averaged.n_averaged)))
    assert found[0][2] == found[1][2]
    if option == "multi_avg_fn":  # one by one, PyTorch detaches every average twice
        assert found[0][0] == found[1][0]
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-6)


@pytest.mark.parametrize("shapes", [((2, 8, 5), (2, 1, 5)), ((8, 5), (8, 5)), ((5,), (8, 5))], ids=str)
def test_rows_of_a_similarity(shapes: Any) -> None:
    def compare(t: Any, x: Any, y: Any) -> None:
        t.nn.functional.cosine_similarity(x, y, dim=-1).sum().backward()

    same_rows(compare, *(data(*shape, seed=i) for i, shape in enumerate(shapes)), grad=True)


@pytest.mark.parametrize("batches", [
    ((), ()), ((), (4,)), ((2,), (2,)), ((2,), (5, 2)), ((5, 1), (5, 2)), ((), (4, 5)),
], ids=str)
def test_rows_of_a_normal_vector(batches: Any) -> None:
    factors, points = batches

    def log_density(t: Any, factor: Any, x: Any) -> Any:
        factor = t.tril(factor, -1) * 0.3 + t.eye(3)
        return t.distributions.MultivariateNormal(t.zeros(3), scale_tril=factor).log_prob(x)

    given = data(*factors, 3, 3), data(*points, 3, seed=1)
    check(log_density, *given, tolerance=1e-4, second=False)
    same_rows(lambda t, *inputs: log_density(t, *inputs).sum().backward(), *given, grad=True)


def test_rows_of_a_divergence() -> None:
    def divergence(t: Any, x: Any) -> None:
        kind = t.distributions
        kind.kl_divergence(kind.Categorical(logits=x), kind.Categorical(logits=x * 2)).sum().backward()

    same_rows(divergence, data(3, 4), grad=True)


# -- assigning to .data ----------------------------------------------------------------------------------------------


def scale_in_place(t: Any, x: Any) -> None:
    x.data *= 2


def take_over(t: Any, x: Any) -> None:
    x.data = t.zeros(2, 3)


@pytest.mark.parametrize("assign", [scale_in_place, take_over])
def test_rows_of_assigning_data(assign: Any) -> None:
    same_rows(assign, data(3, 4), grad=True)


def test_data_of_another_device_is_refused() -> None:
    check_error(lambda t, x: setattr(x, "data", t.ones(3, device="meta")), data(3))


def test_rows_of_converting_a_module() -> None:
    def convert(t: Any) -> None:
        module = t.nn.Linear(2, 2)
        module(t.ones(1, 2)).sum().backward()
        with t.profiler.profile(record_shapes=True) as prof:
            module.double().to("cpu")
        rows.append([(e.name, str(e.input_shapes)) for e in prof.events() if e.cpu_parent is None])

    rows: list[Any] = []
    for t in (ours, theirs):
        convert(t)
    assert rows[0] == rows[1]


def test_a_module_gets_new_parameters_on_a_device_of_another_kind() -> None:
    for t in (ours, theirs):
        module = t.nn.Linear(2, 2)
        module(t.ones(1, 2)).sum().backward()
        before = module.weight
        module.to("meta")
        assert module.weight is not before
        assert isinstance(module.weight, t.nn.Parameter)
        devices = [x.device.type for x in (module.weight, module.weight.grad, before)]
        assert devices == ["meta", "meta", "cpu"]


def test_an_assertion_reads_its_number_without_asking_whether_it_is_zero() -> None:
    def below(t: Any) -> list[str]:
        given = t.ones(())
        with t.profiler.profile() as profile:
            t._assert_async(given)
        return [event.name for event in profile.events()]

    assert below(ours) == below(theirs)
