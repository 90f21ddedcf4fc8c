"""Whatever a program calls, its profile shows the same top-level ops as PyTorch's, with the same input shapes.

Every form is run once on both modules, all of them in one recording per module, each inside a scope of its own; what is
compared is what lies directly below the scope and, for operators and functions, below that of the form's backward.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from call_forms import FUNCTIONAL, FUNCTIONS, LINALG_FFT_SPECIAL, OPERATORS, WITHOUT_GRAD
from call_inputs import names_in, namespace, with_gradients
from harness import flat, floating, ours, theirs
from known_rows import KNOWN, REASONS
from module_forms import DISTRIBUTIONS, MODULES, OPTIMIZERS, OPTIMIZERS_AS_GIVEN, SCHEDULERS, UTILITIES

Made = Callable[[Any], Callable[[], Any]]


def listed(text: str, separator: str = "\n") -> list[str]:
    return [form.strip() for line in text.strip().split("\n") for form in line.split(separator)]


def expression(source: str, grad: bool) -> Made:
    """A form that is one expression or statement."""
    try:
        code = compile(source, "<form>", "eval")
    except SyntaxError:
        code = compile(source, "<form>", "exec")
    wanted = names_in(code)

    def make(torch: Any) -> Callable[[], Any]:
        space = namespace(torch, wanted, grad)
        return lambda: eval(code, space)

    return make


def prepared(source: str) -> Made:
    """A form `made | called`, of which only the call is recorded."""
    before, after = (compile(part, "<form>", "eval") for part in source.split(" | "))

    def make(torch: Any) -> Callable[[], Any]:
        for name in ("nn.utils.parametrizations", "nn.utils.prune", "utils.checkpoint"):
            importlib.import_module(f"{torch.__name__}.{name}")
        space = namespace(torch, names_in(before) | names_in(after), False)
        space["f"] = eval(before, space)
        return lambda: eval(after, space)

    return make


def optimizer(source: str, option: str) -> Made:
    """The second step of an optimizer, when its state exists."""

    def make(torch: Any) -> Callable[[], Any]:
        parameters = with_gradients(torch, 2)
        made = eval(f"torch.optim.{source[:-1]}{option})", {"torch": torch, "f": parameters})

        def closure() -> Any:
            made.zero_grad()
            loss = sum((p ** 2).sum() for p in parameters)
            loss.backward()
            return loss

        def step() -> None:
            made.step()
            made.zero_grad()

        if source.startswith("LBFGS"):
            return lambda: made.step(closure)
        made.step()
        return step

    return make


def scheduler(source: str) -> Made:
    def make(torch: Any) -> Callable[[], Any]:
        inner = torch.optim.SGD(with_gradients(torch, 1), lr=0.1, momentum=0.9)
        inner.step()
        made = eval(f"torch.optim.lr_scheduler.{source}", {"torch": torch, "g": inner})
        return lambda: made.step(*((1.0,) if "Plateau" in source else ()))

    return make


def distribution(source: str, call: str) -> Made:
    code = compile(f"torch.distributions.{source}", "<form>", "eval")

    def make(torch: Any) -> Callable[[], Any]:
        made = eval(code, namespace(torch, names_in(code), False))
        value = made.sample()
        return lambda: eval(call, {"d": made, "value": value})

    return make


def all_forms() -> dict[str, Made]:
    """Every form by the text it is known under."""
    forms: dict[str, Made] = {}
    for text in (OPERATORS, FUNCTIONS, FUNCTIONAL, LINALG_FFT_SPECIAL):
        forms |= {source: expression(source, True) for source in listed(text, ";")}
    forms |= {source: expression(source, False) for source in listed(WITHOUT_GRAD, ";")}
    forms |= {source: prepared(source) for text in (MODULES, UTILITIES) for source in listed(text)}
    for option in ("", ", foreach=False", ", foreach=True"):
        forms |= {f"{source[:-1]}{option})": optimizer(source, option) for source in listed(OPTIMIZERS)
                  if not option or not source.startswith(("Muon", "Adafactor"))}
    forms |= {source: optimizer(source, "") for source in listed(OPTIMIZERS_AS_GIVEN)}
    forms |= {source: scheduler(source) for source in listed(SCHEDULERS)}
    for call in ("d.sample()", "d.log_prob(value)", "d.entropy()"):
        forms |= {f"{source}: {call}": distribution(source, call) for source in listed(DISTRIBUTIONS)}
    return forms


FORMS = all_forms()
DIFFERENTIATED = {source for text in (OPERATORS, FUNCTIONS, FUNCTIONAL, LINALG_FFT_SPECIAL)
                  for source in listed(text, ";")}
Rows = list[tuple[str, str]]


def recorded(torch: Any) -> dict[str, Rows | str]:
    """The rows of every form and of its backward, or the error that it raised."""
    found: dict[str, Rows | str] = {}
    calls: dict[str, Callable[[], Any]] = {}
    for name, make in FORMS.items():
        torch.manual_seed(0)
        try:
            calls[name] = make(torch)
        except Exception as error:
            found[name] = type(error).__name__
    scope = torch.profiler.record_function
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as prof:
        for name, call in calls.items():
            try:
                with scope(f"form {name}"):
                    result = call()
            except Exception as error:
                found[name] = type(error).__name__
                continue
            output = next((t for t in flat(result) if floating(t) and t.grad_fn is not None), None)
            if output is not None and name in DIFFERENTIATED:
                gradient = torch.ones_like(output.detach())
                try:
                    with scope(f"back {name}"):
                        torch.autograd.backward(output, gradient)
                except RuntimeError:
                    found[f"{name} backward"] = "RuntimeError"
    for event in prof.events():
        kind, _, name = event.name.partition(" ")
        if kind in ("form", "back") and name in FORMS:
            rows = [(child.name, str(child.input_shapes)) for child in event.cpu_children]
            found.setdefault(name if kind == "form" else f"{name} backward", rows)
    return found


@pytest.fixture(scope="module")
def rows() -> tuple[dict[str, Any], dict[str, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return recorded(ours), recorded(theirs)


def marked(name: str) -> Any:
    reason = REASONS[KNOWN[name]] if name in KNOWN else None
    return pytest.param(name, marks=pytest.mark.xfail(reason=reason, strict=True)) if reason else name


@pytest.mark.parametrize("name", [marked(name) for name in FORMS])
def test_top_level_rows(rows, name):
    got, want = rows
    assert got[name] == want[name]
    assert want[name] == "NotImplementedError" or not isinstance(want[name], str), "the form itself is wrong"
    assert got.get(f"{name} backward") == want.get(f"{name} backward")


def test_known_differences_are_forms():
    assert set(KNOWN) <= set(FORMS)
    assert set(KNOWN.values()) == set(REASONS)
