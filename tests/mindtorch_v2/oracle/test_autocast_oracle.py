"""Autocast on the CPU casts the ops that PyTorch casts, to the dtypes that PyTorch casts them to."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from itertools import cycle, repeat
from typing import Any

import pytest
from autocast_cases import CASES
from harness import check, check_error, data, ours, theirs
from torch.utils._python_dispatch import TorchDispatchMode

from mindtorch_v2._dispatch.autocast_lists import POLICIES
from mindtorch_v2._dispatch.registry import OVERLOADS

# -- the lists, asked from PyTorch -------------------------------------------------------------------------------------


def listed_by_pytorch() -> set[str]:
    names = theirs._C._dispatch_get_all_op_names()
    return {name.removeprefix("aten::") for name in names if name.startswith("aten::")
            and theirs._C._dispatch_has_kernel_for_dispatch_key(name, "AutocastCPU")}


class Casts(TorchDispatchMode):
    """Notes the dtypes that tensors are converted to."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is theirs.ops.aten._to_copy.default:
            self.seen.append(kwargs.get("dtype"))
        return func(*args, **(kwargs or {}))


def made_up(kind: str, dtypes: Iterator[Any]) -> Any:
    """Some argument of a type; whether the op likes its value does not matter, as the casts come first."""
    if kind in ("Tensor", "Optional[Tensor]"):
        return theirs.ones(2, 2, dtype=next(dtypes))
    if kind == "List[Tensor]":
        return [theirs.ones(2, 2, dtype=next(dtypes)) for _ in range(2)]
    if kind.startswith("Optional"):
        return None
    return {"int": 1, "float": 1.0, "bool": False, "number": 1, "List[int]": [1], "str": "valid"}[kind]


def casts(key: str, dtypes: Iterator[Any]) -> list[Any]:
    """What PyTorch casts arguments of the given dtypes to."""
    name, _, overload = key.partition(".")
    op = getattr(getattr(theirs.ops.aten, name), overload or "default")
    values = [(a, made_up(str(a.type), dtypes)) for a in op._schema.arguments]
    positional = [value for a, value in values if not a.kwarg_only]
    # Most ops refuse what is made up here, after casting it.
    with theirs.autocast("cpu"), Casts() as found, contextlib.suppress(RuntimeError, IndexError, ValueError):
        op(*positional, **{a.name: value for a, value in values if a.kwarg_only})
    return found.seen


def test_the_lists_name_pytorchs_ops() -> None:
    assert set(POLICIES) == listed_by_pytorch()


@pytest.mark.parametrize("key", sorted(POLICIES))
def test_the_policy_is_pytorchs(key: str) -> None:
    full, low = theirs.float32, theirs.bfloat16
    found = None
    if low in casts(key, repeat(full)):
        found = "lower"
    elif full in casts(key, repeat(low)):
        found = "float32"
    elif full in casts(key, cycle([low, full])):
        found = "widest"
    assert found == POLICIES[key]


# -- every listed op that exists here ----------------------------------------------------------------------------------


# Reached only through other listed ops, which cast before them.
INTERNAL = {"_addmm_activation", "_convolution.deprecated", "_grid_sampler_2d_cpu_fallback", "_lu_with_info",
            "_native_multi_head_attention", "multilabel_margin_loss_forward"}


def test_every_listed_op_has_a_case() -> None:
    assert set(CASES) == set(POLICIES) - INTERNAL


def missing(key: str) -> bool:
    """Whether no overload of a listed op exists in this runtime."""
    ours._load_late()
    return key.partition(".")[0] not in OVERLOADS


def pattern(name: str, count: int, low: str) -> list[str]:
    return [low if name == "low" or (name == "mixed" and i % 2 == 0) else "float32" for i in range(count)]


def refusal(torch: Any, call: Any, given: list[Any]) -> str | None:
    """The text with which a call is refused."""
    try:
        call(torch, *[torch.tensor(content.tolist(), dtype=getattr(torch, kind)) for content, kind in given])
    except (RuntimeError, ValueError) as error:
        return str(error)
    return None


