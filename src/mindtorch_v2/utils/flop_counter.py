"""`torch.utils.flop_counter`: floating point operations of products and convolutions, by module.

>>> import mindtorch_v2 as torch
>>> from mindtorch_v2.utils.flop_counter import FlopCounterMode
>>> with FlopCounterMode(display=False) as counter:
...     y = torch.ones(2, 3) @ torch.ones(3, 4)
>>> counter.get_total_flops()
48
"""

from __future__ import annotations

import functools
import math
import warnings
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from .._ops.recurrent import layer_flops
from .._tensor import Tensor
from ..ops import aten
from ._python_dispatch import TorchDispatchMode
from ._pytree import tree_map
from .module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]

Formula = Callable[..., int]


def _shapes(values: Any) -> Any:
    return tree_map(lambda value: value.shape if isinstance(value, Tensor) else value, values)


def on_shapes(formula: Formula) -> Formula:
    """A formula on shapes as one on tensors."""

    @functools.wraps(formula)
    def wrapped(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        return formula(*_shapes(args), out_shape=_shapes(out_val), **_shapes(kwargs))

    return wrapped


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Formula], Formula]:
    """A decorator: this formula counts an op, from shapes or, with `get_raw`, from the tensors."""

    def register(formula: Formula) -> Formula:
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = formula if get_raw else on_shapes(formula)
        return formula

    return register


flop_registry: dict[Any, Formula] = {}


@register_flop_formula(aten.mm)
def mm_flop(a_shape: Any, b_shape: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """A matrix times a matrix."""
    return 2 * math.prod(a_shape) * b_shape[1]


@register_flop_formula(aten.addmm)
def addmm_flop(self_shape: Any, a_shape: Any, b_shape: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """The same; what is added does not count."""
    return mm_flop(a_shape, b_shape)


@register_flop_formula(aten.bmm)
def bmm_flop(a_shape: Any, b_shape: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """A batch of products."""
    return 2 * math.prod(a_shape) * b_shape[2]


@register_flop_formula(aten.baddbmm)
def baddbmm_flop(self_shape: Any, a_shape: Any, b_shape: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """The same; what is added does not count."""
    return bmm_flop(a_shape, b_shape)


def conv_flop_count(x_shape: Any, w_shape: Any, out_shape: Any, transposed: bool = False) -> int:
    """Each element of the output, or of the input if transposed, meets the whole kernel."""
    spatial = (x_shape if transposed else out_shape)[2:]
    return 2 * x_shape[0] * math.prod(spatial) * math.prod(w_shape)


@register_flop_formula(aten.convolution)
def conv_flop(x_shape: Any, w_shape: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
              *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """A convolution."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed)


@register_flop_formula(aten.convolution_backward)
def conv_backward_flop(grad_out_shape: Any, x_shape: Any, w_shape: Any, bias: Any, stride: Any, padding: Any,
                       dilation: Any, transposed: bool, output_padding: Any, groups: int, output_mask: Any,
                       out_shape: Any = None) -> int:
    """The gradients that are wanted."""
    count = 0
    if output_mask[0]:
        count += conv_flop_count(grad_out_shape, w_shape, x_shape, not transposed)
    if output_mask[1]:
        # Each element of the smaller image meets the other one, for every pair of channels.
        given, other = (grad_out_shape, x_shape) if transposed else (x_shape, grad_out_shape)
        count += 2 * given[1] * math.prod(w_shape[2:]) * math.prod(other)
    return count


@register_flop_formula([aten.mkldnn_rnn_layer, aten.mkldnn_rnn_layer_backward])
def recurrent_flop(x_shape: Any, w_shape: Any, state_w_shape: Any, *args: Any, out_shape: Any = None,
                   **kwargs: Any) -> int:
    """A layer over all its steps, or its gradients, which are seven."""
    back = len(out_shape) == 7
    return layer_flops(args[11 if back else 6], back, x_shape, w_shape, state_w_shape)


def sdpa_flop_count(query_shape: Any, key_shape: Any, value_shape: Any) -> int:
    """Attention: scores of queries and keys, and their product with the values."""
    *batch, queries, width = query_shape
    return 2 * math.prod(batch) * queries * key_shape[-2] * (width + value_shape[-1])


def sdpa_backward_flop_count(grad_out_shape: Any, query_shape: Any, key_shape: Any, value_shape: Any) -> int:
    """Its gradients: the scores once more, then those of scores, values, queries and keys."""
    *batch, queries, width = query_shape
    return 2 * math.prod(batch) * queries * key_shape[-2] * (3 * width + 2 * value_shape[-1])


suffixes = ["", "K", "M", "B", "T"]


def get_suffix_str(number: int) -> str:
    """The unit in which a number has two to four digits before the point."""
    return suffixes[max(0, min(len(suffixes) - 1, (len(str(number)) - 2) // 3))]


def convert_num_with_suffix(number: int, suffix: str) -> str:
    """A number in a unit, with three decimals."""
    power = suffixes.index(suffix)
    return f"{number / 1000**power:.3f}{suffix}" if power else str(number)


def convert_to_percent_str(num: float, denom: float) -> str:
    """A share, in percent."""
    return f"{num / denom:.2%}" if denom else "0%"


class _Counting(TorchDispatchMode):
    """Counts ops that there is a formula for."""

    def __init__(self, counter: FlopCounterMode) -> None:
        super().__init__()
        self.counter = counter

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the op and count it for every module that it is in."""
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        packet = func.overloadpacket
        formula = self.counter.flop_registry.get(packet)
        if formula is not None:
            count = formula(*args, **kwargs, out_val=out)
            for name in self.counter.mod_tracker.parents:
                self.counter.flop_counts[name][packet] += count
        return out


class FlopCounterMode:
    """Counts floating point operations of what runs inside, backward included, in all and by module."""

    def __init__(self, mods: Any = None, depth: int = 2, display: bool = True,
                 custom_mapping: dict[Any, Any] | None = None) -> None:
        if mods is not None:
            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.depth, self.display = depth, display
        self.mode: _Counting | None = None
        own = {op: formula if getattr(formula, "_get_raw", False) else on_shapes(formula)
               for op, formula in (custom_mapping or {}).items()}
        self.flop_registry = {**flop_registry, **own}
        self.mod_tracker = ModuleTracker()

    def get_total_flops(self) -> int:
        """All operations."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """Operations by module name, then by op."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """Modules down to a depth, with their ops, operations and share of the total."""
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        suffix = get_suffix_str(total)
        lines = []
        names = [name for name in sorted(self.flop_counts) if name != "Global" and name.count(".") < depth]
        # The whole is shown unless a module has all of it.
        if not any(sum(self.flop_counts[name].values()) >= total for name in names):
            names.insert(0, "Global")
        for name in names:
            counts = self.flop_counts.get(name, {})
            for label, count in [(name, sum(counts.values())), *((f"- {op}", count) for op, count in counts.items())]:
                lines.append((label, convert_num_with_suffix(count, suffix), convert_to_percent_str(count, total)))
        header = ("Module", "FLOP", "% Total")
        widths = [max(len(title) + 2, *(len(line[column]) for line in lines)) for column, title in enumerate(header)]
        texts = [f"{name:<{widths[0]}}  {count:>{widths[1]}}  {share:>{widths[2]}}"
                 for name, count, share in [header, *lines]]
        texts.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join(texts)

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        self.mode = _Counting(self)
        self.mode.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        assert self.mode is not None
        self.mode.__exit__(*exc)
        self.mode = None
        self.mod_tracker.__exit__(*exc)
        if self.display:
            print(self.get_table(self.depth))
