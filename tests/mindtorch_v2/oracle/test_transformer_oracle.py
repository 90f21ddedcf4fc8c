"""Transformers against PyTorch."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

from harness import assert_same, check_error, data, make, ours, theirs, values, weights  # noqa: E402

INF = float("inf")
CAUSAL = values([[0.0, -INF, -INF], [0.0, 0.0, -INF], [0.0, 0.0, 0.0]])
PADDING = values([[False, False, True], [False, False, False]], "bool")
FLOAT_PADDING = values([[0.0, 0.0, -INF], [0.0, 0.0, 0.0]])


def observe(t: Any, build: Any, given: Any, masks: Any, training: bool) -> dict[str, Any]:
    t.manual_seed(11)
    layer = build(t).train(training)
    found: dict[str, Any] = {"repr": repr(layer), "keys": list(layer.state_dict())}
    found.update({f"initial {k}": v.clone() for k, v in layer.state_dict().items()})
    inputs = [make(t, g, True) for g in given]
    t.manual_seed(12)
    output = layer(*inputs, **{n: make(t, m, False) for n, m in masks.items()})
    found["output"] = output
    t.autograd.backward(output, weights(t, [output])[0])
    found.update({f"gradient {i}": x.grad for i, x in enumerate(inputs)})
    found.update({f"gradient of {n}": p.grad for n, p in layer.named_parameters()})
    with t.no_grad():
        t.manual_seed(12)
        found["inference"] = layer(*inputs, **{n: make(t, m, False) for n, m in masks.items()})
    return found


def compare(build: Any, *given: Any, training: bool = True, **masks: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        want, got = (observe(t, build, given, masks, training) for t in (theirs, ours))
    assert got.keys() == want.keys()
    for label, expected in want.items():
        if label in ("repr", "keys"):
            assert got[label] == expected, label
        else:
            assert_same(got[label], expected, label, tolerance=1e-4)


LAYERS: dict[str, Any] = {
    "plain": {},
    "batch first": {"batch_first": True},
    "norm first": {"norm_first": True},
    "gelu": {"activation": "gelu", "batch_first": True},
    "no bias": {"bias": False},
    "no dropout": {"dropout": 0.0, "layer_norm_eps": 1e-3},
}


def shaped(name: str, time: int, seed: int = 0) -> Any:
    return data(*((2, time, 4) if LAYERS[name].get("batch_first") else (time, 2, 4)), seed=seed)


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("masks", ["none", "causal", "padding", "both"])
def test_encoder_layer(name: str, training: bool, masks: str) -> None:
    chosen = {"none": {}, "causal": {"src_mask": CAUSAL}, "padding": {"src_key_padding_mask": PADDING},
              "both": {"src_mask": CAUSAL, "src_key_padding_mask": FLOAT_PADDING}}[masks]
    compare(lambda t: t.nn.TransformerEncoderLayer(4, 2, 8, **LAYERS[name]), shaped(name, 3), training=training,
            **chosen)


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("masks", ["none", "causal", "all"])
def test_decoder_layer(name: str, masks: str) -> None:
    chosen = {"none": {}, "causal": {"tgt_mask": CAUSAL},
              "all": {"tgt_mask": CAUSAL, "tgt_key_padding_mask": FLOAT_PADDING, "memory_mask": data(3, 5),
                      "memory_key_padding_mask": data(2, 5)}}[masks]
    compare(lambda t: t.nn.TransformerDecoderLayer(4, 2, 8, **LAYERS[name]), shaped(name, 3), shaped(name, 5, 1),
            **chosen)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("masks", ["none", "causal", "padding", "float padding", "unaligned", "both"])
@pytest.mark.parametrize("with_norm", [True, False])
def test_encoder(training: bool, masks: str, with_norm: bool) -> None:
    chosen = {"none": {}, "causal": {"mask": CAUSAL}, "padding": {"src_key_padding_mask": PADDING},
              "float padding": {"src_key_padding_mask": FLOAT_PADDING},
              "unaligned": {"src_key_padding_mask": values([[True, False, False], [False, False, False]], "bool")},
              "both": {"mask": CAUSAL, "src_key_padding_mask": FLOAT_PADDING}}[masks]

    def build(t: Any) -> Any:
        layer = t.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        return t.nn.TransformerEncoder(layer, 2, t.nn.LayerNorm(4) if with_norm else None)

    compare(build, data(2, 3, 4), training=training, **chosen)


def test_decoder() -> None:
    compare(lambda t: t.nn.TransformerDecoder(t.nn.TransformerDecoderLayer(4, 2, 8), 2, t.nn.LayerNorm(4)),
            data(3, 2, 4), data(5, 2, 4), tgt_mask=CAUSAL)


@pytest.mark.parametrize("kwargs", [{}, {"batch_first": True, "norm_first": True, "activation": "gelu"},
                                    {"bias": False}], ids=str)
@pytest.mark.parametrize("training", [True, False])
def test_transformer(kwargs: Any, training: bool) -> None:
    first = kwargs.get("batch_first")
    compare(lambda t: t.nn.Transformer(4, 2, 2, 2, 8, **kwargs), data(2, 5, 4) if first else data(5, 2, 4),
            data(2, 3, 4) if first else data(3, 2, 4), training=training, tgt_mask=CAUSAL)
    compare(lambda t: t.nn.Transformer(4, 2, 1, 1, 8, **kwargs), data(5, 4), data(3, 4), training=training)


def test_custom_parts() -> None:
    def build(t: Any) -> Any:
        decoder = t.nn.TransformerDecoder(t.nn.TransformerDecoderLayer(4, 1, 8), 1)
        return t.nn.Transformer(4, 2, 1, 1, 8, custom_decoder=decoder, activation=t.nn.functional.silu)

    compare(build, data(5, 2, 4), data(3, 2, 4))


def test_square_subsequent_mask() -> None:
    for t in (theirs, ours):
        assert t.nn.Transformer.generate_square_subsequent_mask(3).tolist() == make(t, CAUSAL, False).tolist()
        assert str(t.nn.Transformer.generate_square_subsequent_mask(2, dtype=t.float64).dtype) == "torch.float64"


@pytest.mark.parametrize("kwargs", [{"norm_first": True}, {"bias": False}, {"batch_first": False},
                                    {"activation": "tanh"}, {"nhead": 1}], ids=str)
def test_warnings_about_nesting(kwargs: Any) -> None:
    texts = []
    for t in (theirs, ours):
        given = {"batch_first": True, "nhead": 2, **kwargs}
        if given.get("activation"):
            given["activation"] = t.tanh
        with pytest.warns(UserWarning, match="enable_nested_tensor is True") as caught:
            t.nn.TransformerEncoder(t.nn.TransformerEncoderLayer(4, dim_feedforward=8, **given), 1)
        texts.append(str(caught[0].message))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("function", [
    lambda t, x: t.nn.TransformerEncoderLayer(4, 2, 8, activation="sine"),
    lambda t, x: t.nn.Transformer(4, 2, 1, 1, 8, batch_first=True)(x, x[:1]),
    lambda t, x: t.nn.Transformer(4, 2, 1, 1, 8, batch_first=True)(x, t.zeros(2, 3, 5)),
    lambda t, x: t.nn.TransformerEncoderLayer(4, 2, 8)(x, is_causal=True),
])
def test_errors(function: Any) -> None:
    check_error(function, data(2, 3, 4))


def test_copy_and_training_step() -> None:
    losses = []
    for t in (theirs, ours):
        t.manual_seed(4)
        model = t.nn.TransformerEncoder(t.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, dropout=0.0), 1)
        model = copy.deepcopy(model)
        optimizer = t.optim.Adam(model.parameters(), lr=0.01)
        x = make(t, data(2, 3, 4), False)
        found = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = (model(x) - x).square().mean()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        losses.append(found)
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)


# -- one op at inference ---------------------------------------------------------------------------------------------

BOTH = {"src_mask": CAUSAL, "src_key_padding_mask": FLOAT_PADDING}
AS_ONE_OP: dict[str, Any] = {
    "plain": {}, "padding": {"src_key_padding_mask": PADDING}, "mask": {"src_mask": CAUSAL}, "both": BOTH,
    "mask by heads": {"src_mask": data(4, 3, 3)},
}


def inference(t: Any, build: Any, hook: bool = False, **masks: Any) -> tuple[Any, list[str]]:
    """What a layer makes of an input without gradients, and the rows it shows."""
    t.manual_seed(3)
    layer = build(t).eval()
    if hook:
        layer.linear1.register_forward_hook(lambda *given: None)
    x = make(t, data(2, 3, 8), False)
    given = {n: make(t, m, False) for n, m in masks.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with t.no_grad(), t.profiler.profile(record_shapes=True) as prof:
            made = layer(x, **given)
    return made, [(e.name, str(e.input_shapes)) for e in prof.events() if e.cpu_parent is None]


@pytest.mark.parametrize("masks", AS_ONE_OP)
@pytest.mark.parametrize("kwargs", [{}, {"norm_first": True}, {"activation": "gelu"}, {"batch_first": False},
                                    {"bias": False}], ids=str)
def test_encoder_layer_is_one_op_at_inference(kwargs: Any, masks: str) -> None:
    if kwargs == {"batch_first": False} and masks != "plain":
        pytest.skip("the masks are made for batches that come first")

    def build(t: Any) -> Any:
        return t.nn.TransformerEncoderLayer(8, 2, 16, **{"batch_first": True, **kwargs})

    (got, shown), (want, rows) = (inference(t, build, **AS_ONE_OP[masks]) for t in (ours, theirs))
    assert_same(got, want, "output")
    assert shown == rows


def test_a_hook_keeps_the_layer_in_its_parts() -> None:
    def build(t: Any) -> Any:
        return t.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    (got, shown), (want, rows) = (inference(t, build, hook=True) for t in (ours, theirs))
    assert_same(got, want, "output")
    assert shown == rows
    assert "aten::_native_multi_head_attention" in [name for name, _ in rows]


def test_the_one_op_can_be_forbidden() -> None:
    def build(t: Any) -> Any:
        return t.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    found = []
    for t in (ours, theirs):
        assert t.backends.mha.get_fastpath_enabled()
        t.backends.mha.set_fastpath_enabled(False)
        try:
            found.append(inference(t, build, src_key_padding_mask=PADDING))
        finally:
            t.backends.mha.set_fastpath_enabled(True)
    assert_same(found[0][0], found[1][0], "output")
    assert found[0][1] == found[1][1]
    assert "aten::linear" in [name for name, _ in found[1][1]]


@pytest.mark.parametrize("options", [
    {}, {"need_weights": False}, {"average_attn_weights": False}, {"key_padding_mask": PADDING},
    {"attn_mask": values([[False, True, True], [False, False, True], [False, False, False]], "bool")},
    {"attn_mask": CAUSAL},
], ids=lambda options: "-".join(options) or "plain")
def test_attention_is_one_op_at_inference(options: Any) -> None:
    found = []
    for t in (ours, theirs):
        t.manual_seed(3)
        layer = t.nn.MultiheadAttention(8, 2, batch_first=True).eval()
        x = make(t, data(2, 3, 8), False)
        given = {n: o if isinstance(o, bool) else make(t, o, False) for n, o in options.items()}
        with t.no_grad(), t.profiler.profile(record_shapes=True) as prof:
            made, seen = layer(x, x, x, **given)
        found.append((made, seen, [(e.name, str(e.input_shapes)) for e in prof.events() if e.cpu_parent is None]))
    assert_same(found[0][0], found[1][0], "output")
    assert (found[0][1] is None) == (found[1][1] is None)
    if found[1][1] is not None:
        assert_same(found[0][1], found[1][1], "weights")
    assert found[0][2] == found[1][2]


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_masked_softmax(kind: int) -> None:
    shape = {0: (3, 3), 1: (2, 3), 2: (2, 2, 3, 3)}[kind]
    hidden = data(*shape, dtype="bool", seed=4)

    def call(t: Any, x: Any) -> Any:
        return t.nan_to_num(t._masked_softmax(x, make(t, hidden, False), 3, kind))

    assert_same(call(ours, make(ours, data(2, 2, 3, 3), False)), call(theirs, make(theirs, data(2, 2, 3, 3), False)),
                "softmax")


def test_rows_of_an_encoder_that_looks_for_padding_at_the_end() -> None:
    found = []
    for t in (ours, theirs):
        t.manual_seed(3)
        layer = t.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        encoder = t.nn.TransformerEncoder(layer, 1).eval()
        x, padding = make(t, data(2, 3, 8), False), make(t, values([[True, False, False], [False] * 3], "bool"), False)
        with t.no_grad(), t.profiler.profile() as prof:
            made = encoder(x, src_key_padding_mask=padding)
        found.append((made, [e.name for e in prof.events() if e.cpu_parent is None]))
    assert_same(found[0][0], found[1][0], "output")
    assert found[0][1] == found[1][1]
