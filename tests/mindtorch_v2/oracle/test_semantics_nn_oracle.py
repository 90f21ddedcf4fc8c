"""Layers and functions of nn beside PyTorch's, generated: memory of their own, memory formats, and names.

Every function is called where nothing moves (a factor of 1, the size it has) on dense, expanded and channels-last
input: the result shares memory with the input exactly where PyTorch's does. Every layer for images says how its result
and its gradient lie in memory.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import mindtorch_v2 as ours

theirs = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")
BOTH = (ours, theirs)

IN_PLACE: dict[str, Callable[[Any, Any, Any], Any]] = {
    "pixel_shuffle": lambda t, f, x: f.pixel_shuffle(x, 1),
    "pixel_unshuffle": lambda t, f, x: f.pixel_unshuffle(x, 1),
    "channel_shuffle 1": lambda t, f, x: f.channel_shuffle(x, 1),
    "channel_shuffle all": lambda t, f, x: f.channel_shuffle(x, 4),
    **{f"interpolate {mode}": lambda t, f, x, mode=mode: f.interpolate(x, size=x.shape[2:], mode=mode)
       for mode in ("nearest", "nearest-exact", "bilinear", "bicubic", "area")},
    "interpolate antialias": lambda t, f, x: f.interpolate(x, size=x.shape[2:], mode="bilinear", antialias=True),
    **{f"pad {mode}": lambda t, f, x, mode=mode: f.pad(x, (0, 0, 0, 0), mode=mode)
       for mode in ("constant", "reflect", "replicate", "circular")},
    "pad nothing": lambda t, f, x: f.pad(x, ()),
    "crop": lambda t, f, x: f.pad(x, (-1, 0)),
    "max_pool2d": lambda t, f, x: f.max_pool2d(x, 1),
    "avg_pool2d": lambda t, f, x: f.avg_pool2d(x, 1),
    "adaptive_avg_pool2d": lambda t, f, x: f.adaptive_avg_pool2d(x, (None, None)),
    "adaptive_max_pool2d": lambda t, f, x: f.adaptive_max_pool2d(x, x.shape[2:]),
    "unfold": lambda t, f, x: f.unfold(x, 1),
    "fold": lambda t, f, x: f.fold(x.reshape(2, 4, 25), (5, 5), 1),
    "dropout": lambda t, f, x: f.dropout(x, 0.0),
    "dropout off": lambda t, f, x: f.dropout(x, 0.5, False),
    "alpha_dropout": lambda t, f, x: f.alpha_dropout(x, 0.0, True),
    "hardtanh": lambda t, f, x: f.hardtanh(x, -100, 100),
    "threshold": lambda t, f, x: f.threshold(x, -100, 0),
    "leaky_relu": lambda t, f, x: f.leaky_relu(x, 1.0),
    "identity": lambda t, f, x: t.nn.Identity()(x),
    "flatten": lambda t, f, x: t.nn.Flatten()(x),
    "unflatten": lambda t, f, x: t.nn.Unflatten(1, (2, 2))(x),
    "embedding": lambda t, f, x: f.embedding(t.arange(5), x[0, 0]),
    "embedding_bag": lambda t, f, x: f.embedding_bag(t.arange(5).view(5, 1), x[0, 0], mode="max"),
    "nll_loss": lambda t, f, x: f.nll_loss(x, t.zeros(2, 5, 5).long(), reduction="none"),
    "softmax": lambda t, f, x: f.softmax(x[:, :1], 1),
    "packed": lambda t, f, x: t.nn.utils.rnn.pack_padded_sequence(x[0, 0].view(5, 1, 5), [5]).data,
    "padded": lambda t, f, x: t.nn.utils.rnn.pad_packed_sequence(
        t.nn.utils.rnn.PackedSequence(x[0, 0], t.ones(5).long()))[0],
    "vector": lambda t, f, x: t.nn.utils.parameters_to_vector([x]),
}
INPUTS: dict[str, Callable[[Any], Any]] = {
    "dense": lambda t: t.arange(200.0).view(2, 4, 5, 5),
    "expanded": lambda t: t.arange(4.0).view(1, 4, 1, 1).expand(2, 4, 5, 5),
    "channels last": lambda t: t.arange(200.0).view(2, 4, 5, 5).contiguous(memory_format=t.channels_last),
}


@pytest.mark.parametrize("layout", INPUTS)
@pytest.mark.parametrize("name", IN_PLACE)
def test_memory_is_shared_where_it_is_in_pytorch(name: str, layout: str) -> None:
    def run(torch: Any) -> Any:
        x = INPUTS[layout](torch)
        try:
            made = IN_PLACE[name](torch, torch.nn.functional, x)
        except RuntimeError:
            return "refused"
        overlaps = any(step == 0 for step, n in zip(made.stride(), made.shape) if n > 1)
        return made.untyped_storage().data_ptr() == x.untyped_storage().data_ptr(), overlaps, made is x

    assert run(ours) == run(theirs)


LAYERS: dict[str, Callable[[Any], Any]] = {
    **{text: lambda nn, text=text: eval(f"nn.{text}", {"nn": nn}) for text in (
        "MaxPool2d(2)", "AvgPool2d(2)", "AdaptiveAvgPool2d(2)", "AdaptiveMaxPool2d(2)", "AdaptiveAvgPool2d(1)",
        "BatchNorm2d(3)", "InstanceNorm2d(3)", "GroupNorm(3, 3)", "Conv2d(3, 4, 3)", "ConvTranspose2d(3, 4, 3)",
        "Upsample(scale_factor=2)", "Upsample(scale_factor=2, mode='bilinear')", "ReLU()", "Dropout()",
        "LPPool2d(2, 2)",
        "Softmax2d()", "GELU()", "Hardtanh()", "ZeroPad2d(1)", "ReflectionPad2d(1)", "ReplicationPad2d(1)",
        "CircularPad2d(1)", "Threshold(0, 0)", "LayerNorm(6)", "PixelShuffle(1)", "PixelUnshuffle(2)",
        "ChannelShuffle(3)", "ELU()", "Softplus()", "Mish()", "Hardswish()", "Softsign()", "Unfold(2)")},
    **{text: lambda nn, text=text: eval(f"nn.{text}", {"nn": nn}) for text in (
        "MaxPool3d(2)", "AvgPool3d(2)", "AdaptiveAvgPool3d(2)", "AdaptiveMaxPool3d(2)", "AdaptiveAvgPool3d(1)",
        "BatchNorm3d(3)", "Conv3d(3, 4, 3)", "ConvTranspose3d(3, 4, 3)", "Upsample(scale_factor=2, mode='trilinear')",
        "ConstantPad3d(1, 0.0)", "ReplicationPad3d(1)", "ReflectionPad3d(1)")},
}


@pytest.mark.parametrize("layer", LAYERS)
def test_memory_formats_of_results_and_gradients(layer: str) -> None:
    volume = "3d" in layer or "trilinear" in layer

    def run(torch: Any) -> Any:
        order = torch.channels_last_3d if volume else torch.channels_last
        x = torch.randn(2, 3, 6, 6, *[6] * volume).contiguous(memory_format=order).requires_grad_()
        made = LAYERS[layer](torch.nn)(x)
        found = [made.stride()]
        pulls = [torch.ones(()).expand(made.shape)]
        if made.ndim == x.ndim:
            pulls.append(torch.ones(made.shape).contiguous(memory_format=order))
        for pull in pulls:
            grad, = torch.autograd.grad(made, x, pull, retain_graph=True)
            found.append(grad.stride())
        return found

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert run(ours) == run(theirs)


# Images with their channels last, of which there is a part.
WINDOWS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda x: x[:, :, ::2], "columns": lambda x: x[..., 1:], "channels": lambda x: x[:, 1:4],
    "image": lambda x: x[1:],
}
OF_WINDOWS: dict[str, Callable[[Any, Any, Any], Any]] = {
    **{f"{mode} to {size}": lambda t, f, x, mode=mode, size=size: f.interpolate(x, size=size, mode=mode)
       for mode in ("nearest", "nearest-exact", "bilinear", "bicubic", "area") for size in ((7, 8), (3, 2))},
    **{f"{mode} bytes": lambda t, f, x, mode=mode: f.interpolate(x.byte(), size=(7, 8), mode=mode, antialias=True)
       for mode in ("bilinear", "bicubic")},
    "max_pool2d": lambda t, f, x: f.max_pool2d(x, 2),
    "avg_pool2d": lambda t, f, x: f.avg_pool2d(x, 2),
    "adaptive_max_pool2d": lambda t, f, x: f.adaptive_max_pool2d(x, 2),
    "conv2d": lambda t, f, x: f.conv2d(x, t.ones(2, x.shape[1], 2, 2)),
    "batch_norm": lambda t, f, x: f.batch_norm(x, None, None, training=True),
    "group_norm": lambda t, f, x: f.group_norm(x, 1),
    "pad": lambda t, f, x: f.pad(x, (1, 1, 1, 1)),
    "pad reflect": lambda t, f, x: f.pad(x, (1, 1, 1, 1), mode="reflect"),
}


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", OF_WINDOWS)
def test_parts_of_images_keep_their_memory_format(name: str, window: str) -> None:
    def run(torch: Any) -> Any:
        x = torch.arange(240.0).view(2, 4, 6, 5).contiguous(memory_format=torch.channels_last)
        made = OF_WINDOWS[name](torch, torch.nn.functional, WINDOWS[window](x))
        return made.stride(), made.flatten().tolist()

    strides, values = run(theirs)
    assert run(ours) == (strides, pytest.approx(values, rel=1e-4, abs=1e-4))


# Ops of PyTorch's module that are kernels of its libraries, or there for its own tests.
NOT_HERE = {"_conv_depthwise2d", "_pad_enum", "conv_depthwise3d", "mkldnn_linear", "mkldnn_reorder_conv2d_weight",
            "mkldnn_reorder_conv3d_weight", "slow_conv3d", "slow_conv_dilated2d", "slow_conv_dilated3d",
            "slow_conv_transpose2d", "slow_conv_transpose3d", "thnn_conv2d"}
OPS = sorted(name for name in dir(theirs._C._nn) if not name.startswith(("__", "_test_")) and name not in NOT_HERE)


@pytest.mark.parametrize("name", OPS)
def test_ops_behind_functions_exist(name: str) -> None:
    assert callable(getattr(ours._C._nn, name))


@pytest.mark.parametrize(("name", "call"), [
    ("avg_pool2d", lambda op, x, out: op(x, 2, out=out)), ("mse_loss", lambda op, x, out: op(x, x + 1, out=out)),
    ("adaptive_avg_pool2d", lambda op, x, out: op(x, 2, out=out)), ("elu", lambda op, x, out: op(x, out=out)),
    ("log_sigmoid", lambda op, x, out: op(x, out=out)), ("silu", lambda op, x, out: op(x, out=out)),
    ("nll_loss", lambda op, x, out: op(x[0, 0], (x[0, 0, 0] * 0).long(), out=out)),
    ("upsample_nearest2d", lambda op, x, out: op(x, (8, 8), out=out)),
    ("reflection_pad2d", lambda op, x, out: op(x, (1, 1, 1, 1), out=out))])
def test_ops_behind_functions_write_into_out(name: str, call: Any) -> None:
    found = []
    for torch in BOTH:
        x, out = torch.arange(32.0).view(1, 2, 4, 4), torch.empty(0)
        made = call(getattr(torch._C._nn, name), x, out)
        assert made is out
        found.append(out.flatten().tolist())
    assert found[0] == pytest.approx(found[1], rel=1e-5)


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss",
                                  "binary_cross_entropy"])
def test_losses_behind_functions_are_not_reduced(name: str) -> None:
    for given in ((), (0,), (1,), (2,)):
        given = (None, *given) if name == "binary_cross_entropy" and given else given
        found = [getattr(torch._C._nn, name)(torch.tensor([0.5, 0.2]), torch.tensor([1.0, 0.0]), *given).tolist()
                 for torch in BOTH]
        assert found[0] == pytest.approx(found[1], rel=1e-5)


def test_losses_of_the_main_namespace_are_not_reduced() -> None:
    for torch in BOTH:
        assert torch.binary_cross_entropy_with_logits(torch.ones(2), torch.ones(2)).shape == (2,)
        scores = torch.zeros(3, 2, 4).log_softmax(2)
        lengths = torch.tensor([3, 3]), torch.tensor([1, 1])
        assert torch.ctc_loss(scores, torch.tensor([[1], [2]]), *lengths).shape == (2,)


NAMES = {
    "nn.functional": "_canonical_mask _get_softmax_dim _in_projection _in_projection_packed _list_with_default "
                     "_mha_shape_check _none_or_dtype _pair _single _triple _unpool_output_size _verify_batch_size "
                     "_verify_spatial_size boolean_dispatch has_torch_function has_torch_function_unary Tensor",
    "nn.modules.activation": "Parameter",
    "nn.modules.batchnorm": "LazyModuleMixin Module Parameter UninitializedBuffer",
    "nn.modules.conv": "Parameter _pair _reverse_repeat_tuple _single _triple",
    "nn.modules.linear": "Parameter UninitializedParameter",
    "nn.modules.padding": "_pair _quadruple",
    "nn.modules.pooling": "_pair _triple",
    "nn.modules.rnn": "Parameter",
    "nn.modules.transformer": "_detect_is_causal_mask _generate_square_subsequent_mask _get_clones _get_seq_len",
    "nn.modules.module": "_global_backward_hooks _global_backward_pre_hooks _global_forward_hooks "
                         "_global_forward_pre_hooks _has_any_global_hook",
    "optim.optimizer": "_device_dtype_check_for_fused _disable_dynamo_if_unsupported _get_scalar_dtype _get_value "
                       "_global_optimizer_post_hooks _global_optimizer_pre_hooks _stack_if_compiling _to_scalar "
                       "_view_as_real",
    "optim.adam": "Optimizer _get_value _use_grad_for_differentiable _view_as_real adam _single_tensor_adam",
    "optim.sgd": "Optimizer _default_to_fused_or_foreach _to_scalar sgd",
    "optim.lr_scheduler": "_enable_get_lr_call _format_param _initial_mode _param_groups_val_list "
                          "_update_param_group_val _warn_get_lr_called_within_step",
}


def test_output_padding_of_transposed_convolutions() -> None:
    found = []
    for torch in BOTH:
        layer = torch.nn.ConvTranspose2d(1, 1, 3, stride=3, padding=1)
        rest = (layer.stride, layer.padding, layer.kernel_size, 2, layer.dilation)
        found.append([list(layer._output_padding(torch.ones(1, 1, 4, 4), size, *rest))
                      for size in (None, (10, 11), (1, 1, 12, 10))])
    assert found[0] == found[1]


@pytest.mark.parametrize(("module", "name"), [(m, n) for m, names in NAMES.items() for n in names.split()])
def test_names_that_libraries_import(module: str, name: str) -> None:
    for torch in BOTH:
        assert hasattr(importlib.import_module(f"{torch.__name__}.{module}"), name), torch.__name__
