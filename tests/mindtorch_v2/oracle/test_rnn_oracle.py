"""Recurrent layers, cells and packed sequences against PyTorch."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

from harness import assert_same, check, check_error, data, flat, make, ours, theirs, weights  # noqa: E402

ARRANGEMENTS = list(itertools.product((1, 2), (False, True), (False, True)))
KINDS = ("RNN", "LSTM", "GRU")


def build(t: Any, kind: str, *args: Any, **kwargs: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        t.manual_seed(11)
        return getattr(t.nn, kind)(*args, **kwargs)


def observe(t: Any, kind: str, args: tuple[Any, ...], kwargs: dict[str, Any], given: Any, state: Any,
            dtype: str) -> dict[str, Any]:
    """Output, states and all gradients of a layer."""
    layer = build(t, kind, *args, dtype=getattr(t, dtype), **kwargs)
    found: dict[str, Any] = {"repr": repr(layer), "keys": list(layer.state_dict())}
    found.update({f"initial {k}": v.clone() for k, v in layer.state_dict().items()})
    inputs = [make(t, g, True) for g in (given, *state)]
    hx = None if not state else tuple(inputs[1:]) if len(state) == 2 else inputs[1]
    t.manual_seed(3)
    results = flat(layer(inputs[0], hx))
    found.update({f"output {i}": r for i, r in enumerate(results)})
    t.autograd.backward(results, weights(t, results))
    found.update({f"gradient {i}": x.grad for i, x in enumerate(inputs)})
    found.update({f"gradient of {k}": p.grad for k, p in layer.named_parameters()})
    return found


def compare(kind: str, *args: Any, given: Any, state: Any = (), dtype: str = "float32", tolerance: float | None = None,
            **kwargs: Any) -> None:
    with warnings.catch_warnings():
        # PyTorch warns that a fast path of its own is not taken.
        warnings.simplefilter("ignore", UserWarning)
        want = observe(theirs, kind, args, kwargs, given, state, dtype)
    got = observe(ours, kind, args, kwargs, given, state, dtype)
    assert got.keys() == want.keys()
    for label, expected in want.items():
        if label in ("repr", "keys"):
            assert got[label] == expected
        else:
            assert_same(got[label], expected, label, tolerance)


def states(kind: str, *shape: int, dtype: str = "float32", cell: int | None = None) -> Any:
    first = data(*shape, dtype=dtype, seed=1)
    return (first, data(*shape[:-1], cell or shape[-1], dtype=dtype, seed=2)) if kind == "LSTM" else (first,)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("layers", "bidirectional", "batch_first"), ARRANGEMENTS)
@pytest.mark.parametrize("with_state", [False, True])
def test_layers(kind: str, layers: int, bidirectional: bool, batch_first: bool, with_state: bool) -> None:
    state = states(kind, layers * (2 if bidirectional else 1), 2, 4) if with_state else ()
    given = data(2, 5, 3) if batch_first else data(5, 2, 3)
    compare(kind, 3, 4, layers, given=given, state=state, bidirectional=bidirectional, batch_first=batch_first)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("with_state", [False, True])
def test_without_batch(kind: str, batch_first: bool, with_state: bool) -> None:
    compare(kind, 3, 4, given=data(5, 3), state=states(kind, 1, 4) if with_state else (), batch_first=batch_first)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("bias", [False, True])
def test_bias_and_dtype(kind: str, dtype: str, bias: bool) -> None:
    # A layer of doubles must be made with doubles: the tolerance is theirs.
    compare(kind, 3, 4, bias=bias, given=data(4, 2, 3, dtype=dtype), state=states(kind, 1, 2, 4, dtype=dtype),
            dtype=dtype)


@pytest.mark.parametrize("kind", KINDS)
def test_bfloat16(kind: str) -> None:
    compare(kind, 3, 4, given=data(3, 2, 3, dtype="bfloat16"), dtype="bfloat16", tolerance=0.08)


def test_relu() -> None:
    compare("RNN", 3, 4, 2, nonlinearity="relu", bidirectional=True, given=data(4, 2, 3))


@pytest.mark.parametrize("kind", KINDS)
def test_dropout_draws_the_same(kind: str) -> None:
    compare(kind, 3, 4, 3, dropout=0.5, given=data(4, 2, 3), bidirectional=True)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_projection(layers: int, bidirectional: bool) -> None:
    rows = layers * (2 if bidirectional else 1)
    compare("LSTM", 3, 4, layers, proj_size=2, bidirectional=bidirectional, given=data(5, 2, 3),
            state=states("LSTM", rows, 2, 2, cell=4))


@pytest.mark.parametrize("kind", KINDS)
def test_one_step_and_one_feature(kind: str) -> None:
    compare(kind, 1, 1, given=data(1, 1, 1))


# -- packed --------------------------------------------------------------------------------------------------------

LENGTHS = ([4, 4, 4], [5, 3, 1], [2, 5, 5, 1], [1])


def run_packed(t: Any, kind: str, lengths: list[int], batch_first: bool, with_state: bool, kwargs: Any) -> list[Any]:
    layer = build(t, kind, 3, 4, 2, bidirectional=True, batch_first=batch_first, **kwargs)
    batch, time = len(lengths), max(lengths)
    x = make(t, data(batch, time, 3) if batch_first else data(time, batch, 3), True)
    packed = t.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=batch_first, enforce_sorted=False)
    shown = kwargs.get("proj_size") or 4
    state = [make(t, g, True) for g in states(kind, 4, batch, shown, cell=4)] if with_state else []
    t.manual_seed(3)
    output, last = layer(packed, (tuple(state) if kind == "LSTM" else state[0]) if state else None)
    assert type(output).__name__ == "PackedSequence"
    padded, sizes = t.nn.utils.rnn.pad_packed_sequence(output, batch_first=batch_first, padding_value=-1.0)
    results = [padded, *flat(last)]
    t.autograd.backward(results, weights(t, results))
    return [output.data, output.batch_sizes, output.sorted_indices, output.unsorted_indices, *results, sizes, x.grad,
            *[s.grad for s in state], *[p.grad for p in layer.parameters()]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("with_state", [False, True])
def test_packed(kind: str, lengths: list[int], batch_first: bool, with_state: bool) -> None:
    want, got = (run_packed(t, kind, lengths, batch_first, with_state, {}) for t in (theirs, ours))
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        assert_same(g, w, str(i))


@pytest.mark.parametrize("kwargs", [{"proj_size": 2}, {"dropout": 0.5}, {"bias": False}], ids=str)
def test_packed_settings(kwargs: Any) -> None:
    want, got = (run_packed(t, "LSTM", [2, 5, 3], False, True, kwargs) for t in (theirs, ours))
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        assert_same(g, w, str(i))


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_pack_and_pad(batch_first: bool, lengths: list[int]) -> None:
    def function(t: Any, x: Any) -> Any:
        packed = t.nn.utils.rnn.pack_padded_sequence(x, t.tensor(lengths), batch_first, enforce_sorted=False)
        again = t.nn.utils.rnn.pad_packed_sequence(packed, batch_first, 2.0, total_length=7)
        return [packed.data * packed.data, packed.batch_sizes, again[0] * again[0], again[1]]

    batch, time = len(lengths), max(lengths)
    check(function, data(batch, time, 2) if batch_first else data(time, batch, 2))


def test_pack_without_features() -> None:
    check(lambda t, x: t.nn.utils.rnn.pack_padded_sequence(x, [4, 2]).data, data(4, 2))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("batch_first", [False, True])
def test_pad_sequence(side: str, batch_first: bool) -> None:
    check(lambda t, *xs: t.nn.utils.rnn.pad_sequence(xs, batch_first, 0.5, side) * 2, data(3, 2), data(1, 2),
          data(4, 2), nodes=False)


def test_pack_sequence_and_unpad() -> None:
    check(lambda t, a, b: t.nn.utils.rnn.pack_sequence([a, b]).data, data(3, 2), data(1, 2))
    check(lambda t, a, b: t.nn.utils.rnn.pack_sequence([b, a], enforce_sorted=False).data, data(3, 2), data(1, 2))
    check(lambda t, x: t.nn.utils.rnn.unpad_sequence(x, t.tensor([3, 1])), data(3, 2, 2), grad=False)
    check(lambda t, x: t.nn.utils.rnn.unpad_sequence(x, t.tensor([2, 1, 2]), batch_first=True), data(3, 2, 2),
          nodes=False)


def test_packed_sequence_object() -> None:
    shown = []
    for t in (theirs, ours):
        packed = t.nn.utils.rnn.pack_padded_sequence(t.arange(6.0).view(3, 2), [3, 1])
        made = t.nn.utils.rnn.PackedSequence(packed.data, packed.batch_sizes, t.tensor([1, 0]))
        shown.append([repr(packed), repr(made), str(packed.double().data.dtype), packed.to("cpu") is packed,
                      packed.is_cuda, packed.is_pinned(), str(packed.long()), packed._fields,
                      str(made.to(t.float64))])
    assert shown[0] == shown[1]


# -- cells ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["RNNCell", "LSTMCell", "GRUCell"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("with_state", [False, True])
def test_cells(kind: str, bias: bool, batched: bool, with_state: bool) -> None:
    def function(t: Any, x: Any, h: Any, c: Any) -> Any:
        cell = build(t, kind, 3, 4, bias=bias)
        return cell(x, ((h, c) if kind == "LSTMCell" else h) if with_state else None)

    shape = (2,) if batched else ()
    check(function, data(*shape, 3), data(*shape, 4, seed=1), data(*shape, 4, seed=2))


def test_cell_parameters_and_reprs() -> None:
    for kind, kwargs in (("RNNCell", {"nonlinearity": "relu"}), ("LSTMCell", {}), ("GRUCell", {"bias": False})):
        want, got = (build(t, kind, 3, 4, **kwargs) for t in (theirs, ours))
        assert repr(got) == repr(want)
        assert list(got.state_dict()) == list(want.state_dict())
        for name, tensor in want.state_dict().items():
            assert_same(got.state_dict()[name], tensor, name)
    check(lambda t, x: build(t, "RNNCell", 3, 4, nonlinearity="relu")(x), data(2, 3))


def test_cell_parameter_gradients() -> None:
    def grads(t: Any) -> list[Any]:
        cell = build(t, "LSTMCell", 3, 4)
        state = None
        for row in make(t, data(3, 2, 3), False):
            state = cell(row, state)
        state[0].sum().backward()
        return [p.grad for p in cell.parameters()]

    for got, want in zip(grads(ours), grads(theirs), strict=True):
        assert_same(got, want, "gradient")


# -- errors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [
    lambda t, x: t.nn.LSTM(5, 4)(x),
    lambda t, x: t.nn.LSTM(3, 4)(x[None]),
    lambda t, x: t.nn.GRU(3, 4)(x[0, 0]),
    lambda t, x: t.nn.GRU(3, 4)(x, t.zeros(1, 3, 4)),
    lambda t, x: t.nn.GRU(3, 4)(x, t.zeros(2, 4)),
    lambda t, x: t.nn.GRU(3, 4)(x[0], t.zeros(1, 2, 4)),
    lambda t, x: t.nn.LSTM(3, 4)(x, (t.zeros(1, 3, 4), t.zeros(1, 2, 4))),
    lambda t, x: t.nn.LSTM(3, 4)(x, (t.zeros(1, 2, 4), t.zeros(1, 2, 5))),
    lambda t, x: t.nn.LSTM(3, 4)(x, (t.zeros(2, 4), t.zeros(1, 2, 4))),
    lambda t, x: t.nn.LSTM(3, 4)(x[0], (t.zeros(1, 2, 4), t.zeros(1, 2, 4))),
    lambda t, x: t.nn.LSTM(3, 4)(x.double()),
    lambda t, x: t.nn.LSTM(3, 0),
    lambda t, x: t.nn.LSTM(-3, 4),
    lambda t, x: t.nn.LSTM(3, 4, 0),
    lambda t, x: t.nn.LSTM(3, 4, dropout=2),
    lambda t, x: t.nn.LSTM(3, 4, dropout=True),
    lambda t, x: t.nn.LSTM(3, 4, proj_size=4),
    lambda t, x: t.nn.LSTM(3, 4, proj_size=-1),
    lambda t, x: t.nn.GRU(3, 4, proj_size=2),
    lambda t, x: t.nn.RNN(3, 4, proj_size=2),
    lambda t, x: t.nn.RNN(3, 4, nonlinearity="cos"),
    lambda t, x: t.nn.LSTM(3, 4)(x[:0]),
    lambda t, x: t.nn.GRU(3, 4, batch_first=True)(x[:, :0]),
    lambda t, x: t.nn.RNN(3, 4)(x[:0]),
    lambda t, x: t.nn.LSTM(3, 4.0),
    lambda t, x: t.nn.RNNBase("none", 3, 4),
    lambda t, x: t.nn.LSTMCell(3, 4)(x),
    lambda t, x: t.nn.LSTMCell(3, 4)(x[0], (x[None], x[0])),
    lambda t, x: t.nn.GRUCell(3, 4)(x[0], x),
    lambda t, x: t.nn.RNNCell(5, 4)(x[0]),
    lambda t, x: t.nn.RNNCell(3, 4)(x[0], t.zeros(3, 4)),
    lambda t, x: t.nn.RNNCell(3, 4)(x[0], t.zeros(2, 5)),
    lambda t, x: t.nn.RNNCell(3, 4, nonlinearity="cos")(x[0]),
    lambda t, x: t.nn.utils.rnn.pack_padded_sequence(x, [2, 3]),
    lambda t, x: t.nn.utils.rnn.pack_padded_sequence(x, [3, 0]),
    lambda t, x: t.nn.utils.rnn.pack_padded_sequence(x, [3]),
    lambda t, x: t.nn.utils.rnn.pad_packed_sequence(t.nn.utils.rnn.pack_padded_sequence(x, [3, 1]), total_length=1),
    lambda t, x: t.nn.utils.rnn.pad_sequence(5),
    lambda t, x: t.nn.utils.rnn.pad_sequence([]),
    lambda t, x: t.nn.utils.rnn.pad_sequence([x], padding_side="top"),
    lambda t, x: t.nn.utils.rnn.pad_sequence([t.zeros(3, 2), t.zeros(1, 3)]),
    lambda t, x: t.nn.utils.rnn.pack_sequence([t.zeros(1), t.zeros(3)]),
    lambda t, x: t.nn.utils.rnn.PackedSequence(x),
])
def test_errors(function: Any) -> None:
    check_error(function, data(3, 2, 3))


def test_warns_about_dropout_in_one_layer() -> None:
    for t in (theirs, ours):
        with pytest.warns(UserWarning, match="dropout option adds dropout after all but last"):
            t.nn.LSTM(3, 4, dropout=0.5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kwargs", [{"bidirectional": True}, {"num_layers": 2, "bias": False}], ids=str)
def test_second_gradients(kind: str, packed: bool, kwargs: Any) -> None:
    def function(t: Any, x: Any) -> Any:
        layer = build(t, kind, 3, 4, **kwargs)
        if packed:
            return flat(layer(t.nn.utils.rnn.pack_padded_sequence(x, [3, 1]))[0].data)
        return flat(layer(x))

    check(function, data(3, 2, 3), nodes=False)


def test_second_gradients_of_parameters() -> None:
    def penalty(t: Any) -> list[Any]:
        layer = build(t, "LSTM", 3, 4, proj_size=2)
        x = make(t, data(3, 2, 3), True)
        (grad,) = t.autograd.grad(layer(x)[0].sum(), x, create_graph=True)
        grad.square().sum().backward()
        return [p.grad for p in layer.parameters()]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for got, want in zip(penalty(ours), penalty(theirs), strict=True):
            assert_same(got, want, "gradient")


def test_functions() -> None:
    def lstm(t: Any, x: Any, h: Any, c: Any, w: Any, u: Any) -> Any:
        return t.lstm(x, (h, c), (w, u), False, 1, 0.0, False, False, False)

    check(lstm, data(3, 2, 3), data(1, 2, 2), data(1, 2, 2, seed=1), data(8, 3), data(8, 2), second=False, nodes=False)
    check(lambda t, x, h, w, u: t.gru(x, t.tensor([2, 1]), h, (w, u), False, 1, 0.0, False, False),
          data(3, 3), data(1, 2, 2), data(6, 3), data(6, 2), second=False, nodes=False)
    check(lambda t, x, h, w, u: t.gru_cell(x, h, w, u), data(2, 3), data(2, 2), data(6, 3), data(6, 2))


def test_output_stays_after_in_place_change_is_noticed() -> None:
    for t in (theirs, ours):
        layer = t.nn.GRU(3, 4)
        output, _ = layer(t.ones(2, 1, 3))
        with t.no_grad():
            layer.weight_hh_l0.mul_(2.0)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            output.sum().backward()


@pytest.mark.parametrize("kind", ["RNN", "GRU"])
@pytest.mark.parametrize("kwargs", [{}, {"batch_first": True}, {"bidirectional": True, "num_layers": 2}], ids=str)
def test_output_may_be_changed_in_place(kind: str, kwargs: Any) -> None:
    def function(t: Any, x: Any) -> Any:
        output, state = build(t, kind, 3, 4, **kwargs)(x)
        return [output.mul_(3.0), state.add_(1.0)]

    check(function, data(3, 2, 3), nodes=False)


@pytest.mark.parametrize("kind", KINDS)
def test_no_sequences(kind: str) -> None:
    compare(kind, 3, 4, given=data(5, 0, 3))


@pytest.mark.parametrize("kind", ["RNN", "GRU"])
def test_layers_of_a_profile(kind: str) -> None:
    """One row with PyTorch's name for the layer; inside are the ops that run, in PyTorch those of every step."""
    shown = []
    for t in (theirs, ours):
        layer, x = build(t, kind, 3, 4), make(t, data(5, 2, 3), False)
        with t.profiler.profile(record_shapes=True) as prof:
            layer(x)
        shown.append([(e.name, e.input_shapes) for e in prof.events() if e.cpu_parent is None])
    assert shown[0] == shown[1]


@pytest.mark.parametrize("kind", KINDS)
def test_flops_of_a_layer(kind: str) -> None:
    from torch.utils.flop_counter import FlopCounterMode as Theirs

    from mindtorch_v2.utils.flop_counter import FlopCounterMode as Ours

    counted = []
    for t, mode in ((theirs, Theirs), (ours, Ours)):
        layer, x = build(t, kind, 3, 4, 2, bidirectional=True), make(t, data(5, 2, 3), False)
        state = make(t, states(kind, 4, 2, 4)[0], True)
        with mode(display=False) as forward:
            output = layer(x.requires_grad_(), (state, state) if kind == "LSTM" else state)[0]
        with mode(display=False) as backward:
            output.sum().backward()
        counted.append((forward.get_total_flops(), backward.get_total_flops()))
    assert counted[0] == counted[1]
