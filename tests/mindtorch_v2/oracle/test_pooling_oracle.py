"""Pooling against PyTorch: values, indices, gradients, second gradients and errors."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

from harness import check, check_error, data, make, ours, theirs, values  # noqa: E402

SHAPES = {1: (2, 3, 11), 2: (2, 3, 9, 8), 3: (2, 2, 7, 6, 5)}
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "overlapping": {"stride": 1},
    "gaps": {"stride": 3},
    "padded": {"padding": 1},
    "ceil": {"stride": 2, "ceil_mode": True},
    "ceil padded": {"stride": 2, "padding": 1, "ceil_mode": True},
}
NAN = float("nan")
INF = float("inf")


@pytest.mark.parametrize("options", [*OPTIONS.values(), {"dilation": 2}, {"dilation": 2, "padding": 1, "stride": 1}],
                         ids=str)
@pytest.mark.parametrize("kernel", [2, 3])
@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_max_pool(spatial: int, kernel: int, options: dict[str, Any]) -> None:
    name = f"max_pool{spatial}d"
    check(lambda torch, x: getattr(torch.nn.functional, name)(x, kernel, **options), data(*SHAPES[spatial]))
    check(lambda torch, x: getattr(torch.nn.functional, name)(x, kernel, return_indices=True, **options),
          data(*SHAPES[spatial]))
    check(lambda torch, x: getattr(torch.nn.functional, name)(x, kernel, **options), data(*SHAPES[spatial][1:]))


@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("content", [
    [[1.0, 1.0, 2.0, 2.0], [1.0, 1.0, 2.0, 2.0], [3.0, 0.0, 0.0, 3.0], [3.0, 3.0, 3.0, 3.0]],
    [[-INF, -INF, 1.0, -INF], [-INF, -INF, -INF, -INF], [INF, 1.0, -INF, -INF], [INF, INF, -INF, -INF]],
    [[NAN, 1.0, 2.0, NAN], [1.0, NAN, NAN, NAN], [3.0, 0.0, 0.0, 3.0], [NAN, 3.0, 3.0, 5.0]],
], ids=["ties", "infinities", "nan"])
def test_max_pool_of_special_values(content: Any, padding: int) -> None:
    check(lambda torch, x: torch.nn.functional.max_pool2d(x, 2, padding=padding, return_indices=True),
          values([content]), second=False)
    check(lambda torch, x: torch.nn.functional.max_pool2d(x, 2, stride=1, return_indices=True), values([content]),
          second=False)


def test_max_pool_of_integers() -> None:
    check(lambda torch, x: torch.nn.functional.max_pool2d(x, 2, padding=1, return_indices=True),
          data(2, 2, 5, 5, dtype="int64"))


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_dtypes(dtype: str) -> None:
    given = data(2, 3, 6, 6, dtype=dtype)
    check(lambda torch, x: torch.nn.functional.max_pool2d(x, 3, 1), given, second=False,
          tolerance=None if dtype == "float64" else 4e-2)
    check(lambda torch, x: torch.nn.functional.avg_pool2d(x, 3, 2, 1), given, second=False)
    check(lambda torch, x: torch.nn.functional.adaptive_avg_pool2d(x, (4, 5)), given, second=False)


@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=str)
@pytest.mark.parametrize("kernel", [2, 3])
@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_avg_pool(spatial: int, kernel: int, options: dict[str, Any], include: bool) -> None:
    name = f"avg_pool{spatial}d"
    check(lambda torch, x: getattr(torch.nn.functional, name)(x, kernel, count_include_pad=include, **options),
          data(*SHAPES[spatial]))


@pytest.mark.parametrize("spatial", [2, 3])
def test_avg_pool_divisor(spatial: int) -> None:
    name = f"avg_pool{spatial}d"
    check(lambda torch, x: getattr(torch.nn.functional, name)(x, 3, 2, 1, divisor_override=5), data(*SHAPES[spatial]))
    check(lambda torch, x: getattr(torch.nn.functional, name)(x, (2, 3, 2)[:spatial]), data(*SHAPES[spatial][1:]))


@pytest.mark.parametrize("kind", ["avg", "max"])
@pytest.mark.parametrize(("spatial", "size"), [(1, 1), (1, 4), (1, 11), (1, 15), (2, 1), (2, (3, 4)), (2, (5, 7)),
                                               (2, (None, 2)), (2, (12, 3)), (3, 1), (3, (2, 3, 5)), (3, (3, 4, 2))])
def test_adaptive_pool(kind: str, spatial: int, size: Any) -> None:
    name = f"adaptive_{kind}_pool{spatial}d"
    check(lambda torch, x: getattr(torch.nn.functional, name)(x, size), data(*SHAPES[spatial]))
    check(lambda torch, x: getattr(torch.nn.functional, name)(x, size), data(*SHAPES[spatial][1:]))
    if kind == "max":
        check(lambda torch, x: getattr(torch.nn.functional, name)(x, size, True), data(*SHAPES[spatial]))


@pytest.mark.parametrize("norm", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_lp_pool(spatial: int, norm: float) -> None:
    name = f"lp_pool{spatial}d"
    check(lambda torch, x: getattr(torch.nn.functional, name)(x, norm, 2, 1, True),
          data(*SHAPES[spatial], low=0.2), tolerance=2e-4)


@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_max_unpool(spatial: int, padding: int) -> None:
    def run(torch: Any, x: Any) -> Any:
        F = torch.nn.functional
        pooled, indices = getattr(F, f"max_pool{spatial}d")(x, 2, padding=padding, return_indices=True)
        return getattr(F, f"max_unpool{spatial}d")(pooled, indices, 2, padding=padding, output_size=x.shape)

    check(run, data(*SHAPES[spatial]))


@pytest.mark.parametrize("call", [
    lambda F, x: F.max_pool2d(x[0, 0], 2),
    lambda F, x: F.max_pool2d(x, 2, padding=2),
    lambda F, x: F.max_pool2d(x[:, :, :1, :1], 2),
    lambda F, x: F.max_pool2d(x, 2, stride=0),
    lambda F, x: F.max_pool2d(x, (2, 2, 2)),
    lambda F, x: F.max_pool2d(x, 2, dilation=0),
    lambda F, x: F.max_pool2d(x[:, :0], 2),
    lambda F, x: F.max_pool1d(x, 2),
    lambda F, x: F.max_pool1d(x[0], 2, padding=2),
    lambda F, x: F.avg_pool2d(x, 2, padding=2),
    lambda F, x: F.avg_pool2d(x, 2, divisor_override=0),
    lambda F, x: F.avg_pool1d(x, 2),
    lambda F, x: F.adaptive_avg_pool2d(x[0, 0], 2),
    lambda F, x: F.adaptive_avg_pool2d(x, -1),
    lambda F, x: F.adaptive_avg_pool1d(x, 1),
    lambda F, x: F.adaptive_max_pool2d(x[0, 0], 2),
    lambda F, x: F.max_unpool2d(x, (x * 0 + 50).long(), 1),
    lambda F, x: F.max_unpool2d(x, (x * 0).int(), 2),
    lambda F, x: F.max_unpool2d(x, (x * 0).long(), 2, output_size=(20, 20)),
])
def test_errors(call: Any) -> None:
    check_error(lambda torch, x: call(torch.nn.functional, x), data(1, 2, 4, 4))


@pytest.mark.parametrize("call", [
    lambda F, x: F.max_pool2d(x, 2),
    lambda F, x: F.max_pool1d(x[0], 2),
    lambda F, x: F.avg_pool2d(x, 2),
    lambda F, x: F.adaptive_avg_pool2d(x, 1),
    lambda F, x: F.adaptive_avg_pool2d(x, 3),
    lambda F, x: F.adaptive_max_pool2d(x, 3),
])
def test_nesting(call: Any) -> None:
    def run(torch: Any) -> list[tuple[str, Any]]:
        x = make(torch, data(2, 3, 6, 6), True)
        call(torch.nn.functional, x).sum().backward()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
            call(torch.nn.functional, x).sum().backward()
        return [(e.name, e.cpu_parent.name if e.cpu_parent else None) for e in profiler.events() if "pool" in e.name]

    assert run(ours) == run(theirs)


def test_order_of_adaptive_maxima():
    found = []
    for t in (ours, theirs):
        line, image = t.ones(2, 5, 9), t.ones(2, 3, 8, 8)
        made = [t.nn.functional.adaptive_max_pool1d(line, 3), t.nn.functional.adaptive_max_pool1d(line.mT, 3),
                t.nn.functional.adaptive_max_pool2d(image, 2),
                t.nn.functional.adaptive_max_pool2d(image.contiguous(memory_format=t.channels_last), 2),
                t.nn.functional.adaptive_max_pool3d(t.ones(2, 3, 4, 4, 4), 2)]
        found.append([one.stride() for one in made])
        assert made[0].view(2, -1).shape == (2, 15)
    assert found[0] == found[1]
