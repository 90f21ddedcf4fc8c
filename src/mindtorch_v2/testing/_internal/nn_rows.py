"""Rows of `common_nn`: modules and losses, what they are made with and called with, and what they should give.

A row is a dictionary, which the tests that take it may change: each call makes new ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import nn
from ..._dispatch.namespace import aten
from ..._dtype import float64, int64
from ..._tensor import Tensor
from . import loss_references as losses

F = nn.functional
Row = dict[str, Any]
Reference = Callable[..., Any]


def single_batch_reference_fn(input: Any, parameters: Any, module: nn.Module) -> Any:
    """What a module gives for one sample: that of a batch with it alone."""
    one = [part.unsqueeze(0) for part in (input if isinstance(input, tuple) else (input,))]
    return module(*one).squeeze(0)


class FunctionalModule(nn.Module):
    """A function with its options, as a module."""

    def __init__(self, fn: Callable[..., Any], options: dict[str, Any]) -> None:
        super().__init__()
        self.fn, self.options = fn, options

    def forward(self, *args: Any) -> Any:
        """Call the function."""
        return self.fn(*args, **self.options)


def wrap_functional(fn: Callable[..., Any], **kwargs: Any) -> Callable[[], nn.Module]:
    """What makes a module that calls a function."""
    def constructor() -> nn.Module:
        return FunctionalModule(fn, kwargs)

    return constructor


def _row(name: str, made: tuple[Any, ...] = (), given: Any = None, desc: str = "", **facts: Any) -> Row:
    """A module, its constructor's arguments, and the size of its input or a function that makes it."""
    row: Row = {"module_name": name, "constructor_args": made, "default_dtype": float64, **facts}
    row["input_fn" if callable(given) else "input_size"] = given
    if desc:
        row["desc"] = desc
    return row


def _positive(*shape: int) -> Callable[[], Any]:
    """Numbers above zero and not near it."""
    return lambda: aten.rand(shape) + 0.1


def _classes(shape: tuple[int, ...], below: int) -> Callable[[], Any]:
    return lambda: aten.randint(0, below, shape, dtype=int64)


def _signs(*shape: int) -> Callable[[], Any]:
    """1 or -1."""
    return lambda: aten.sign(aten.randn(shape))


# -- modules -----------------------------------------------------------------------------------------------------------


def _linear(x: Any, parameters: Any, module: Any) -> Any:
    made = aten.matmul(x, parameters[0].t())
    return made + parameters[1] if len(parameters) > 1 else made


def _normalized(x: Any, dims: tuple[int, ...], eps: float) -> Any:
    centered = x - x.mean(dims, True)
    return centered / ((centered * centered).mean(dims, True) + eps).sqrt()


def _layer_norm(x: Any, parameters: Any, module: Any) -> Any:
    made = _normalized(x, tuple(range(-len(module.normalized_shape), 0)), module.eps)
    return made * parameters[0] + parameters[1] if parameters else made


def _group_norm(x: Any, parameters: Any, module: Any) -> Any:
    grouped = x.reshape(x.shape[0], module.num_groups, -1)
    made = _normalized(grouped, (2,), module.eps).reshape(x.shape)
    by_channel = [one.reshape(-1, *[1] * (x.dim() - 2)) for one in parameters]
    return made * by_channel[0] + by_channel[1] if parameters else made


def _batch_norm(x: Any, parameters: Any, module: Any) -> Any:
    if not module.training:
        return module(x)
    made = _normalized(x, (0, *range(2, x.dim())), module.eps)
    by_channel = [one.reshape(-1, *[1] * (x.dim() - 2)) for one in parameters]
    return made * by_channel[0] + by_channel[1] if parameters else made


