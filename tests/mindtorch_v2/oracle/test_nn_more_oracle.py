"""Layers and functions that few programs use, beside PyTorch's."""

from __future__ import annotations

import copy
import importlib
import itertools
import pickle
import warnings

import pytest
from harness import assert_same, check, check_error, data, make

import mindtorch_v2 as ours

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

BOTH = (ours, torch)


def same(run, tolerance=None):
    """The two modules' results, leaf by leaf."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got, want = (run(module) for module in BOTH)
    assert len(got) == len(want)
    for number, (a, b) in enumerate(zip(got, want, strict=True)):
        assert_same(a, b, str(number), tolerance)


# -- CTC -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("zero_infinity", [False, True])
@pytest.mark.parametrize("concatenated", [False, True])
@pytest.mark.parametrize("possible", [False, True])
def test_ctc_loss(reduction, zero_infinity, concatenated, possible):
    lengths = ((6, 5, 6, 4), (3, 2, 3, 0)) if possible else ((6, 2, 3, 0), (3, 2, 3, 1))

    def loss(t, x):
        targets = t.tensor([[1, 2, 2], [3, 1, 0], [1, 1, 1], [4, 0, 0]])
        if concatenated:
            targets = t.cat([targets[i, :n] for i, n in enumerate(lengths[1])])
        return t.nn.functional.ctc_loss(x.log_softmax(-1), targets, *lengths, reduction=reduction,
                                        zero_infinity=zero_infinity)

    check(loss, data(6, 4, 5, dtype="float64"), second=False)


def test_ctc_loss_forms():
    def unbatched(t, x):
        return t.nn.functional.ctc_loss(x.log_softmax(-1), t.tensor([1, 2]), t.tensor([6]), t.tensor([2]),
                                        reduction="none")

    check(unbatched, data(6, 5), second=False)
    check(lambda t, x: t.nn.CTCLoss(blank=2)(x.log_softmax(-1), t.tensor([[1, 3], [0, 1]]), t.tensor([6, 6]),
                                             t.tensor([2, 2])), data(6, 2, 5), second=False)
    assert repr(ours.nn.CTCLoss(blank=3)) == repr(torch.nn.CTCLoss(blank=3))


CTC_ERRORS = [
    lambda F, t, x, y: F.ctc_loss(x, y, (5, 6), (2, 2)), lambda F, t, x, y: F.ctc_loss(x, y, (5,), (2, 2)),
    lambda F, t, x, y: F.ctc_loss(x, y, (5, 5), (2,)), lambda F, t, x, y: F.ctc_loss(x, y, (5, 5), (2, 3)),
    lambda F, t, x, y: F.ctc_loss(x, y, (5, 5), (2, 2), blank=7),
    lambda F, t, x, y: F.ctc_loss(x, y.view(-1)[:3], (5, 5), (2, 2)),
    lambda F, t, x, y: F.ctc_loss(x, y[:1], (5, 5), (2, 2)),
    lambda F, t, x, y: F.ctc_loss(x.half(), y, (5, 5), (2, 2)),
    lambda F, t, x, y: F.ctc_loss(x, y, (5, -1), (2, 2)), lambda F, t, x, y: F.ctc_loss(x, y, (5, 5), (2, -2)),
    lambda F, t, x, y: F.ctc_loss(x, y, t.tensor([5.0, 5.0]), t.tensor([2, 2])),
]


@pytest.mark.parametrize("number", range(len(CTC_ERRORS)))
def test_ctc_errors(number):
    check_error(lambda t, x: CTC_ERRORS[number](t.nn.functional, t, x.log_softmax(-1), t.tensor([[1, 2], [3, 1]])),
                data(5, 2, 4))


# -- sampling and pooling ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("padding", "align"), list(itertools.product(["zeros", "border", "reflection"],
                                                                      [False, True])))
def test_grid_sample_bicubic(padding, align):
    check(lambda t, x, g: t.nn.functional.grid_sample(x, g, mode="bicubic", padding_mode=padding, align_corners=align),
          data(2, 3, 5, 4, dtype="float64"), data(2, 3, 6, 2, low=-1.7, high=1.7, dtype="float64"), second=False)


def test_grid_sample_bicubic_errors():
    check_error(lambda t, x, g: t.nn.functional.grid_sample(x, g, mode="bicubic"), data(1, 1, 2, 2, 2),
                data(1, 1, 1, 1, 3))


POOLS = [
    lambda t, x: t.nn.functional.fractional_max_pool2d(x, 2, 3),
    lambda t, x: t.nn.functional.fractional_max_pool2d(x, (2, 3), output_ratio=(0.5, 0.4), return_indices=True),
    lambda t, x: t.nn.functional.fractional_max_pool2d_with_indices(x, 2, 1),
    lambda t, x: t.nn.FractionalMaxPool2d(3, output_size=(2, 4))(x),
    lambda t, x: t.nn.FractionalMaxPool2d(2, output_ratio=0.5, return_indices=True)(x),
]
VOLUMES = [
    lambda t, x: t.nn.functional.fractional_max_pool3d(x, 2, (2, 3, 4), return_indices=True),
    lambda t, x: t.nn.FractionalMaxPool3d((1, 2, 3), output_ratio=0.5)(x),
]


@pytest.mark.parametrize("number", range(len(POOLS)))
@pytest.mark.parametrize("shape", [(2, 3, 7, 8), (3, 7, 8)])
def test_fractional_max_pool2d(number, shape):
    def pool(t, x):
        t.manual_seed(1)
        return POOLS[number](t, x)

    check(pool, data(*shape))


@pytest.mark.parametrize("number", range(len(VOLUMES)))
@pytest.mark.parametrize("shape", [(2, 3, 5, 7, 8), (3, 5, 7, 8)])
def test_fractional_max_pool3d(number, shape):
    def pool(t, x):
        t.manual_seed(1)
        return VOLUMES[number](t, x)

    check(pool, data(*shape))


def test_fractional_errors():
    check_error(lambda t, x: t.nn.functional.fractional_max_pool2d(x, 2), data(1, 2, 6, 6))
    check_error(lambda t, x: t.nn.functional.fractional_max_pool2d(x, 4, 5), data(1, 2, 6, 6))
    check_error(lambda t: t.nn.FractionalMaxPool2d(2))
    check_error(lambda t: t.nn.FractionalMaxPool3d(2, 3, 0.5))
    check_error(lambda t: t.nn.FractionalMaxPool2d(2, output_ratio=1.5))
    assert repr(ours.nn.FractionalMaxPool2d(2, 3)) == repr(torch.nn.FractionalMaxPool2d(2, 3))


def test_pools_with_indices():
    for name, shape in (("adaptive_max_pool1d", (2, 3, 7)), ("adaptive_max_pool2d", (2, 3, 7, 6)),
                        ("adaptive_max_pool3d", (2, 3, 4, 5, 6))):
        check(lambda t, x, name=name: getattr(t.nn.functional, f"{name}_with_indices")(x, 3), data(*shape))


@pytest.mark.parametrize("inplace", [False, True])
def test_rrelu_draws_slopes(inplace):
    def run(t, x):
        t.manual_seed(4)
        return t.nn.functional.rrelu(x * 1.0, 0.1, 0.4, training=True, inplace=inplace), t.rand(2)

    check(run, data(4, 5), second=False)


def test_conv_tbc_and_channel_shuffle():
    check(lambda t, x, w, b: t.nn.functional.conv_tbc(x, w, b, 1), data(7, 2, 3), data(3, 3, 4), data(4), second=False)
    check_error(lambda t, x, w, b: t.conv_tbc(x, w, b), data(7, 2, 3), data(3, 2, 4), data(4))
    check(lambda t, x: t.nn.functional.native_channel_shuffle(x, 2), data(2, 4, 3, 3), grad=False)


# -- losses --------------------------------------------------------------------------------------------------------


def test_adaptive_log_softmax():
    def run(t):
        t.manual_seed(0)
        layer = t.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10], div_value=2.0, head_bias=True)
        x = make(t, data(6, 8), True)
        out = layer(x, t.tensor([1, 5, 19, 3, 10, 4]))
        out.loss.backward()
        single = layer(x[0], t.tensor(7))
        return [out.output, out.loss, x.grad, *(p.grad for p in layer.parameters()), layer.log_prob(x),
                layer.predict(x), single.output, single.loss, repr(layer), list(layer.state_dict())]

    same(run)


ADAPTIVE_ERRORS = [
    lambda t: t.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [10, 4]), lambda t: t.nn.AdaptiveLogSoftmaxWithLoss(8, 20, []),
    lambda t: t.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4])(t.ones(3, 8), t.tensor([1, 2, 25])),
    lambda t: t.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4])(t.ones(3, 8), t.tensor([1, 2])),
    lambda t: t.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4])(t.ones(2, 3, 8), t.tensor([1, 2])),
]


@pytest.mark.parametrize("number", range(len(ADAPTIVE_ERRORS)))
def test_adaptive_errors(number):
    check_error(ADAPTIVE_ERRORS[number])


@pytest.mark.parametrize("options", [{}, {"bias": True, "label_smoothing": 0.1}, {"reduction": "none"},
                                     {"ignore_index": 1}, {"reduction": "sum", "bias": True}], ids=str)
def test_linear_cross_entropy_loss(options):
    def run(t):
        t.manual_seed(0)
        layer = t.nn.LinearCrossEntropyLoss(4, 3, **options)
        x = make(t, data(5, 4), True)
        loss = layer(x, t.tensor([0, 1, 2, 1, 0]))
        loss.sum().backward()
        return [loss, x.grad, *(p.grad for p in layer.parameters()), repr(layer), list(layer.state_dict())]

    same(run)


def test_linear_cross_entropy_of_several_dimensions():
    def run(t):
        t.manual_seed(0)
        layer = t.nn.LinearCrossEntropyLoss(4, 3, out_features=(2,), bias=True)
        x = make(t, data(5, 4), True)
        loss = layer(x, t.tensor([[0, 1], [2, 1], [0, 0], [1, 1], [2, 2]]))
        loss.backward()
        return [loss, x.grad, *(p.grad for p in layer.parameters())]

    same(run)
    check(lambda t, x, w: t.nn.functional.linear_cross_entropy(x, w, t.tensor([0, 2])), data(2, 4), data(3, 4),
          second=False)


CHUNKS = [{}, {"batch_chunk_size": 2}, {"chunking_method": "aspect_ratio"},
          {"chunking_method": None}, {"batch_chunk_size": 3, "chunking_method": "aspect_ratio"}]


@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("given", ["plain", "weighted", "ignoring", "one sample", "narrow"])
def test_linear_cross_entropy_in_chunks(given, reduction, chunks):
    def run(t):
        kind = t.bfloat16 if given == "narrow" else t.float64
        x = t.arange(21, dtype=t.float64).view(7, 3).sin().to(kind)
        x = (x[2] if given == "one sample" else x).clone().requires_grad_()
        linear = t.arange(15, dtype=t.float64).view(5, 3).cos().to(kind).requires_grad_()
        weights = t.arange(5, dtype=t.float64) + 1
        more = {"weighted": {"weight": weights}, "ignoring": {"ignore_index": 1}}.get(given, {})
        target = t.tensor(2) if given == "one sample" else t.tensor([0, 1, 2, 3, 4, 1, 0])
        try:
            options = t.nn.LinearCrossEntropyOptions(**chunks)
            loss = t.nn.functional.linear_cross_entropy(x, linear, target, reduction=reduction, options=options, **more)
        except ValueError as error:
            return [str(error)]
        loss.sum().backward()
        return [loss] if given == "narrow" else [loss, x.grad, linear.grad]

    same(run)


@pytest.mark.parametrize("wrong", [
    {"acc_policy": "x"}, {"chunking_method": "x"}, {"chunking_method": "aspect_ratio:0"}, {"batch_chunk_size": 0},
    {"batch_chunk_size": 1.5}], ids=str)
def test_options_of_linear_cross_entropy_are_checked(wrong):
    check_error(lambda t: t.nn.LinearCrossEntropyOptions(**wrong))


def test_old_names():
    def run(t):
        loss = t.nn.NLLLoss2d()(make(t, data(2, 3, 2, 2), False), t.ones(2, 2, 2, dtype=t.int64))
        lrn = t.nn.CrossMapLRN2d(3, alpha=0.1)
        even = t.nn.CrossMapLRN2d(4, alpha=0.2, beta=0.5, k=2.0)
        x = make(t, data(2, 6, 2, 3), True)
        y = lrn(x) + even(x)
        y.sin().sum().backward()
        return [loss, y, x.grad, repr(lrn), repr(t.nn.Container(a=t.nn.Linear(1, 1)))]

    same(run)


# -- normalisation and parallel ------------------------------------------------------------------------------------


def test_sync_batch_norm_of_one_process():
    def run(t):
        model = t.nn.Sequential(t.nn.BatchNorm1d(3), t.nn.Sequential(t.nn.BatchNorm2d(2, affine=False)))
        converted = t.nn.SyncBatchNorm.convert_sync_batchnorm(model)
        layer = t.nn.SyncBatchNorm(3)
        x = make(t, data(4, 3, 2), True)
        y = layer(x)
        y.sin().sum().backward()
        return [repr(converted), list(converted.state_dict()), y, x.grad, layer.running_mean, layer.running_var,
                layer.eval()(x)]

    same(run)
    check_error(lambda t: t.nn.SyncBatchNorm(3)(t.ones(3)))


def test_data_parallel_calls_its_module():
    def run(t):
        t.manual_seed(0)
        model = t.nn.DataParallel(t.nn.Linear(2, 3))
        return [model(t.ones(4, 2)), list(model.state_dict()), repr(model), model.device_ids]

    same(run)
    with pytest.raises(RuntimeError, match="process group"):
        ours.nn.parallel.DistributedDataParallel(ours.nn.Linear(1, 1))


# -- lazy modules --------------------------------------------------------------------------------------------------

LAZY = {
    "LazyLinear": (lambda nn: nn.LazyLinear(3), (5, 4)),
    "LazyLinear, no bias": (lambda nn: nn.LazyLinear(3, bias=False), (5, 4)),
    "LazyConv1d": (lambda nn: nn.LazyConv1d(4, 3, padding=1), (2, 3, 6)),
    "LazyConv2d": (lambda nn: nn.LazyConv2d(4, 2, groups=2), (2, 6, 5, 5)),
    "LazyConv2d, unbatched": (lambda nn: nn.LazyConv2d(4, 2, bias=False), (6, 5, 5)),
    "LazyConv3d": (lambda nn: nn.LazyConv3d(2, 2), (2, 3, 4, 4, 4)),
    "LazyConvTranspose1d": (lambda nn: nn.LazyConvTranspose1d(4, 3), (2, 3, 6)),
    "LazyConvTranspose2d": (lambda nn: nn.LazyConvTranspose2d(4, 2, stride=2, groups=2), (2, 6, 5, 5)),
    "LazyConvTranspose3d": (lambda nn: nn.LazyConvTranspose3d(2, 2), (2, 3, 4, 4, 4)),
    "LazyBatchNorm1d": (lambda nn: nn.LazyBatchNorm1d(), (4, 3)),
    "LazyBatchNorm2d": (lambda nn: nn.LazyBatchNorm2d(affine=False), (4, 3, 2, 2)),
    "LazyBatchNorm3d": (lambda nn: nn.LazyBatchNorm3d(track_running_stats=False), (4, 3, 2, 2, 2)),
    "LazyInstanceNorm1d": (lambda nn: nn.LazyInstanceNorm1d(), (4, 3, 5)),
    "LazyInstanceNorm2d": (lambda nn: nn.LazyInstanceNorm2d(), (4, 3, 2, 2)),
    "LazyInstanceNorm3d": (lambda nn: nn.LazyInstanceNorm3d(), (4, 3, 2, 2, 2)),
}


@pytest.mark.parametrize("name", LAZY)
def test_lazy_modules(name):
    build, shape = LAZY[name]

    def run(t):
        t.manual_seed(0)
        layer = build(t.nn)
        found = [repr(layer), list(layer.state_dict()), [str(p) for p in layer.parameters()],
                 layer.has_uninitialized_params()]
        x = make(t, data(*shape), True)
        y = layer(x)
        y.sin().sum().backward()
        return [*found, repr(layer), type(layer).__name__, y, x.grad, *layer.state_dict().values(),
                *(p.grad for p in layer.parameters()), t.rand(1)]

    same(run, 1e-4)


def test_lazy_modules_are_loaded_copied_and_converted():
    def run(t):
        t.manual_seed(0)
        source = t.nn.Sequential(t.nn.Linear(4, 3), t.nn.BatchNorm1d(3))
        target = t.nn.Sequential(t.nn.LazyLinear(3), t.nn.LazyBatchNorm1d())
        again = t.nn.Sequential(copy.deepcopy(t.nn.LazyLinear(3)), t.nn.LazyBatchNorm1d())
        pickled = pickle.loads(pickle.dumps(t.nn.LazyLinear(2).weight))
        found = [str(pickled), str(target.load_state_dict(source.state_dict())), repr(target), repr(again)]
        again.double()
        wide = again(t.ones(2, 5, dtype=t.float64))
        empty = t.nn.LazyLinear(3)
        empty.load_state_dict(t.nn.LazyLinear(3).state_dict())
        return [*found, target(t.ones(2, 4)), wide.dtype, wide.shape, empty.has_uninitialized_params()]

    same(run, 1e-4)


def test_lazy_errors():
    check_error(lambda t: t.nn.LazyLinear(3).weight.shape)
    check_error(lambda t: t.nn.LazyLinear(3).weight + 1)
    check_error(lambda t: t.nn.LazyConv2d(3, 2)(t.ones(2)))
    check_error(lambda t: t.nn.LazyConv2d(4, 2, groups=2)(t.ones(1, 3, 4, 4)))


def test_factory_kwargs_and_refused_products():
    for module in BOTH:
        made = module.nn.factory_kwargs({"device": "cpu", "factory_kwargs": {"dtype": 3}})
        assert made == {"device": "cpu", "dtype": 3}
    check_error(lambda t: t.nn.factory_kwargs({"other": 1}))
    check_error(lambda t: t.nn.factory_kwargs({"dtype": 1, "factory_kwargs": {"dtype": 1}}))
    with pytest.raises(NotImplementedError, match="scaled_mm"):
        ours.nn.functional.scaled_mm(ours.ones(1, 1), ours.ones(1, 1))


# -- nn.utils ------------------------------------------------------------------------------------------------------


def test_fusion():
    def run(t):
        t.manual_seed(0)
        found = []
        for layer, norm, shape, transpose in (
                (t.nn.Conv2d(3, 4, 2), t.nn.BatchNorm2d(4), (2, 3, 5, 5), False),
                (t.nn.Conv1d(3, 4, 2, bias=False), t.nn.BatchNorm1d(4, affine=False), (2, 3, 5), False),
                (t.nn.ConvTranspose2d(3, 4, 2), t.nn.BatchNorm2d(4), (2, 3, 5, 5), True)):
            norm(layer(make(t, data(*shape), False)))
            layer.eval()
            norm.eval()
            fused = t.nn.utils.fuse_conv_bn_eval(layer, norm, transpose)
            x = make(t, data(*shape, seed=3), False)
            assert bool(t.isclose(fused(x), norm(layer(x)), atol=1e-5).all())
            found += [fused.weight, fused.bias]
        linear, norm = t.nn.Linear(3, 4), t.nn.BatchNorm1d(4)
        norm(linear(make(t, data(6, 3), False)))
        fused = t.nn.utils.fuse_linear_bn_eval(linear.eval(), norm.eval())
        return [*found, fused.weight, fused.bias, fused.weight.requires_grad]

    same(run)
    check_error(lambda t: t.nn.utils.fuse_conv_bn_eval(t.nn.Conv1d(1, 1, 1), t.nn.BatchNorm1d(1)))


def test_skip_init_and_memory_formats():
    def run(t):
        t.manual_seed(0)
        layer = t.nn.utils.skip_init(t.nn.Linear, 3, 2)
        after = t.rand(1)
        conv = t.nn.utils.convert_conv2d_weight_memory_format(t.nn.Sequential(t.nn.Conv2d(3, 4, 2)), t.channels_last)
        return [repr(layer), after, layer.weight.shape, layer.weight.requires_grad, conv[0].weight.stride(),
                conv(t.ones(1, 3, 4, 4)).shape]

    same(run)
    check_error(lambda t: t.nn.utils.skip_init(t.nn.ReLU))
    check_error(lambda t: t.nn.utils.skip_init(3))


PRUNINGS = {
    "l1": lambda p, m: p.l1_unstructured(m, "weight", 0.3), "l1, count": lambda p, m: p.l1_unstructured(m, "bias", 2),
    "random": lambda p, m: p.random_unstructured(m, "weight", 0.5), "identity": lambda p, m: p.identity(m, "weight"),
    "random, slices": lambda p, m: p.random_structured(m, "weight", 2, 0),
    "norm": lambda p, m: p.ln_structured(m, "weight", 0.5, 2, 1),
    "norm, inf": lambda p, m: p.ln_structured(m, "weight", 1, float("inf"), 0),
    "mask": lambda p, m: p.custom_from_mask(m, "weight", (m.weight.detach() > 0).float()),
    "twice": lambda p, m: p.l1_unstructured(p.random_unstructured(m, "weight", 0.3), "weight", 0.4),
    "twice, slices": lambda p, m: p.ln_structured(p.l1_unstructured(m, "weight", 0.3), "weight", 0.5, 1, 0),
    "global": lambda p, m: p.global_unstructured([(m, "weight"), (m, "bias")], p.L1Unstructured, amount=0.4) or m,
}


@pytest.mark.parametrize("name", PRUNINGS)
def test_prune(name):
    def run(t):
        prune = importlib.import_module(f"{t.__name__}.nn.utils.prune")
        t.manual_seed(0)
        layer = PRUNINGS[name](prune, t.nn.Linear(4, 5))
        found = [list(layer.state_dict()), *layer.state_dict().values(), prune.is_pruned(layer)]
        optimizer = t.optim.SGD(layer.parameters(), lr=0.1)
        layer(make(t, data(3, 4), False)).sin().sum().backward()
        optimizer.step()
        found += [layer(make(t, data(3, 4), False)), *(p.grad for _, p in sorted(layer.named_parameters()))]
        which = "bias" if "count" in name else "weight"
        prune.remove(layer, which)
        found += [list(layer.state_dict()), layer.weight, layer.bias, type(getattr(layer, which)).__name__]
        return found

    same(run)


PRUNE_ERRORS = [
    lambda p, t: p.l1_unstructured(t.nn.Linear(2, 2), "weight", 1.5),
    lambda p, t: p.l1_unstructured(t.nn.Linear(2, 2), "weight", 7),
    lambda p, t: p.l1_unstructured(t.nn.Linear(2, 2), "weight", "a"),
    lambda p, t: p.remove(t.nn.Linear(2, 2), "weight"),
    lambda p, t: p.random_structured(t.nn.Linear(2, 2), "bias", 1, 0),
]


@pytest.mark.parametrize("number", range(len(PRUNE_ERRORS)))
def test_prune_errors(number):
    check_error(lambda t: PRUNE_ERRORS[number](importlib.import_module(f"{t.__name__}.nn.utils.prune"), t))


@pytest.mark.parametrize("how", ["matrix_exp", "cayley", "householder", None])
@pytest.mark.parametrize("trivial", [True, False])
@pytest.mark.parametrize("sizes", [(4, 4), (3, 5), (5, 3)])
def test_orthogonal(how, trivial, sizes):
    def run(t):
        t.manual_seed(0)
        layer = t.nn.Linear(*sizes).double()
        t.nn.utils.parametrizations.orthogonal(layer, orthogonal_map=how, use_trivialization=trivial)
        found = [repr(layer), list(layer.state_dict()), layer.weight]
        optimizer = t.optim.SGD(layer.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            layer(make(t, data(2, sizes[0], dtype="float64"), False)).sin().sum().backward()
            optimizer.step()
        return [*found, layer.weight, *layer.state_dict().values(), *(p.grad for p in layer.parameters())]

    same(run, 1e-6)


def test_orthogonal_errors():
    check_error(lambda t: t.nn.utils.parametrizations.orthogonal(t.nn.Linear(2, 2), "other"))
    check_error(lambda t: t.nn.utils.parametrizations.orthogonal(t.nn.Linear(2, 2), "bias"))
    check_error(lambda t: t.nn.utils.parametrizations.orthogonal(t.nn.Linear(2, 2), orthogonal_map="other"))

    def assign(t):
        layer = t.nn.utils.parametrizations.orthogonal(t.nn.Linear(2, 2), use_trivialization=False)
        layer.weight = t.eye(2)

    check_error(assign)


# -- attention and gradients ---------------------------------------------------------------------------------------


def test_sdpa_kernel_chooses():
    def run(t):
        attention = t.nn.attention
        q = make(t, data(1, 2, 3, 4), False)
        f = t.nn.functional.scaled_dot_product_attention
        found = [attention._cur_sdpa_kernel_backends()]
        for backend in (attention.SDPBackend.MATH, [attention.SDPBackend.FLASH_ATTENTION, attention.SDPBackend.MATH],
                        attention.SDPBackend.FLASH_ATTENTION):
            with attention.sdpa_kernel(backend):
                found += [f(q, q, q), attention._cur_sdpa_kernel_backends()]
        return [*found, attention._cur_sdpa_kernel_backends(), repr(attention.SDPBackend.MATH)]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got, want = (run(module) for module in BOTH)
    for a, b in zip(got, want, strict=True):
        assert_same(a, b, "attention")

    def refused(t):
        with t.nn.attention.sdpa_kernel(t.nn.attention.SDPBackend.CUDNN_ATTENTION):
            t.nn.functional.scaled_dot_product_attention(t.ones(1, 1, 2, 4), t.ones(1, 1, 2, 4), t.ones(1, 1, 2, 4))

    check_error(refused)
    check_error(lambda t: t.nn.attention.sdpa_kernel(3).__enter__())


@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_gradients_of_convolutions(spatial):
    def run(t):
        module = importlib.import_module(f"{t.__name__}.nn.grad")
        x, w = make(t, data(2, 4, *[6] * spatial), False), make(t, data(6, 2, *[3] * spatial), False)
        g = getattr(t.nn.functional, f"conv{spatial}d")(x, w, stride=2, padding=1, groups=2)
        return [getattr(module, f"conv{spatial}d_input")(x.shape, w, g, stride=2, padding=1, groups=2),
                getattr(module, f"conv{spatial}d_weight")(x, w.shape, g, stride=2, padding=1, groups=2)]

    same(run, 1e-4)
