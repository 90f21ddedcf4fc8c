"""The autograd function of an op that a program defined: `GeneratedBackwardFor_ns_name_default`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .._autograd.function import Function
from .._tensor import Tensor


class Formula(NamedTuple):
    """What `register_autograd` was given; no backward means that a gradient cannot pass."""

    backward: Callable[..., Any] | None
    setup_context: Callable[..., Any] | None


class Layout:
    """Where lists of tensors are among values; autograd knows only tensors that are values themselves."""

    def __init__(self, values: Any) -> None:
        self.sizes: list[int | None] = [
            len(value) if isinstance(value, list) and all(isinstance(one, Tensor) for one in value) else None
            for value in values]

    @staticmethod
    def flatten(values: Any, sizes: list[int | None]) -> list[Any]:
        """The values with the items of such lists in their place."""
        flat: list[Any] = []
        for value, size in zip(values, sizes, strict=True):
            flat += [value] if size is None else value
        return flat

    def unflatten(self, flat: Any) -> list[Any]:
        """The values with their lists restored."""
        items = iter(flat)
        return [next(items) if size is None else [next(items) for _ in range(size)] for size in self.sizes]

    def fits(self, values: Any) -> bool:
        """Whether values, which may be missing one by one, have lists in the same places."""
        return len(values) == len(self.sizes) and all(
            not isinstance(value, list) if size is None else isinstance(value, list) and len(value) == size
            for value, size in zip(values, self.sizes, strict=True))

    def __str__(self) -> str:
        return "(" + ", ".join("*" if size is None else f"[{', '.join('*' * size)}]" for size in self.sizes) + ")"


class Call:
    """What one call needs besides its tensors; passed along as the function's last argument."""

    def __init__(self, values: Any, inputs: list[Any], below: Callable[[Any], Any]) -> None:
        self.values = values
        self.below = below  # computes the results from the values
        self.inputs = inputs
        self.layout = Layout(inputs)
        self.result_layout: Layout | None = None  # of several results, or None


def autograd_function(definition: Any) -> Any:
    """The class, whose `call` takes the op's arguments."""
    schema = definition.schema
    positional = sum(not a.kwarg_only for a in schema.arguments)
    named = [a.name for a in schema.arguments[positional:]]
    has_lists = any(a.is_tensor and a.is_list for a in (*schema.arguments, *schema.returns))

    def forward(ctx: Any, *args: Any) -> Any:
        call: Call = args[-1]
        result = call.below(call.values)
        setup = definition.formula.setup_context
        if setup is not None:
            more = {"keyword_only_inputs": dict(zip(named, call.values[positional:], strict=True))} if named else {}
            setup(ctx=ctx, inputs=tuple(call.values[:positional]), output=result, **more)
        if not has_lists:
            return result
        listed = list(result) if isinstance(result, tuple) else [result]
        call.result_layout = Layout(listed)
        # Not the call itself: the graph would keep its arguments.
        ctx._layouts = (call.layout, call.result_layout)
        return tuple(Layout.flatten(listed, call.result_layout.sizes))

    def backward(ctx: Any, *grads: Any) -> Any:
        formula = definition.formula.backward
        if formula is None:
            raise RuntimeError(f"Trying to backward through {definition} but no autograd formula was registered. "
                               "Please use register_autograd to add one.")
        needed = ctx.needs_input_grad
        shown = needed[:-1]
        if has_lists:
            layout, result_layout = ctx._layouts
            shown = tuple(layout.unflatten(shown))
            grads = tuple(result_layout.unflatten(grads))
        ctx.needs_input_grad = shown
        try:
            result = formula(ctx, *grads)
        finally:
            ctx.needs_input_grad = needed
        listed = result if isinstance(result, tuple) else (result,)
        if not has_lists:
            return (*listed, None)
        if not layout.fits(listed):
            raise RuntimeError("Expected the return from backward to be of the same structure as the inputs. Got: "
                               f"{Layout(listed)} (return from backward), {layout} (inputs)")
        return (*Layout.flatten(listed, layout.sizes), None)

    def call(values: Any, below: Callable[[Any], Any]) -> Any:
        made = Call(values, definition.spread(values)[0], below)
        if not has_lists:
            return generated.apply(*made.inputs, made)
        flat = generated.apply(*Layout.flatten(made.inputs, made.layout.sizes), made)
        listed = made.result_layout.unflatten(flat)  # type: ignore[union-attr]
        return listed[0] if len(definition.schema.returns) == 1 else tuple(listed)

    name = f"GeneratedBackwardFor_{definition.namespace}_{definition.name}_{definition.overload or 'default'}"
    generated: Any = type(name, (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward),
                                              "call": staticmethod(call)})
    return generated