def _convolved(x: Any, parameters: Any, module: Any) -> Any:
    """A convolution as a product with the windows; without padding, groups and dilation."""
    windows = x
    for dim, (size, step) in enumerate(zip(module.kernel_size, module.stride)):
        windows = windows.unfold(dim + 2, size, step)
    count = len(module.kernel_size)
    over = [1, *range(2 + count, 2 + 2 * count)]
    made = aten.tensordot(windows, parameters[0], (over, list(range(1, 2 + count))))
    made = made.movedim(-1, 1)
    return made if len(parameters) == 1 else made + parameters[1].reshape(-1, *[1] * count)


def _ready() -> list[Row]:
    """The modules with a formula of one line: elementwise ones, softmax, dense layers."""
    def simple(name: str, formula: Reference, *made: Any, given: Any = (3, 4, 5), desc: str = "", **facts: Any) -> Row:
        return _row(name, made, given, desc, reference_fn=lambda x, p, m: formula(x), **facts)

    return [
        _row("Linear", (7, 5), (4, 7), reference_fn=_linear),
        _row("Linear", (7, 5, False), (4, 7), "no_bias", reference_fn=_linear),
        _row("Linear", (7, 5), (7,), "no_batch_dim", reference_fn=_linear),
        _row("Linear", (7, 5), (2, 3, 7), "3d", reference_fn=_linear),
        simple("Sigmoid", lambda x: 1 / (1 + (-x).exp())), simple("Tanh", lambda x: 2 / (1 + (-2 * x).exp()) - 1),
        simple("Sigmoid", lambda x: 1 / (1 + (-x).exp()), given=(), desc="scalar"),
        simple("ReLU", lambda x: x * (x > 0), check_inplace=True),
        simple("ReLU6", lambda x: x.clamp(0, 6), check_inplace=True),
        simple("Hardtanh", lambda x: x.clamp(-1, 1), check_inplace=True),
        simple("Hardtanh", lambda x: x.clamp(-0.5, 2), -0.5, 2.0, desc="limits", check_inplace=True),
        simple("ELU", lambda x: aten.where(x > 0, x, 2 * (x.exp() - 1)), 2.0, check_inplace=True),
        simple("CELU", lambda x: aten.where(x > 0, x, 2 * ((x / 2).exp() - 1)), 2.0, check_inplace=True),
        simple("LeakyReLU", lambda x: aten.where(x > 0, x, 0.25 * x), 0.25, check_inplace=True),
        simple("Threshold", lambda x: aten.where(x > 2, x, aten.full_like(x, 1.0)), 2.0, 1.0, check_inplace=True),
        simple("SiLU", lambda x: x / (1 + (-x).exp()), check_inplace=True),
        simple("Softplus", lambda x: (1 + x.exp()).log()),
        simple("Softplus", lambda x: (1 + (2 * x).exp()).log() / 2, 2, desc="beta"),
        simple("Softsign", lambda x: x / (1 + x.abs())), simple("Tanhshrink", lambda x: x - x.tanh()),
        simple("Softshrink", lambda x: x.sign() * (x.abs() - 0.5).clamp(min=0)),
        simple("Hardshrink", lambda x: x * (x.abs() > 0.5)),
        simple("LogSigmoid", lambda x: -(1 + (-x).exp()).log()),
        _row("PReLU", (4,), (3, 4, 5), reference_fn=lambda x, p, m: aten.where(x > 0, x, p[0].reshape(4, 1) * x)),
        simple("Softmax", lambda x: x.exp() / x.exp().sum(1, True), 1),
        simple("LogSoftmax", lambda x: x - x.exp().sum(1, True).log(), 1),
        simple("Softmin", lambda x: (-x).exp() / (-x).exp().sum(1, True), 1),
        simple("Softmax2d", lambda x: x.exp() / x.exp().sum(1, True), given=(1, 3, 4, 5)),
        simple("GLU", lambda x: x[:, :2] / (1 + (-x[:, 2:]).exp()), 1),
        simple("Flatten", lambda x: x.reshape(3, 20)), simple("Flatten", lambda x: x.reshape(12, 5), 0, 1, desc="dims"),
        simple("Unflatten", lambda x: x.reshape(3, 2, 2, 5), 1, (2, 2)),
        simple("Identity", lambda x: x),
        _row("Bilinear", (2, 3, 4), lambda: (aten.randn((5, 2)), aten.randn((5, 3))),
             reference_fn=lambda x, p, m: aten.einsum("bi,kij,bj->bk", [x[0], p[0], x[1]]) + p[1]),
        _row("CosineSimilarity", (), lambda: (aten.rand((5, 3)), aten.rand((5, 3))),
             reference_fn=lambda x, p, m: (x[0] * x[1]).sum(1) / (x[0].norm(dim=1) * x[1].norm(dim=1))),
        _row("PairwiseDistance", (2.0, 0.0), lambda: (aten.randn((5, 3)), aten.randn((5, 3))),
             reference_fn=lambda x, p, m: ((x[0] - x[1]) ** 2).sum(1).sqrt()),
    ]