@pytest.mark.parametrize("dtypes", ["full", "low", "mixed"])
@pytest.mark.parametrize("low", ["bfloat16", "float16"])
@pytest.mark.parametrize("key", sorted(CASES))
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_values_dtypes_and_gradients(key: str, low: str, dtypes: str) -> None:
    if missing(key):
        pytest.skip("this runtime does not have the op")
    function, shapes = CASES[key]

    def call(torch: Any, *tensors: Any) -> Any:
        with torch.autocast("cpu", dtype=getattr(torch, low)):
            return function(torch, *tensors)

    given = [data(*shape, dtype=kind, seed=i) for i, (shape, kind)
             in enumerate(zip(shapes, pattern(dtypes, len(shapes), low), strict=True))]
    refused = refusal(theirs, call, given)
    if refused is not None and "primitive descriptor" in refused:
        pytest.skip("PyTorch's kernel library has no such kernel for this processor")
    if refused is not None:
        assert refusal(ours, call, given) is not None, refused
        return
    check(call, *given, second=False, nodes=False, tolerance=1e-2)


# -- what autocast leaves alone ----------------------------------------------------------------------------------------


def under(torch: Any, function: Any) -> Any:
    with torch.autocast("cpu"):
        return function()


@pytest.mark.parametrize("function", [
    lambda torch, x: x.double() @ x.double(),
    lambda torch, x: x.int() @ x.int(),
    lambda torch, x: torch.mm(x, x, out=torch.empty(4, 4)),
    lambda torch, x: x.clone().addmm_(x, x),
    lambda torch, x: x + x.bfloat16(),
    lambda torch, x: x.exp(),
    lambda torch, x: torch.softmax(x.bfloat16(), 0),
    lambda torch, x: torch.cat([x.double(), x]),
    lambda torch, x: torch.cat([x.int(), x.bfloat16()]),
    lambda torch, x: torch.prod(x.bfloat16(), 0, dtype=torch.float64),
    lambda torch, x: x.to(torch.complex64) @ x.to(torch.complex64),
    lambda torch, x: torch.nn.functional.layer_norm(x, (4,)),
    lambda torch, x: torch.einsum("ij,jk->ik", x, x),
    lambda torch, x: torch.nn.functional.gelu(x @ x),
])
def test_other_dtypes_and_forms(function: Any) -> None:
    check(lambda torch, x: under(torch, lambda: function(torch, x)), data(4, 4), grad=False, tolerance=5e-2)


def test_meta_tensors_are_not_cast() -> None:
    for torch in (ours, theirs):
        x = torch.empty(4, 4, device="meta")
        assert under(torch, lambda x=x: x @ x).dtype == torch.float32


@pytest.mark.parametrize("function", [
    lambda torch, x: torch.cat([x.half(), x]),
    lambda torch, x: torch.stack([x.half(), x.half()]),
    lambda torch, x: x.double() @ x,
    lambda torch, x: torch.mm(x, torch.ones(3, 3)),
])
def test_errors_inside(function: Any) -> None:
    check_error(lambda torch, x: under(torch, lambda: function(torch, x)), data(4, 4))


# -- state -------------------------------------------------------------------------------------------------------------


def names(torch: Any, function: Any) -> list[str]:
    with torch.profiler.profile() as prof:
        function()
    return [event.name for event in prof.events()]


def conversions(torch: Any, function: Any) -> int:
    return names(torch, function).count("aten::_to_copy")


def cache_story(torch: Any) -> list[Any]:
    """How often operands are converted in a number of situations."""
    x, w = torch.ones(4, 4), torch.ones(4, 4, requires_grad=True)
    seen: list[Any] = []

    def note(operand: Any = w) -> None:
        seen.append(conversions(torch, lambda: x @ operand))

    with torch.autocast("cpu"):
        note()
        note()
        with torch.no_grad():
            note()
        with torch.inference_mode():
            note()
        for operand in (w.view(4, 4), w * 1, w.detach()):
            note(operand)
            note(operand)
        with torch.autocast("cpu", enabled=False):
            note()
        note()
        torch.clear_autocast_cache()
        note()
    with torch.autocast("cpu"):
        with torch.no_grad():
            note()
        note()
        seen.append((x @ w).requires_grad)
    with torch.autocast("cpu", cache_enabled=False):
        note()
        note()
        with torch.autocast("cpu"):
            note()
            note()
            seen.append(torch.is_autocast_cache_enabled())
    torch.set_autocast_enabled("cpu", True)
    note()
    torch.set_autocast_enabled("cpu", False)
    with torch.autocast("cpu"):
        note()
        before = x @ w
        w.data.add_(1)
        seen.append(torch.equal(before, x @ w))
    return seen


