"""Convolutions against PyTorch: values, gradients, second gradients, errors, nesting and FLOPs."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

from harness import check, check_error, data, make, ours, theirs  # noqa: E402

from mindtorch_v2._backends.cpu import providers  # noqa: E402
from mindtorch_v2._backends.cpu.onednn import library as opening  # noqa: E402

# name, input, weight, keyword arguments
PLAIN: dict[str, Any] = {
    "plain": ((2, 3, 8, 9), (4, 3, 3, 3), {}),
    "padded": ((2, 3, 8, 9), (4, 3, 3, 3), {"padding": 1}),
    "wide padding": ((2, 3, 5, 6), (4, 3, 3, 2), {"padding": (4, 3)}),
    "strided": ((2, 3, 9, 8), (4, 3, 3, 2), {"stride": (2, 3), "padding": (1, 0)}),
    "dilated": ((2, 3, 9, 8), (4, 3, 3, 2), {"dilation": (2, 3), "padding": 2}),
    "strided and dilated": ((2, 3, 11, 8), (4, 3, 3, 2), {"dilation": 2, "stride": 2, "padding": 1}),
    "groups": ((2, 4, 7, 7), (6, 2, 3, 3), {"groups": 2, "padding": 1}),
    "groups strided": ((2, 4, 7, 7), (6, 2, 3, 3), {"groups": 2, "stride": 2}),
    "depthwise": ((2, 4, 7, 8), (4, 1, 3, 3), {"groups": 4, "padding": 1}),
    "depthwise multiplied": ((2, 3, 7, 8), (6, 1, 3, 2), {"groups": 3, "stride": 2}),
    "point": ((2, 3, 5, 5), (4, 3, 1, 1), {}),
    "point on a larger image": ((2, 3, 9, 9), (4, 3, 1, 1), {}),
    "point strided": ((2, 3, 6, 5), (4, 3, 1, 1), {"stride": 2}),
    "point grouped": ((2, 4, 5, 5), (6, 2, 1, 1), {"groups": 2}),
    "point padded": ((2, 3, 5, 5), (4, 3, 1, 1), {"padding": 1}),
    "many outputs": ((2, 2, 12, 12), (9, 2, 3, 3), {"padding": 1}),
    "many inputs": ((2, 9, 12, 12), (2, 9, 3, 3), {"padding": 1}),
    "same": ((2, 3, 8, 9), (4, 3, 3, 3), {"padding": "same"}),
    "same of even kernel": ((2, 3, 8, 9), (4, 3, 4, 2), {"padding": "same", "dilation": (1, 3)}),
    "valid": ((2, 3, 8, 9), (4, 3, 3, 3), {"padding": "valid"}),
    "unbatched": ((3, 8, 9), (4, 3, 3, 3), {}),
    "unbatched same": ((3, 8, 9), (4, 3, 3, 3), {"padding": "same"}),
    "empty batch": ((0, 3, 8, 9), (4, 3, 3, 3), {}),
    "kernel as large as the image": ((2, 3, 3, 4), (4, 3, 3, 4), {}),
}
OTHER: dict[str, Any] = {
    "line": ("conv1d", (2, 3, 9), (4, 3, 3), {"padding": 1}),
    "line strided": ("conv1d", (2, 4, 9), (6, 2, 3), {"stride": 2, "groups": 2, "dilation": 2}),
    "line unbatched": ("conv1d", (3, 9), (4, 3, 3), {}),
    "line same": ("conv1d", (2, 3, 9), (4, 3, 2), {"padding": "same"}),
    "volume": ("conv3d", (2, 2, 5, 6, 4), (3, 2, 2, 3, 3), {"padding": 1}),
    "volume strided": ("conv3d", (2, 2, 5, 6, 4), (3, 2, 2, 3, 2), {"stride": (1, 2, 1), "dilation": (2, 1, 1)}),
    "volume depthwise": ("conv3d", (2, 2, 4, 5, 4), (2, 1, 2, 2, 2), {"groups": 2}),
    "transposed line": ("conv_transpose1d", (2, 3, 6), (3, 4, 3), {"stride": 2, "output_padding": 1}),
    "transposed": ("conv_transpose2d", (2, 3, 5, 6), (3, 4, 3, 3), {}),
    "transposed strided": ("conv_transpose2d", (2, 3, 5, 6), (3, 4, 3, 2),
                           {"stride": 2, "padding": 1, "output_padding": (1, 0)}),
    "transposed groups": ("conv_transpose2d", (2, 4, 5, 4), (4, 3, 3, 3), {"groups": 2, "stride": (1, 2)}),
    "transposed dilated": ("conv_transpose2d", (2, 3, 5, 4), (3, 4, 3, 3), {"dilation": 2, "padding": 1}),
    "transposed with room for more": ("conv_transpose2d", (2, 3, 5, 4), (3, 4, 3, 3),
                                      {"dilation": 2, "output_padding": 1, "padding": 1}),
    "transposed with room at a stride": ("conv_transpose2d", (2, 4, 5, 4), (4, 2, 3, 2),
                                         {"dilation": 3, "stride": 2, "output_padding": 2, "groups": 2}),
    "transposed point with room": ("conv_transpose2d", (2, 3, 5, 4), (3, 4, 1, 1),
                                   {"dilation": 2, "output_padding": 1}),
    "transposed depthwise": ("conv_transpose2d", (2, 4, 5, 4), (4, 1, 3, 3), {"groups": 4, "stride": 2}),
    "transposed point": ("conv_transpose2d", (2, 3, 5, 4), (3, 4, 1, 1), {"stride": 2, "output_padding": 1}),
    "transposed unbatched": ("conv_transpose2d", (3, 5, 4), (3, 4, 3, 3), {}),
    "transposed volume": ("conv_transpose3d", (1, 2, 3, 4, 3), (2, 3, 2, 3, 2), {"stride": 2, "padding": 1}),
}


def channels(weight: tuple[int, ...], name: str, options: dict[str, Any]) -> int:
    return weight[1] * options.get("groups", 1) if "transpose" in name else weight[0]


# PyTorch warns of the copy that 'same' may make.
@pytest.fixture(params=["oneDNN", "NumPy"])
def by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which kernels do the work."""
    if request.param == "NumPy":
        monkeypatch.setitem(opening._state, "opened", None)
    elif opening.library() is None:
        pytest.skip("oneDNN is not installed: pip install .[fast]")