def _normalizations() -> list[Row]:
    rows = [
        _row("LayerNorm", ([5],), (4, 5), "1d", reference_fn=_layer_norm),
        _row("LayerNorm", ([4, 5], 1e-3), (3, 4, 5), "2d", reference_fn=_layer_norm),
        _row("LayerNorm", ([4, 5], 1e-5, False), (3, 4, 5), "no_affine", reference_fn=_layer_norm),
        _row("GroupNorm", (3, 6, 1e-3), (4, 6, 5), "1d", reference_fn=_group_norm),
        _row("GroupNorm", (2, 4, 1e-5, False), (2, 4, 2, 3), "2d_no_affine", reference_fn=_group_norm),
        _row("LocalResponseNorm", (3,), (1, 5, 7), "1d"),
        _row("CrossMapLRN2d", (3, 5e-3, 1e-3, 2), (2, 3, 4, 4), check_gradgrad=False, check_batched_grad=False),
    ]
    for dims, size in ((1, (4, 3)), (1, (4, 3, 5)), (2, (2, 3, 4, 4)), (3, (2, 3, 2, 3, 3))):
        kind = f"{len(size)}d_input"
        rows += [_row(f"BatchNorm{dims}d", (3,), size, kind, reference_fn=_batch_norm),
                 _row(f"BatchNorm{dims}d", (3, 1e-3, None), size, f"{kind}_average", reference_fn=_batch_norm),
                 _row(f"BatchNorm{dims}d", (3, 1e-3, 0.3, False), size, f"{kind}_not_affine",
                      reference_fn=_batch_norm),
                 _row(f"BatchNorm{dims}d", (3, 1e-3, 0.3, True, False), size, f"{kind}_not_tracking")]
        if len(size) > 2:
            rows += [_row(f"InstanceNorm{dims}d", (3, 1e-3, 0.3, affine, tracking), size, f"{kind}_{desc}")
                     for affine, tracking, desc in ((False, False, "plain"), (True, True, "affine_tracking"))]
    return [{**row, "check_eval": True} for row in rows]


def _convolutions() -> list[Row]:
    rows = []
    for dims, size in ((1, (2, 4, 7)), (2, (2, 2, 5, 6)), (3, (1, 2, 4, 3, 4))):
        channels = size[1]
        rows += [
            _row(f"Conv{dims}d", (channels, 3, 2), size, reference_fn=_convolved),
            _row(f"Conv{dims}d", (channels, 3, 2, 2), size, "stride", reference_fn=_convolved),
            _row(f"Conv{dims}d", (channels, 3, 2, 1, 0, 1, 1, False), size, "no_bias", reference_fn=_convolved),
            _row(f"Conv{dims}d", (channels, 4, 2, 1, 1, 1, 2), size, "pad_groups"),
            _row(f"Conv{dims}d", (channels, 3, 2, 1, "same", 2), size, "pad_same_dilated"),
            _row(f"Conv{dims}d", (channels, 3, 2, 1, 1, 1, 1, True, "circular"), size, "circular"),
            _row(f"Conv{dims}d", (channels, 3, 2), size[1:], "no_batch_dim", reference_fn=single_batch_reference_fn),
            _row(f"ConvTranspose{dims}d", (channels, 3, 2, 2, 1, 1), size),
            _row(f"ConvTranspose{dims}d", (channels, 2, 2, 1, 0, 0, 2, False, 2), size, "groups_dilated"),
            _row(f"ConvTranspose{dims}d", (channels, 3, 2), size[1:], "no_batch_dim",
                 reference_fn=single_batch_reference_fn),
            _row("Unfold", (2, 1, 1, 2), size) if dims == 2 else
            _row(f"LazyConv{dims}d", (3, 2), size, "made_by_its_first_call", pickle=False,
                 constructor=_first_called(f"LazyConv{dims}d", size)),
        ]
    return rows


