"""The common kernels, each as a function of a size: what it computes, on which arrays, with its backward or without.

A case is `(make, call)`: `make(torch, size)` gives tensors, and `call(torch, *tensors)` a result. Where a tensor
requires a gradient, the backward is part of what is timed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .timing import Work


class Size(NamedTuple):
    """Of matrices, of images, and of sequences."""

    rows: int
    columns: int
    images: int
    channels: int
    edge: int
    steps: int


SIZES = {
    "small": Size(4, 8, 1, 4, 8, 4),
    "middle": Size(256, 512, 8, 16, 32, 32),
    "large": Size(2048, 1024, 16, 32, 64, 64),
}

Call = Callable[..., Any]
Make = Callable[[Any, Size], list[Any]]


class Case(NamedTuple):
    """Tensors and what is computed from them."""

    make: Make
    call: Call

    def build(self, torch: Any, size: Size) -> Work:
        """What is timed, on one runtime."""
        torch.manual_seed(0)
        given = self.make(torch, size)
        leaves = [one for one in given if isinstance(one, torch.Tensor) and one.requires_grad]
        made = self.call(torch, *given)
        if not (isinstance(made, torch.Tensor) and made.requires_grad):
            return lambda: self.call(torch, *given)
        pull = torch.ones_like(made)
        if any(isinstance(one, torch.nn.Module) for one in given):
            leaves += list(given[0].parameters())

        def step() -> None:
            self.call(torch, *given).backward(pull)
            for leaf in leaves:
                leaf.grad = None

        return step


def _matrix(torch: Any, size: Size, learn: bool = False) -> Any:
    return torch.randn(size.rows, size.columns).requires_grad_(learn)


def _plain(torch: Any, size: Size) -> list[Any]:
    return [_matrix(torch, size)]


def _learn(torch: Any, size: Size) -> list[Any]:
    return [_matrix(torch, size, True)]


def _positive(torch: Any, size: Size) -> list[Any]:
    return [(torch.rand(size.rows, size.columns) + 0.1).requires_grad_()]


def _plain_positive(torch: Any, size: Size) -> list[Any]:
    return [torch.rand(size.rows, size.columns) + 0.1]


def _two(torch: Any, size: Size) -> list[Any]:
    return [_matrix(torch, size), _matrix(torch, size)]


def _learn_two(torch: Any, size: Size) -> list[Any]:
    return [_matrix(torch, size, True), _matrix(torch, size, True)]


def _learn_target(torch: Any, size: Size) -> list[Any]:
    return [_matrix(torch, size, True), _matrix(torch, size)]


def _shares(torch: Any, size: Size) -> list[Any]:
    """Probabilities that are learnt, and wanted ones."""
    return [torch.rand(size.rows, size.columns).requires_grad_(), torch.rand(size.rows, size.columns)]


def _row(torch: Any, size: Size) -> list[Any]:
    return [_matrix(torch, size), torch.randn(size.columns)]


def _column(torch: Any, size: Size) -> list[Any]:
    return [_matrix(torch, size), torch.randn(size.rows, 1)]


def _classes(torch: Any, size: Size) -> list[Any]:
    return [_matrix(torch, size, True), torch.randint(0, size.columns, (size.rows,))]


def _along(torch: Any, size: Size) -> list[Any]:
    """A matrix and for each element a position in its row."""
    return [_matrix(torch, size, True), torch.randint(0, size.columns, (size.rows, size.columns))]


def _down(torch: Any, size: Size) -> list[Any]:
    return [_matrix(torch, size, True), torch.randint(0, size.rows, (size.rows, size.columns))]


def _rows_of(torch: Any, size: Size) -> list[Any]:
    return [_matrix(torch, size, True), torch.randint(0, size.rows, (size.rows,))]


def _columns_of(torch: Any, size: Size) -> list[Any]:
    return [_matrix(torch, size, True), torch.randint(0, size.columns, (size.columns,))]


def _integers(torch: Any, size: Size) -> list[Any]:
    return [torch.randint(0, 1000, (size.rows, size.columns))]


def _of_dtype(name: str) -> Make:
    return lambda torch, size: [(10 * _matrix(torch, size)).to(getattr(torch, name))]


def _images(torch: Any, size: Size) -> list[Any]:
    return [torch.randn(size.images, size.channels, size.edge, size.edge).requires_grad_()]


def _lines(torch: Any, size: Size) -> list[Any]:
    return [torch.randn(size.images, size.channels, size.edge * size.edge).requires_grad_()]


def _volumes(torch: Any, size: Size) -> list[Any]:
    edge = max(4, size.edge // 4)
    return [torch.randn(size.images, size.channels, edge, edge, edge).requires_grad_(),
            torch.randn(8, size.channels, 3, 3, 3).requires_grad_()]


def _filters(*kernel: int, groups: int = 1, lines: bool = False) -> Make:
    def make(torch: Any, size: Size) -> list[Any]:
        inner = 1 if groups else size.channels
        weight = torch.randn(2 * size.channels if groups == 0 else size.channels, inner, *kernel).requires_grad_()
        return [*(_lines if lines else _images)(torch, size), weight]

    return make


def _convolve(**how: Any) -> Call:
    def call(torch: Any, x: Any, w: Any) -> Any:
        groups = x.shape[1] // w.shape[1]
        return getattr(torch.nn.functional, f"conv{x.ndim - 2}d")(x, w, groups=groups, **how)

    return call


def _transposed(torch: Any, size: Size) -> list[Any]:
    return [*_images(torch, size), torch.randn(size.channels, size.channels, 4, 4).requires_grad_()]


def _grid(torch: Any, size: Size) -> list[Any]:
    return [*_images(torch, size), (2 * torch.rand(size.images, size.edge, size.edge, 2) - 1).requires_grad_()]


def _heads(torch: Any, size: Size) -> list[Any]:
    return [torch.randn(max(1, size.images // 2), 4, 4 * size.steps, 32).requires_grad_() for _ in range(3)]


def _batches(torch: Any, size: Size) -> list[Any]:
    return [torch.randn(size.images, 2 * size.edge, 2 * size.edge).requires_grad_() for _ in range(2)]


def _linear(torch: Any, size: Size) -> list[Any]:
    return [_matrix(torch, size, True), torch.randn(size.columns // 2, size.columns).requires_grad_(),
            torch.randn(size.columns // 2).requires_grad_()]


def _factors(torch: Any, size: Size) -> list[Any]:
    return [_matrix(torch, size, True), torch.randn(size.columns, size.rows).requires_grad_()]


def _layer(name: str, **how: Any) -> Make:
    def make(torch: Any, size: Size) -> list[Any]:
        features = 8 * min(size.edge, 32) // 4
        return [getattr(torch.nn, name)(features, 2 * features, **how),
                torch.randn(size.steps, 2 * size.images, features).requires_grad_()]

    return make


def _sequences(torch: Any, size: Size) -> list[Any]:
    """Scores (steps, batch, letters) and what should be read from them."""
    length = max(1, size.steps // 4)
    return [torch.randn(size.steps, size.images, 32).log_softmax(2).detach().requires_grad_(),
            torch.randint(1, 32, (size.images, length)), torch.full((size.images,), size.steps, dtype=torch.int64),
            torch.full((size.images,), length, dtype=torch.int64)]


def _square(torch: Any, size: Size) -> list[Any]:
    count = min(size.rows, 256)
    half = torch.randn(count, count)
    return [half @ half.T / count + torch.eye(count)]


def _number_of(torch: Any, size: Size) -> list[Any]:
    return [size.rows * size.columns]


def _sorted(torch: Any, size: Size) -> list[Any]:
    return [torch.sort(torch.randn(size.columns))[0], _matrix(torch, size)]


def _optimizer(name: str, **how: Any) -> Make:
    def make(torch: Any, size: Size) -> list[Any]:
        weights = [torch.randn(size.rows, size.columns // 8).requires_grad_() for _ in range(8)]
        for weight in weights:
            weight.grad = torch.randn(*weight.shape)
        return [getattr(torch.optim, name)(weights, lr=1e-3, **how)]

    return make


def _method(name: str, *arguments: Any, **named: Any) -> Call:
    """A method of the first tensor; of several results, the first."""

    def call(torch: Any, x: Any, *others: Any) -> Any:
        made = getattr(x, name)(*others, *arguments, **named)
        return made if isinstance(made, torch.Tensor) else made[0]

    return call


def _torch(name: str, *arguments: Any, **named: Any) -> Call:
    return lambda torch, *given: getattr(torch, name)(*given, *arguments, **named)


def _function(name: str, *arguments: Any, **named: Any) -> Call:
    return lambda torch, *given: getattr(torch.nn.functional, name)(*given, *arguments, **named)


CASES: dict[str, Case] = {
    # elements, with their backward
    **{name: Case(_learn, _torch(name)) for name in ("exp", "expm1", "sin", "cos", "atan", "tanh", "sigmoid", "erf",
                                                     "abs", "neg", "square", "relu")},
    **{name: Case(_positive, _torch(name)) for name in ("log", "log1p", "log2", "sqrt", "rsqrt", "reciprocal", "lgamma",
                                                        "digamma")},
    **{name: Case(_learn, _function(name)) for name in (
        "gelu", "silu", "mish", "elu", "selu", "leaky_relu", "relu6", "hardtanh", "hardswish", "hardsigmoid",
        "softplus", "softshrink", "logsigmoid", "softsign", "glu")},
    "gelu, tanh": Case(_learn, _function("gelu", approximate="tanh")),
    "dropout": Case(_learn, _function("dropout", 0.1, True)),
    "pow 3": Case(_learn, _method("pow", 3)),
    "pow 2.5": Case(_positive, _method("pow", 2.5)),
    "clamp": Case(_learn, _method("clamp", -1.0, 1.0)),
    **{name: Case(_learn_two, _torch(name)) for name in ("add", "sub", "mul", "div", "maximum", "atan2")},
    "lerp": Case(_learn_two, _torch("lerp", 0.3)),
    "where": Case(_learn_two, lambda torch, x, y: torch.where(x > 0, x, y)),
    "masked_fill": Case(_learn, lambda torch, x: x.masked_fill(x > 0, 0.0)),
    # elements, forward alone
    **{name: Case(_plain, _torch(name)) for name in ("floor", "round", "sign", "isnan", "isfinite", "trunc")},
    **{name: Case(_two, _torch(name)) for name in ("eq", "lt", "fmod", "remainder")},
    "add a row": Case(_row, _torch("add")),
    "add a column": Case(_column, _torch("add")),
    "multiply by a number": Case(_plain, _method("mul", 1.5)),
    "add, alpha": Case(_two, _torch("add", alpha=0.5)),
    "add_": Case(_two, _method("add_")),
    "addcmul": Case(_two, lambda torch, x, y: torch.addcmul(x, x, y, value=0.5)),
    "add, out": Case(_two, lambda torch, x, y: torch.add(x, y, out=x)),
    "add of int64": Case(_integers, lambda torch, x: x + x),
    "add of float64": Case(_of_dtype("float64"), lambda torch, x: x + x),
    "add of bfloat16": Case(_of_dtype("bfloat16"), lambda torch, x: x + x),
    "add of float16": Case(_of_dtype("float16"), lambda torch, x: x + x),
    "logical_and": Case(_of_dtype("bool"), lambda torch, x: x & x),
    # reductions
    **{f"{name}{where}": Case(_learn, _method(name, *along))
       for name in ("sum", "mean", "var", "std", "logsumexp", "prod", "amax")
       for where, along in (("", ()), (", rows", (1,)), (", columns", (0,))) if along or name != "logsumexp"},
    **{f"{name}{where}": Case(_plain, _method(name, *along))
       for name in ("max", "min", "argmax") for where, along in (("", ()), (", rows", (1,)), (", columns", (0,)))},
    **{f"{name}{where}": Case(_of_dtype("bool"), _method(name, *along))
       for name in ("any", "all", "sum") for where, along in ((" of bool", ()), (" of bool, rows", (1,)))},
    "sum of int64": Case(_integers, _method("sum")),
    "sum of images": Case(_images, lambda torch, x: x.sum((0, 2, 3))),
    "norm": Case(_learn, _method("norm")),
    "norm, rows": Case(_learn, _method("norm", dim=1)),
    "softmax": Case(_learn, _method("softmax", 1)),
    "softmax, columns": Case(_learn, _method("softmax", 0)),
    "log_softmax": Case(_learn, _method("log_softmax", 1)),
    "cumsum": Case(_learn, _method("cumsum", 1)),
    "cumsum, columns": Case(_learn, _method("cumsum", 0)),
    "cumprod": Case(_learn, _method("cumprod", 1)),
    "cummax": Case(_learn, _method("cummax", 1)),
    "logcumsumexp": Case(_learn, _method("logcumsumexp", 1)),
    "sort": Case(_learn, _method("sort")),
    "argsort": Case(_plain, _method("argsort")),
    "topk": Case(_learn, _method("topk", 4)),
    "median": Case(_learn, _method("median")),
    "kthvalue": Case(_plain, _method("kthvalue", 3)),
    "unique": Case(_integers, _torch("unique")),
    "bincount": Case(_integers, lambda torch, x: torch.bincount(x.view(-1))),
    "histc": Case(_plain, _torch("histc", 50)),
    "searchsorted": Case(_sorted, _torch("searchsorted")),
    "nonzero": Case(_plain, lambda torch, x: torch.nonzero(x > 0)),
    # copies
    "cat": Case(_learn_two, lambda torch, x, y: torch.cat([x, y], 1)),
    "stack": Case(_learn_two, lambda torch, x, y: torch.stack([x, y])),
    "transposed copy": Case(_learn, lambda torch, x: x.t().contiguous()),
    "permuted copy": Case(_images, lambda torch, x: x.permute(0, 2, 3, 1).contiguous()),
    "copy with gaps": Case(_plain, lambda torch, x: x[:, ::2].contiguous()),
    "clone": Case(_plain, _method("clone")),
    "flip": Case(_learn, _method("flip", 1)),
    "roll": Case(_learn, _method("roll", 3, 1)),
    "repeat": Case(_learn, _method("repeat", 2, 2)),
    "expand": Case(_row, lambda torch, x, y: y.expand(x.shape[0], -1).contiguous()),
    "repeat_interleave": Case(_learn, _method("repeat_interleave", 2, dim=0)),
    "tril": Case(_learn, _method("tril")),
    "pad": Case(_images, _function("pad", (1, 1, 1, 1))),
    "pad, reflect": Case(_images, _function("pad", (1, 1, 1, 1), mode="reflect")),
    "unfold": Case(_images, _function("unfold", 3, padding=1)),
    "fill_": Case(_plain, _method("fill_", 1.0)),
    "zeros_like": Case(_plain, _torch("zeros_like")),
    "arange": Case(_number_of, _torch("arange")),
    # by position
    "gather": Case(_along, lambda torch, x, i: x.gather(1, i)),
    "gather, columns": Case(_down, lambda torch, x, i: x.gather(0, i)),
    "scatter": Case(_along, lambda torch, x, i: x.scatter(1, i, 1.0)),
    "scatter_add": Case(_along, lambda torch, x, i: x.scatter_add(1, i, x)),
    "scatter_add, columns": Case(_down, lambda torch, x, i: x.scatter_add(0, i, x)),
    "index_add, rows": Case(_rows_of, lambda torch, x, i: x.index_add(0, i, x)),
    "index_add, columns": Case(_columns_of, lambda torch, x, i: x.index_add(1, i, x)),
    "index_select, rows": Case(_rows_of, lambda torch, x, i: x.index_select(0, i)),
    "index_select, columns": Case(_columns_of, lambda torch, x, i: x.index_select(1, i)),
    "index by rows": Case(_rows_of, lambda torch, x, i: x[i]),
    "index by a mask": Case(_plain, lambda torch, x: x[x > 0]),
    "index_put": Case(_rows_of, lambda torch, x, i: x.index_put((i,), x)),
    "take": Case(_rows_of, lambda torch, x, i: x.take(i)),
    "embedding": Case(_rows_of, lambda torch, x, i: torch.nn.functional.embedding(i, x)),
    "one_hot": Case(_integers, lambda torch, x: torch.nn.functional.one_hot(x[:, 0], 1000)),
    # dtypes
    **{f"{a} to {b}": Case(_of_dtype(a), lambda torch, x, to=b: x.to(getattr(torch, to)))
       for a, b in (("float32", "float16"), ("float16", "float32"), ("float32", "bfloat16"), ("bfloat16", "float32"),
                    ("float32", "float64"), ("float64", "float32"), ("float32", "int64"), ("int64", "float32"),
                    ("bool", "float32"), ("float32", "bool"), ("uint8", "float32"), ("float32", "uint8"))},
    # losses
    **{name: Case(_learn_target, _function(name)) for name in (
        "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy_with_logits", "cosine_similarity",
        "soft_margin_loss", "kl_div")},
    "binary_cross_entropy": Case(_shares, _function("binary_cross_entropy")),
    "cross_entropy": Case(_classes, _function("cross_entropy")),
    "nll_loss": Case(_classes, _function("nll_loss")),
    "ctc_loss": Case(_sequences, _function("ctc_loss")),
    # norms
    "layer_norm": Case(_learn, lambda torch, x: torch.nn.functional.layer_norm(x, x.shape[1:])),
    "rms_norm": Case(_learn, lambda torch, x: torch.nn.functional.rms_norm(x, x.shape[1:])),
    "batch_norm": Case(_images, _function("batch_norm", None, None, training=True)),
    "batch_norm of rows": Case(_learn, _function("batch_norm", None, None, training=True)),
    "group_norm": Case(_images, _function("group_norm", 4)),
    "instance_norm": Case(_images, _function("instance_norm")),
    "normalize": Case(_learn, _function("normalize")),
    # windows
    "max_pool2d 2": Case(_images, _function("max_pool2d", 2)),
    "max_pool2d 3, stride 2": Case(_images, _function("max_pool2d", 3, 2, 1)),
    "max_pool1d 2": Case(_lines, _function("max_pool1d", 2)),
    "avg_pool2d 2": Case(_images, _function("avg_pool2d", 2)),
    "avg_pool2d 3, padded": Case(_images, _function("avg_pool2d", 3, 1, 1)),
    "adaptive_avg_pool2d 1": Case(_images, _function("adaptive_avg_pool2d", 1)),
    "adaptive_avg_pool2d 3": Case(_images, _function("adaptive_avg_pool2d", 3)),
    "adaptive_max_pool2d 3": Case(_images, _function("adaptive_max_pool2d", 3)),
    "interpolate, nearest": Case(_images, _function("interpolate", scale_factor=2)),
    "interpolate, bilinear": Case(_images, _function("interpolate", scale_factor=2, mode="bilinear")),
    "interpolate, bicubic": Case(_images, _function("interpolate", scale_factor=2, mode="bicubic")),
    "grid_sample": Case(_grid, _function("grid_sample", align_corners=False)),
    "pixel_shuffle": Case(_images, _function("pixel_shuffle", 2)),
    "conv2d 3x3": Case(_filters(3, 3, groups=0), _convolve(padding=1)),
    "conv2d 3x3, stride 2": Case(_filters(3, 3, groups=0), _convolve(stride=2, padding=1)),
    "conv2d 1x1": Case(_filters(1, 1, groups=0), _convolve()),
    "conv2d 5x5": Case(_filters(5, 5, groups=0), _convolve(padding=2)),
    "conv2d, depthwise": Case(_filters(3, 3), _convolve(padding=1)),
    "conv1d 3": Case(_filters(3, groups=0, lines=True), _convolve(padding=1)),
    "conv3d 3": Case(_volumes, _convolve(padding=1)),
    "conv_transpose2d 4, stride 2": Case(_transposed, _function("conv_transpose2d", None, 2, 1)),
    # products
    "mm": Case(_factors, _torch("mm")),
    "linear": Case(_linear, _function("linear")),
    "bmm": Case(_batches, _torch("bmm")),
    "einsum": Case(_batches, lambda torch, x, y: torch.einsum("bij,bjk->bik", x, y)),
    "matrix by vector": Case(_row, _torch("mv")),
    "dot": Case(_row, lambda torch, x, y: torch.dot(y, y)),
    "outer": Case(_row, lambda torch, x, y: torch.outer(x[:, 0], y)),
    "attention": Case(_heads, _function("scaled_dot_product_attention")),
    "attention, causal": Case(_heads, _function("scaled_dot_product_attention", is_causal=True)),
    "cdist": Case(_learn, lambda torch, x: torch.cdist(x[:, :64], x[:256, :64])),
    # layers over time
    **{f"{name}": Case(_layer(name), lambda torch, layer, x: layer(x)[0]) for name in ("RNN", "GRU", "LSTM")},
    "LSTM, two directions": Case(_layer("LSTM", bidirectional=True), lambda torch, layer, x: layer(x)[0]),
    # linear algebra and transforms
    **{f"linalg.{name}": Case(_square, lambda torch, x, name=name: getattr(torch.linalg, name)(x))
       for name in ("inv", "cholesky", "det", "qr", "svd", "eigh")},
    "fft": Case(_plain, lambda torch, x: torch.fft.fft(x)),
    "rfft": Case(_plain, lambda torch, x: torch.fft.rfft(x)),
    # random numbers
    "randn": Case(_number_of, _torch("randn")),
    "rand": Case(_number_of, _torch("rand")),
    "randint": Case(_number_of, lambda torch, n: torch.randint(0, 10, (n,))),
    "randperm": Case(_number_of, lambda torch, n: torch.randperm(n // 8)),
    "bernoulli": Case(_plain_positive, lambda torch, x: torch.bernoulli(x * 0.5)),
    "normal_": Case(_plain, _method("normal_")),
    "uniform_": Case(_plain, _method("uniform_")),
    "multinomial": Case(_plain_positive, lambda torch, x: torch.multinomial(x, 4, replacement=True)),
    # optimizers
    **{f"{name}{label}": Case(_optimizer(name, **how), lambda torch, optimizer: optimizer.step())
       for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad")
       for label, how in (("", {}), (", foreach", {"foreach": True}), (", fused", {"fused": True}))
       if label != ", fused" or name in ("SGD", "Adam", "AdamW", "Adagrad")},
    "SGD, momentum": Case(_optimizer("SGD", momentum=0.9), lambda torch, optimizer: optimizer.step()),
}