@pytest.mark.usefixtures("by")
@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("name", PLAIN)
def test_conv2d(name: str) -> None:
    shape, weight, options = PLAIN[name]
    check(lambda torch, x, w, b: torch.conv2d(x, w, b, **options), data(*shape), data(*weight, seed=1),
          data(weight[0], seed=2), tolerance=1e-4)


@pytest.mark.usefixtures("by")
@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("name", OTHER)
def test_other_convolutions(name: str) -> None:
    op, shape, weight, options = OTHER[name]
    check(lambda torch, x, w, b: getattr(torch.nn.functional, op)(x, w, b, **options), data(*shape),
          data(*weight, seed=1), data(channels(weight, op, options), seed=2), tolerance=1e-4)


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_dtypes(dtype: str) -> None:
    check(lambda torch, x, w: torch.conv2d(x, w, None, 1, 1), data(2, 3, 6, 6, dtype=dtype),
          data(4, 3, 3, 3, dtype=dtype, seed=1), second=False,
          tolerance={"float16": 2e-2, "bfloat16": 1.5e-1}.get(dtype))


def test_integers() -> None:
    check(lambda torch, x, w: torch.conv2d(x, w, None, 1, 1), data(2, 3, 6, 6, dtype="int64"),
          data(4, 3, 3, 3, dtype="int64", seed=1))


def test_complex() -> None:
    check(lambda torch, x, w: torch.conv2d(x, w), data(2, 3, 6, 6, dtype="complex64"),
          data(4, 3, 3, 3, dtype="complex64", seed=1), second=False, tolerance=1e-4, nodes=False)


@pytest.mark.parametrize("needed", [(0,), (1,), (2,), (0, 2), (1, 2)])
def test_gradients_of_some_arguments(needed: tuple[int, ...]) -> None:
    def run(torch: Any) -> list[Any]:
        arguments = [make(torch, g, False) for g in (data(2, 3, 6, 6), data(4, 3, 3, 3, seed=1), data(4, seed=2))]
        for i in needed:
            arguments[i].requires_grad_(True)
        torch.conv2d(*arguments, padding=1).sum().backward()
        return [None if a.grad is None else a.grad.tolist() for a in arguments]

    for got, want in zip(run(ours), run(theirs), strict=True):
        if want is None:
            assert got is None
        else:
            assert theirs.allclose(theirs.tensor(got), theirs.tensor(want), atol=1e-4)


def test_input_that_is_not_contiguous() -> None:
    check(lambda torch, x, w: torch.conv2d(x.permute(0, 3, 1, 2), w.transpose(2, 3), None, 1, 1), data(2, 6, 7, 3),
          data(4, 3, 3, 3, seed=1), tolerance=1e-4)


def test_blocks_of_images(monkeypatch: pytest.MonkeyPatch) -> None:
    from mindtorch_v2._backends.cpu import convolution

    monkeypatch.setattr(convolution, "COLUMN_BYTES", 6000)
    monkeypatch.setattr(convolution, "DEPTH_BYTES", 3000)
    for options, weight in (({"padding": 1}, (4, 4, 3, 3)), ({"stride": 2}, (9, 4, 3, 3)),
                            ({"groups": 4}, (4, 1, 3, 3))):
        check(lambda torch, x, w, o=options: torch.conv2d(x, w, None, **o), data(5, 4, 8, 8), data(*weight, seed=1),
              tolerance=1e-4)