def _first_called(name: str, size: tuple[int, ...]) -> Callable[..., nn.Module]:
    """A lazy module that has seen an input: tests look at its parameters."""
    def constructor(*args: Any) -> nn.Module:
        made: nn.Module = getattr(nn, name)(*args)
        made(aten.zeros(size))
        return made

    constructor.__name__ = name
    return constructor


def _windows() -> list[Row]:
    """Pooling and padding: of a batch, and of one sample."""
    sizes = {1: (2, 3, 8), 2: (2, 3, 6, 7), 3: (1, 2, 4, 4, 5)}
    rows = [_row("Fold", ((3, 3), (2, 2)), (2, 8, 4)), _row("PixelShuffle", (2,), (1, 8, 2, 3)),
            _row("PixelUnshuffle", (2,), (1, 2, 4, 6)), _row("ChannelShuffle", (2,), (2, 4, 3, 3)),
            _row("Upsample", ((6, 5), None, "bilinear", True), (1, 2, 3, 4), "bilinear"),
            _row("Upsample", (None, 2), (1, 2, 4), "nearest")]
    for dims, size in sizes.items():
        whole = tuple(range(-dims, 0))
        made: list[tuple[str, tuple[Any, ...], str, Any]] = [
            ("AvgPool", (2,), "", None), ("AvgPool", (2, 1, 1), "stride_pad", None), ("MaxPool", (2,), "", None),
            ("MaxPool", (2, 1, 1), "stride_pad", None),
            ("AdaptiveAvgPool", (1,), "one", lambda x, p, m, whole=whole: x.mean(whole, True)),
            ("AdaptiveMaxPool", (1,), "one", lambda x, p, m, whole=whole: x.amax(whole, True)),
            ("AdaptiveAvgPool", (3,), "", None), ("AdaptiveMaxPool", (3,), "", None), ("LPPool", (2, 2), "", None),
            ("ConstantPad", (1, 2.0), "", None), ("ZeroPad", (1,), "", None), ("ReflectionPad", (1,), "", None),
            ("ReplicationPad", (1,), "", None), ("CircularPad", (1,), "", None)]
        for kind, options, desc, reference in made:
            rows += [_row(f"{kind}{dims}d", options, size, desc, reference_fn=reference),
                     _row(f"{kind}{dims}d", options, size[1:], f"{desc}_no_batch_dim".lstrip("_"),
                          reference_fn=single_batch_reference_fn)]
    return rows


