"""Scaled dot-product and multi-head attention against PyTorch."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

from harness import assert_same, check, check_error, data, flat, make, ours, theirs, values, weights  # noqa: E402

INF = float("inf")
MASKS = {
    "none": None,
    "bool": values([[True, False, True], [False, False, False], [True, True, False]], "bool"),
    "float": values([[0.0, -1.0, 2.0], [-INF, -INF, -INF], [0.5, -INF, 0.0]]),
    "row": values([[0.0, -1.0, 2.0]]),
    "four": data(2, 1, 3, 3),
    "three": data(2, 3, 3),
}


def attend(t: Any, *args: Any, **kwargs: Any) -> Any:
    return t.nn.functional.scaled_dot_product_attention(*args, **kwargs)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("shape", [(2, 2, 3, 4), (2, 3, 4), (3, 4)], ids=str)
def test_masks(mask: str, is_causal: bool, shape: tuple[int, ...]) -> None:
    if is_causal and mask != "none" and (len(shape) != 4 or mask == "three"):
        pytest.skip("not allowed by PyTorch either")
    if mask in ("four", "three") and len(shape) < 4:
        pytest.skip("does not broadcast")

    def function(t: Any, q: Any, k: Any, v: Any) -> Any:
        made = make(t, MASKS[mask], False) if MASKS[mask] is not None else None
        return attend(t, q, k, v, made, is_causal=is_causal)

    # The fused form has no second gradient in PyTorch.
    fused = len(shape) == 4 and mask != "three"
    check(function, data(*shape), data(*shape, seed=1), data(*shape, seed=2), second=not fused)


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(1, 2, 3, 4), (2, 3, 4)], ids=str)
def test_dtypes(dtype: str, shape: tuple[int, ...]) -> None:
    check(lambda t, q, k, v: attend(t, q, k, v), *[data(*shape, dtype=dtype, seed=i) for i in range(3)], second=False,
          tolerance=None if dtype == "float64" else 3e-2)


@pytest.mark.parametrize("is_causal", [False, True])
def test_cross_attention_and_scale(is_causal: bool) -> None:
    check(lambda t, q, k, v: attend(t, q, k, v, is_causal=is_causal, scale=0.3), data(2, 2, 3, 4), data(2, 2, 5, 4),
          data(2, 2, 5, 4, seed=1), second=False)
    check(lambda t, q, k, v: attend(t, q, k, v, is_causal=is_causal, scale=0.3), data(2, 2, 3, 4), data(2, 2, 5, 4),
          data(2, 2, 5, 6, seed=1))


@pytest.mark.parametrize("mask", ["none", "float", "four"])
@pytest.mark.parametrize("shape", [(2,), ()], ids=str)
def test_grouped_queries(mask: str, shape: tuple[int, ...]) -> None:
    if mask == "four" and not shape:
        pytest.skip("does not broadcast")

    def function(t: Any, q: Any, k: Any, v: Any) -> Any:
        made = make(t, MASKS[mask], False) if MASKS[mask] is not None else None
        return attend(t, q, k, v, made, enable_gqa=True)

    check(function, data(*shape, 6, 3, 4), data(*shape, 2, 3, 4), data(*shape, 2, 3, 4, seed=1), second=False)


def test_heads_that_broadcast() -> None:
    check(attend, data(2, 2, 3, 4), data(2, 1, 3, 4), data(2, 1, 3, 4, seed=1))


def test_transposed_heads() -> None:
    def function(t: Any, x: Any) -> Any:
        q = x.view(2, 5, 3, 4).transpose(1, 2)
        return attend(t, q, q, q, is_causal=True)

    check(function, data(2, 5, 12), second=False)


def test_mask_with_gradient() -> None:
    check(attend, data(2, 2, 3, 4), data(2, 2, 3, 4, seed=1), data(2, 2, 3, 4, seed=2), data(3, 3))


def test_dropout_draws_the_same() -> None:
    def function(t: Any, q: Any, k: Any, v: Any) -> Any:
        t.manual_seed(5)
        return attend(t, q, k, v, dropout_p=0.4, is_causal=True)

    check(function, data(2, 2, 3, 4), data(2, 2, 3, 4, seed=1), data(2, 2, 3, 4, seed=2))


def test_empty() -> None:
    check(attend, data(2, 2, 0, 4), data(2, 2, 3, 4), data(2, 2, 3, 4, seed=1), second=False, nodes=False)
    check(attend, data(2, 2, 3, 4), data(2, 2, 0, 4), data(2, 2, 0, 4), second=False, nodes=False)


def test_second_gradient_of_the_fused_form_is_refused() -> None:
    for t in (theirs, ours):
        x = make(t, data(1, 1, 2, 2), True)
        (grad,) = t.autograd.grad(attend(t, x, x, x).sum(), x, create_graph=True)
        with pytest.raises(RuntimeError, match="attention_for_cpu_backward is not implemented"):
            grad.sum().backward()


@pytest.mark.parametrize("function", [
    lambda t, x: attend(t, x, x.double(), x),
    lambda t, x: attend(t, x, x, x, t.zeros(3, 3).double()),
    lambda t, x: attend(t, x, x, x, t.zeros(3, 3, dtype=t.int32)),
    lambda t, x: attend(t, x[0, 0, 0], x[0, 0, 0], x[0, 0, 0]),
    lambda t, x: attend(t, x[0], x[0], x[0], t.zeros(3, 3), is_causal=True),
    lambda t, x: attend(t, t.zeros(2, 3, 3, 4), x, x, enable_gqa=True),
    lambda t, x: attend(t, x, t.zeros(2, 2, 3, 5), x),
    lambda t, x: attend(t, x, x, x, t.ones(2, 5)),
    lambda t, x: attend(t, x, x, x, dropout_p=2.0),
])
def test_errors(function: Any) -> None:
    check_error(function, data(2, 2, 3, 4))


# -- the layer -----------------------------------------------------------------------------------------------------


def observe(t: Any, kwargs: Any, given: Any, masks: Any, settings: Any, training: bool) -> dict[str, Any]:
    t.manual_seed(11)
    layer = t.nn.MultiheadAttention(4, 2, **kwargs).train(training)
    found: dict[str, Any] = {"repr": repr(layer), "keys": list(layer.state_dict())}
    found.update({f"initial {k}": v.clone() for k, v in layer.state_dict().items()})
    inputs = [make(t, g, True) for g in given]
    q, k, v = (inputs * 3)[:3] if len(inputs) == 1 else (*inputs, inputs[1])[:3]
    t.manual_seed(12)
    output, seen = layer(q, k, v, **{n: make(t, m, False) for n, m in masks.items()}, **settings)
    results = [r for r in (output, seen) if r is not None]
    found["weights given"] = seen is not None
    found.update({f"output {i}": r for i, r in enumerate(results)})
    t.autograd.backward(results, weights(t, results))
    found.update({f"gradient {i}": x.grad for i, x in enumerate(inputs)})
    found.update({f"gradient of {n}": p.grad for n, p in layer.named_parameters()})
    return found


def compare(*given: Any, masks: Any = None, settings: Any = None, training: bool = True, **kwargs: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        want, got = (observe(t, kwargs, given, masks or {}, settings or {}, training) for t in (theirs, ours))
    assert got.keys() == want.keys()
    for label, expected in want.items():
        if label in ("repr", "keys", "weights given"):
            assert got[label] == expected, label
        elif expected is None:
            assert got[label] is None, label
        else:
            assert_same(got[label], expected, label, tolerance=5e-5)


PADDING = values([[False, False, True], [False, True, True]], "bool")
LAYERS: dict[str, Any] = {
    "plain": {},
    "no bias": {"bias": False},
    "extra keys": {"add_bias_kv": True, "add_zero_attn": True},
    "dropout": {"dropout": 0.5},
    "batch first": {"batch_first": True},
}
SETTINGS: dict[str, Any] = {
    "averaged": {},
    "each head": {"average_attn_weights": False},
    "no weights": {"need_weights": False},
}


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("masks", ["none", "padding", "mask", "both", "per head"])
def test_self_attention(layer: str, settings: str, masks: str) -> None:
    chosen = {
        "none": {},
        "padding": {"key_padding_mask": PADDING},
        "mask": {"attn_mask": values([[False, True, True], [False, False, True], [False, False, False]], "bool")},
        "both": {"key_padding_mask": data(2, 3), "attn_mask": data(3, 3)},
        "per head": {"attn_mask": data(4, 3, 3)},
    }[masks]
    shape = (2, 3, 4) if LAYERS[layer].get("batch_first") else (3, 2, 4)
    compare(data(*shape), masks=chosen, settings=SETTINGS[settings], **LAYERS[layer])


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("training", [True, False])
def test_cross_attention(settings: str, training: bool) -> None:
    compare(data(5, 2, 4), data(3, 2, 4), settings=SETTINGS[settings], training=training)
    compare(data(5, 2, 4), data(3, 2, 4), data(3, 2, 4, seed=1), settings=SETTINGS[settings], training=training)
    compare(data(5, 2, 4), data(3, 2, 3), data(3, 2, 5), settings=SETTINGS[settings], kdim=3, vdim=5)
    compare(data(2, 5, 4), data(2, 3, 3), data(2, 3, 5), settings=SETTINGS[settings], kdim=3, vdim=5, batch_first=True)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("batch_first", [True, False])
def test_without_batch(settings: str, batch_first: bool) -> None:
    compare(data(3, 4), settings=SETTINGS[settings], batch_first=batch_first)
    compare(data(3, 4), settings=SETTINGS[settings], batch_first=batch_first,
            masks={"attn_mask": data(2, 3, 3), "key_padding_mask": data(3)})


def test_causal_hint() -> None:
    mask = values([[0.0, -INF, -INF], [0.0, 0.0, -INF], [0.0, 0.0, 0.0]])
    compare(data(3, 2, 4), masks={"attn_mask": mask}, settings={"is_causal": True, "need_weights": False})
    compare(data(3, 2, 4), masks={"attn_mask": mask}, settings={"is_causal": True})
    compare(data(3, 2, 4), masks={"attn_mask": mask, "key_padding_mask": data(2, 3)},
            settings={"is_causal": True, "need_weights": False})


def test_inference() -> None:
    def function(t: Any, x: Any) -> Any:
        t.manual_seed(1)
        layer = t.nn.MultiheadAttention(4, 2, batch_first=True).eval()
        with t.no_grad():
            return flat(layer(x, x, x, key_padding_mask=make(t, PADDING, False)))

    check(function, data(2, 3, 4), grad=False)


def test_warns_about_masks_of_different_types() -> None:
    for t in (theirs, ours):
        x = t.zeros(3, 2, 4)
        with pytest.warns(UserWarning, match="mismatched key_padding_mask and attn_mask is deprecated"):
            t.nn.MultiheadAttention(4, 2)(x, x, x, key_padding_mask=make(t, PADDING, False), attn_mask=t.zeros(3, 3))


def zeros(t: Any, *shape: int, **kwargs: Any) -> Any:
    return t.zeros(*shape, **kwargs)


@pytest.mark.parametrize("function", [
    lambda t, x, layer: t.nn.MultiheadAttention(5, 2),
    lambda t, x, layer: t.nn.MultiheadAttention(0, 2),
    lambda t, x, layer: layer(zeros(t, 3, 2, 5), x, x),
    lambda t, x, layer: layer(x[None], x, x),
    lambda t, x, layer: layer(x, x[:2], x),
    lambda t, x, layer: layer(x, x[0], x[0]),
    lambda t, x, layer: layer(x[0], x, x),
    lambda t, x, layer: layer(x, x, x, key_padding_mask=zeros(t, 3, 2)),
    lambda t, x, layer: layer(x, x, x, key_padding_mask=zeros(t, 2, 2)),
    lambda t, x, layer: layer(x, x, x, key_padding_mask=zeros(t, 3)),
    lambda t, x, layer: layer(x, x, x, attn_mask=zeros(t, 2, 3)),
    lambda t, x, layer: layer(x, x, x, attn_mask=zeros(t, 2, 3, 3)),
    lambda t, x, layer: layer(x, x, x, attn_mask=zeros(t, 1, 2, 3, 3)),
    lambda t, x, layer: layer(x, x, x, attn_mask=zeros(t, 3, 3, dtype=t.int32)),
    lambda t, x, layer: layer(x, x, x, is_causal=True),
    lambda t, x, layer: layer(x[:, 0], x[:, 0], x[:, 0], attn_mask=zeros(t, 1, 3, 3)),
    lambda t, x, layer: layer(x[:, 0], x[:, 0], x[:, 0], key_padding_mask=zeros(t, 1, 3)),
])
def test_layer_errors(function: Any) -> None:
    check_error(lambda t, x: function(t, x, t.nn.MultiheadAttention(4, 2)), data(3, 2, 4))