@pytest.mark.parametrize(("shape", "weight", "options"), [
    ((1, 4, 8, 8), (8, 3, 3, 3), {}),
    ((4, 8, 8), (8, 3, 3, 3), {}),
    ((8, 8), (8, 3, 3, 3), {}),
    ((1, 3, 8, 8), (8, 3, 3), {}),
    ((1, 3, 2, 2), (8, 3, 3, 3), {}),
    ((1, 3, 8, 8), (8, 3, 3, 3), {"padding": -1}),
    ((1, 3, 8, 8), (8, 3, 3, 3), {"stride": 0}),
    ((1, 3, 8, 8), (8, 3, 3, 3), {"dilation": 0}),
    ((1, 3, 8, 8), (8, 3, 3, 3), {"stride": (1, 2, 3)}),
    ((1, 4, 8, 8), (7, 2, 3, 3), {"groups": 2}),
    ((1, 4, 8, 8), (8, 2, 3, 3), {"groups": 0}),
    ((1, 3, 8, 8), (8, 3, 3, 3), {"padding": "same", "stride": 2}),
    ((1, 3, 8, 8), (8, 3, 3, 3), {"padding": "nonsense"}),
])
def test_errors(shape: tuple[int, ...], weight: tuple[int, ...], options: dict[str, Any]) -> None:
    check_error(lambda torch, x, w: torch.conv2d(x, w, None, **options), data(*shape), data(*weight))


def test_the_error_of_wrong_channels_is_pytorchs() -> None:
    with pytest.raises(RuntimeError) as error:
        ours.conv2d(ours.ones(1, 4, 8, 8), ours.ones(8, 3, 3, 3))
    assert str(error.value) == ("Given groups=1, weight of size [8, 3, 3, 3], expected input[1, 4, 8, 8] to have 3 "
                                "channels, but got 4 channels instead")


@pytest.mark.parametrize("options", [{"output_padding": 1}, {"output_padding": -1}, {"padding": 9}])
def test_errors_of_transposed_convolutions(options: dict[str, Any]) -> None:
    check_error(lambda torch, x, w: torch.conv_transpose2d(x, w, None, **options), data(1, 3, 5, 5), data(3, 4, 3, 3))


def test_errors_of_bias_and_dtype() -> None:
    check_error(lambda torch, x, w, b: torch.conv2d(x, w, b), data(1, 3, 5, 5), data(4, 3, 3, 3), data(3))
    check_error(lambda torch, x, w, b: torch.conv_transpose2d(x, w, b), data(1, 3, 5, 5), data(3, 4, 3, 3), data(3))
    check_error(lambda torch, x, w: torch.conv2d(x, w), data(1, 3, 5, 5, dtype="float64"), data(4, 3, 3, 3))
    check_error(lambda torch, x, w, b: torch.conv2d(x, w, b), data(1, 3, 5, 5), data(4, 3, 3, 3),
                data(4, dtype="float64"))


def profiled(torch: Any, function: Any) -> Any:
    function()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_flops=True) as profiler:
        function()
    return profiler.events()


def parents(event: Any) -> list[str]:
    found = [event.name]
    while event.cpu_parent is not None:
        event = event.cpu_parent
        found.append(event.name)
    return found[::-1]


def test_nesting() -> None:
    def run(torch: Any) -> Any:
        x, w = (make(torch, g, True) for g in (data(2, 3, 6, 6), data(4, 3, 3, 3)))
        return profiled(torch, lambda: torch.conv2d(x, w).sum().backward())

    shared = ("aten::conv2d", "aten::convolution", "aten::_convolution", "aten::convolution_backward",
              "ConvolutionBackward0")
    got, want = ([parents(e) for e in run(module) if e.name in shared] for module in (ours, theirs))
    assert got == want
    by_library = [["aten::conv2d", "aten::convolution", "aten::_convolution", "aten::mkldnn_convolution"]]
    assert [p for p in (parents(e) for e in run(ours)) if "mkldnn" in p[-1]] == (
        [] if opening.library() is None and providers.native is None else by_library)


@pytest.mark.parametrize("name", ["plain", "strided", "strided and dilated", "groups", "same", "unbatched", "padded"])
@pytest.mark.filterwarnings("ignore")
def test_flops(name: str) -> None:
    shape, weight, options = PLAIN[name]

    def run(torch: Any) -> list[int]:
        x, w = (make(torch, g, False) for g in (data(*shape), data(*weight)))
        events = profiled(torch, lambda: torch.conv2d(x, w, **options))
        return [e.flops or 0 for e in events if e.name == "aten::conv2d"]

    assert run(ours) == run(theirs)