def _lookups_and_sequences() -> list[Row]:
    return [
        _row("Embedding", (4, 3), _classes((2, 5), 4), reference_fn=lambda x, p, m: p[0][x], jacobian_input=False),
        _row("Embedding", (4, 3, None, None, 2.0, False, True), _classes((2, 5), 4), "sparse", check_gradgrad=False,
             has_sparse_gradients=True, jacobian_input=False),
        _row("EmbeddingBag", (4, 3), _classes((2, 5), 4), "mean", check_gradgrad=False, jacobian_input=False,
             reference_fn=lambda x, p, m: p[0][x].mean(1)),
        _row("EmbeddingBag", (4, 3, None, 2.0, False, "sum"), _classes((2, 5), 4), "sum", check_gradgrad=False,
             jacobian_input=False, reference_fn=lambda x, p, m: p[0][x].sum(1)),
        _row("EmbeddingBag", (4, 3, None, 2.0, False, "max"), _classes((2, 5), 4), "max", check_gradgrad=False,
             jacobian_input=False, reference_fn=lambda x, p, m: p[0][x].amax(1)),
        _row("RNNCell", (4, 3), (2, 4), reference_fn=lambda x, p, m: aten.tanh(
            aten.matmul(x, p[0].t()) + p[2] + p[3])),
        _row("GRUCell", (4, 3), (2, 4)),
        _row("TransformerEncoderLayer", (4, 2, 8, 0.0), (2, 3, 4), gradcheck_fast_mode=True, check_gradgrad=False),
        _row("TransformerEncoderLayer", (4, 2, 8, 0.0, F.gelu), (2, 3, 4), "gelu", gradcheck_fast_mode=True,
             check_gradgrad=False),
    ]


def first_rows() -> list[Row]:
    """The rows of modules that a formula describes."""
    return _ready()


def further_rows() -> list[Row]:
    """The rows of all other modules, and of losses as functions that give every element's."""
    return [*_normalizations(), *_convolutions(), *_windows(), *_lookups_and_sequences(), *_unreduced()]


# -- losses ------------------------------------------------------------------------------------------------------------


def _unreduced() -> list[Row]:
    """Loss functions without a reduction, as modules of the input."""
    def row(name: str, function: Any, given: Any, target: Any, **options: Any) -> Row:
        reference: Any = losses.loss_reference_fns.get(name)
        # The target is drawn once: a function of the input alone is what is checked.
        aim = target()
        return {
            "fullname": f"{name}_no_reduce{'_'.join(['', *options])}", "pickle": False, "default_dtype": float64,
            "constructor": wrap_functional(lambda x: function(x, _like(aim, x), reduction="none", **options)),
            "reference_fn": reference and (lambda x, *rest: reference(x, _like(aim, x), reduction="none", **options)),
            "input_fn" if callable(given) else "input_size": given, "check_gradgrad": "Margin" not in name}

    return [
        row("L1Loss", F.l1_loss, (2, 3, 4), lambda: aten.randn((2, 3, 4))),
        row("MSELoss", F.mse_loss, (2, 3, 4), lambda: aten.randn((2, 3, 4))),
        row("SmoothL1Loss", F.smooth_l1_loss, (2, 3, 4), lambda: aten.randn((2, 3, 4))),
        row("SmoothL1Loss", F.smooth_l1_loss, (2, 3, 4), lambda: aten.randn((2, 3, 4)), beta=0.5),
        row("HuberLoss", F.huber_loss, (2, 3, 4), lambda: aten.randn((2, 3, 4)), delta=0.5),
        row("BCELoss", F.binary_cross_entropy, lambda: aten.rand((5, 3)) * 0.8 + 0.1, lambda: aten.rand((5, 3))),
        row("BCEWithLogitsLoss", F.binary_cross_entropy_with_logits, (5, 3), lambda: aten.rand((5, 3))),
        row("KLDivLoss", F.kl_div, lambda: aten.rand((5, 3)).log(), _positive(5, 3)),
        row("KLDivLoss", F.kl_div, lambda: aten.rand((5, 3)).log(), _positive(5, 3), log_target=True),
        row("NLLLoss", F.nll_loss, (5, 4), _classes((5,), 4)),
        row("NLLLoss", F.nll_loss, (5, 4), _classes((5,), 4), ignore_index=2),
        row("NLLLossNd", F.nll_loss, (2, 4, 3, 3), _classes((2, 3, 3), 4)),
        row("CrossEntropyLoss", F.cross_entropy, (5, 4), _classes((5,), 4)),
        row("MultiLabelMarginLoss", F.multilabel_margin_loss, (5, 4), _classes((5, 4), 4)),
        row("MultiMarginLoss", F.multi_margin_loss, (5, 4), _classes((5,), 4)),
        row("MultiMarginLoss", F.multi_margin_loss, (5, 4), _classes((5,), 4), p=2),
        row("MultiMarginLoss", F.multi_margin_loss, (4,), _classes((1,), 4), margin=0.5),
        row("HingeEmbeddingLoss", F.hinge_embedding_loss, (5,), _signs(5)),
        row("SoftMarginLoss", F.soft_margin_loss, (5, 3), _signs(5, 3)),
    ]