def test_parameters_are_cast_once() -> None:
    assert cache_story(ours) == cache_story(theirs)


def nesting_story(torch: Any) -> list[str]:
    x = torch.ones(2, 2)
    seen: list[Any] = []

    def note() -> None:
        seen.extend(str(value) for value in ((x @ x).dtype, torch.is_autocast_enabled("cpu"),
                                             torch.is_autocast_enabled(), torch.get_autocast_dtype("cpu")))

    block = torch.autocast("cpu")

    @torch.autocast("cpu", dtype=torch.float16)
    def decorated() -> None:
        note()

    with block:
        note()
        with torch.autocast("cpu", enabled=False):
            note()
            with torch.autocast("cpu", dtype=torch.float16):
                note()
            note()
        decorated()
        note()
        with pytest.raises(ZeroDivisionError), torch.autocast("cpu", dtype=torch.float16):
            raise ZeroDivisionError
        note()
    note()
    seen.extend(str(f()) for f in (torch.autocast_increment_nesting, torch.autocast_increment_nesting,
                                   torch.autocast_decrement_nesting, torch.autocast_decrement_nesting))
    return seen


def test_nesting() -> None:
    assert nesting_story(ours) == nesting_story(theirs)


@pytest.mark.parametrize("device", ["cpu", "cuda", "xpu", "mps", "hpu", "mtia", "maia", "ipu", "xla", "meta"])
def test_device_types(device: str) -> None:
    def facts(torch: Any) -> list[str]:
        found = [str(torch.amp.is_autocast_available(device))]
        for ask in (torch.get_autocast_dtype, torch.is_autocast_enabled):
            try:
                found.append(str(ask(device)))
            except RuntimeError as error:
                found.append(str(error))
        return found

    assert facts(ours) == facts(theirs)


@pytest.mark.parametrize("call", [
    lambda torch: torch.autocast("cpu", dtype=torch.float32),
    lambda torch: torch.autocast("cpu", "bfloat16"),
    lambda torch: torch.autocast("cuda"),
    lambda torch: torch.autocast("xpu", torch.float64),
    lambda torch: torch.autocast("xpu"),
    lambda torch: torch.autocast("cuda", enabled=False),
    lambda torch: torch.cuda.amp.autocast(),
    lambda torch: torch.cpu.amp.autocast(),
    lambda torch: torch.cpu.amp.autocast(dtype=torch.float16, enabled=False),
])
def test_what_is_warned_about(call: Any) -> None:
    def seen(torch: Any) -> tuple[Any, ...]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            made = call(torch)
        texts = sorted((w.category.__name__, str(w.message)) for w in caught)
        return made._enabled, made.device, str(made.fast_dtype), made._cache_enabled, texts

    assert seen(ours) == seen(theirs)


@pytest.mark.parametrize("call", [
    lambda torch: torch.autocast(3),
    lambda torch: torch.autocast("meta"),
    lambda torch: torch.autocast("nowhere"),
    lambda torch: torch.autocast("cpu")(3),
    lambda torch: torch.is_autocast_enabled(3),
    lambda torch: torch.set_autocast_enabled("cpu", 3),
    lambda torch: torch.set_autocast_enabled(),
    lambda torch: torch.set_autocast_dtype("cpu", 3),
    lambda torch: torch.set_autocast_cache_enabled(3),
    lambda torch: torch.set_autocast_enabled("meta", True),
    lambda torch: torch.amp.is_autocast_available(3),
    lambda torch: torch.amp.custom_fwd(device_type=3),
    lambda torch: torch.amp.custom_bwd(device_type=3),
])
def test_what_is_refused(call: Any) -> None:
    check_error(call)
