"""Functions of some columns of a sample, which is a list, a tuple or a dictionary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def check_columns(input_col: Any, output_col: Any) -> None:
    """Refuse combinations that mean nothing."""
    if input_col is None and output_col is not None:
        raise ValueError("`output_col` must be None when `input_col` is None.")
    if isinstance(output_col, (list, tuple)) and len(output_col) > 1:
        raise ValueError("`output_col` must be a single-element list or tuple")


def columns_of(sample: Any, input_col: Any) -> list[Any]:
    """What a function is given: the sample, one of its columns, or several."""
    if input_col is None:
        return [sample]
    return [sample[column] for column in (input_col if isinstance(input_col, (list, tuple)) else [input_col])]


def apply_to_columns(fn: Callable[..., Any], sample: Any, input_col: Any, output_col: Any) -> Any:
    """`fn` of some columns, in place of the first of them or in the column `output_col`; -1 stands for a new one."""
    result = fn(*columns_of(sample, input_col))
    if input_col is None:
        return result
    several = isinstance(input_col, (list, tuple))
    target = output_col[0] if isinstance(output_col, (list, tuple)) else output_col
    changed = list(sample) if isinstance(sample, tuple) else sample.copy()
    if output_col is None:
        changed[input_col[0] if several else input_col] = result
        for column in sorted(input_col[1:], reverse=True) if several else ():
            del changed[column]
    elif target == -1 and not isinstance(changed, dict):
        changed.append(result)
    else:
        changed[target] = result
    return tuple(changed) if isinstance(sample, tuple) else changed