def _like(aim: Tensor, x: Any) -> Any:
    """A target in the type of the input, if it is not a class."""
    return aim.to(x.dtype) if aim.dtype.is_floating_point else aim


def _named(reference: Reference, *options: str) -> Reference:
    """A reference of a loss with the options that the module has."""
    def of_module(input: Any, target: Any, *rest: Any) -> Any:
        module = rest[-1]
        given = input if isinstance(input, tuple) else (input,)
        return reference(*given, target, *rest[:-1], reduction=losses.get_reduction(module),
                         **{name: getattr(module, name) for name in options})

    return of_module


def _mean_of(formula: Reference) -> Reference:
    """A loss from its formula of single elements."""
    def reference(*given: Any, reduction: str, **options: Any) -> Any:
        made = formula(*given, **options)
        return {"none": lambda: made, "sum": made.sum, "mean": made.mean}[reduction]()

    return reference


def _bce(x: Any, t: Any, weight: Any = None) -> Any:
    made = -(t * x.log() + (1 - t) * (1 - x).log())
    return made if weight is None else made * weight


def loss_rows() -> list[Row]:
    """The rows of losses, each with the mean and, by `check_sum_reduction`, with the sum."""
    def row(name: str, reference: Reference | None, given: Any, target: Any, *made: Any, options: tuple[str, ...] = (),
            desc: str = "", **facts: Any) -> Row:
        made_of = {} if reference is None else {"reference_fn": _named(reference, *options)}
        return {**_row(name, made, given, desc), "target_fn" if callable(target) else "target_size": target,
                "check_sum_reduction": True, **made_of, **facts}

    def pair(*shape: int) -> Callable[[], Any]:
        return lambda: (aten.randn(shape), aten.randn(shape))

    def weights(count: int) -> Any:
        return aten.arange(1, count + 1, dtype=float64) / count

    fns: dict[str, Any] = dict(losses.loss_reference_fns)
    logits = F.logsigmoid
    sizes = (4, 5)
    return [
        row("L1Loss", _mean_of(lambda x, t: (x - t).abs()), sizes, sizes),
        row("L1Loss", _mean_of(lambda x, t: (x - t).abs()), (), (), desc="scalar"),
        row("MSELoss", _mean_of(lambda x, t: (x - t) ** 2), sizes, sizes),
        row("MSELoss", _mean_of(lambda x, t: (x - t) ** 2), (), (), desc="scalar"),
        row("SmoothL1Loss", fns["SmoothL1Loss"], sizes, sizes, options=("beta",)),
        row("HuberLoss", fns["HuberLoss"], sizes, sizes, options=("delta",)),
        row("BCELoss", _mean_of(_bce), lambda: aten.rand(sizes) * 0.8 + 0.1, lambda: aten.rand(sizes)),
        row("BCELoss", _mean_of(_bce), lambda: aten.rand(sizes) * 0.8 + 0.1, lambda: aten.rand(sizes), weights(5),
            options=("weight",), desc="weights"),
        row("BCEWithLogitsLoss", _mean_of(lambda x, t: -(t * logits(x) + (1 - t) * logits(-x))), sizes,
            lambda: aten.rand(sizes)),
        row("BCEWithLogitsLoss", _mean_of(lambda x, t, weight: -weight * (t * logits(x) + (1 - t) * logits(-x))),
            sizes, lambda: aten.rand(sizes), weights(5), options=("weight",), desc="weights"),
        row("KLDivLoss", fns["KLDivLoss"], lambda: aten.rand(sizes).log(), _positive(*sizes)),
        row("KLDivLoss", lambda x, t, reduction, log_target: fns["KLDivLoss"](x, t, reduction, log_target),
            lambda: aten.rand(sizes).log(), lambda: aten.rand(sizes).log(), desc="log_target", options=("log_target",),
            constructor=_with(nn.KLDivLoss, log_target=True)),
        row("NLLLoss", fns["NLLLoss"], sizes, _classes((4,), 5)),
        row("NLLLoss", fns["NLLLoss"], sizes, _classes((4,), 5), weights(5), options=("weight",), desc="weights"),
        row("NLLLoss", fns["NLLLoss"], sizes, _classes((4,), 5), None, None, 2, options=("ignore_index",),
            desc="ignore_index"),
        row("NLLLoss", fns["NLLLossNd"], (2, 5, 3, 2), _classes((2, 3, 2), 5), desc="2d"),
        row("NLLLoss", fns["NLLLossNd"], (2, 5, 2, 1, 3, 2), _classes((2, 2, 1, 3, 2), 5), desc="higher_dim"),
        row("CrossEntropyLoss", fns["CrossEntropyLoss"], sizes, _classes((4,), 5)),
        row("CrossEntropyLoss", fns["CrossEntropyLoss"], sizes, _classes((4,), 5), weights(5), options=("weight",),
            desc="weights"),
        row("CrossEntropyLoss", fns["CrossEntropyLoss"], (2, 5, 3, 2), _classes((2, 3, 2), 5), desc="2d"),
        row("CrossEntropyLoss", fns["CrossEntropyLoss"], sizes, lambda: aten.softmax(aten.randn(sizes), 1),
            desc="probabilities", check_gradgrad=False),
        row("HingeEmbeddingLoss", fns["HingeEmbeddingLoss"], (6,), _signs(6), options=("margin",)),
        row("HingeEmbeddingLoss", fns["HingeEmbeddingLoss"], (6,), _signs(6), 0.5, options=("margin",), desc="margin"),
        row("SoftMarginLoss", fns["SoftMarginLoss"], sizes, _signs(*sizes)),
        row("MultiLabelMarginLoss", fns["MultiLabelMarginLoss"], sizes, _classes(sizes, 5), check_gradgrad=False),
        row("MultiLabelMarginLoss", fns["MultiLabelMarginLoss"], (5,), _classes((5,), 5), check_gradgrad=False,
            desc="1d"),
        row("MultiLabelSoftMarginLoss", None, sizes, lambda: aten.rand(sizes).round()),
        row("MultiMarginLoss", fns["MultiMarginLoss"], sizes, _classes((4,), 5), options=("p", "margin"),
            check_gradgrad=False),
        row("MultiMarginLoss", fns["MultiMarginLoss"], sizes, _classes((4,), 5), 2, 0.5, weights(5),
            options=("p", "margin", "weight"), check_gradgrad=False, desc="p_margin_weights"),
        row("CosineEmbeddingLoss", fns["CosineEmbeddingLoss"], pair(*sizes), _signs(4), 0.3, options=("margin",)),
        row("MarginRankingLoss", fns["MarginRankingLoss"], pair(6), _signs(6), 0.5, options=("margin",)),
        row("PoissonNLLLoss", _mean_of(lambda x, t: x.exp() - t * x), sizes, _positive(*sizes)),
        row("PoissonNLLLoss", _mean_of(lambda x, t: x - t * (x + 1e-8).log()), _positive(*sizes), _positive(*sizes),
            False, desc="not_log_input"),
    ]


def _with(cls: Any, **options: Any) -> Callable[..., nn.Module]:
    """A constructor with some options given."""
    def constructor(*args: Any, **kwargs: Any) -> nn.Module:
        made: nn.Module = cls(*args, **options, **kwargs)
        return made

    constructor.__name__ = cls.__name__
    return constructor
