"""The code of an op's functions: written at the first use on a machine, and then kept on disk."""

from __future__ import annotations

import functools
import importlib.util
import sys
from hashlib import blake2b
from types import CodeType
from typing import NamedTuple

from . import autocast_lists, codegen, describe, graph_codegen, out_rules, schema
from .code_cache import CACHE
from .describe import describer_source, list_lengths
from .facts import Facts
from .native import NATIVE

WRITERS = (autocast_lists, codegen, describe, graph_codegen, out_rules, schema, sys.modules[__name__])


class Recipe(NamedTuple):
    """The code of an op's function, and of its nodes: their function, their slots, and the slots that hold tensors."""

    function: CodeType
    apply: CodeType | None
    slots: tuple[str, ...]
    saved: tuple[str, ...]


@functools.cache
def _stamp() -> str | None:
    """The identity of the code writers that wrote a text: a digest of their sources. None if these cannot be read.

    While the interpreter ends, its loaders read nothing (an ImportError).
    """
    digest = blake2b(repr((importlib.util.MAGIC_NUMBER, sys.flags.optimize, NATIVE is None)).encode(), digest_size=16)
    for module in WRITERS:
        loader, path = module.__spec__.loader, module.__spec__.origin  # type: ignore[union-attr]
        try:
            digest.update(loader.get_data(path))  # type: ignore[union-attr]
        except (AttributeError, ImportError, OSError):
            return None
    return digest.hexdigest()


def recipe(facts: Facts) -> Recipe:
    """The recipe of one form of an op."""
    return Recipe(*CACHE.kept(_stamp(), repr(tuple(facts)), lambda: _written(facts)))


def is_kept(facts: Facts) -> bool:
    """Whether the recipe of one form of an op is on disk."""
    return CACHE.has(_stamp(), repr(tuple(facts)))


def _written(facts: Facts) -> Recipe:
    writer = codegen.Writer(facts)
    kind = "op" if facts.namespace == "aten" else facts.namespace
    function = compile(writer.source(), f"<mindtorch_v2 {kind} {writer.name}>", "exec")
    apply = None
    if facts.formulas:
        apply = compile(writer.apply_source(), f"<mindtorch_v2 backward of {writer.schema.name}>", "exec")
    return Recipe(function, apply, tuple(dict.fromkeys(writer.slots.values())), tuple(writer.saved))


def inputs_recipe(schema_text: str) -> tuple[CodeType, list[int]]:
    """The code that describes an op's arguments, and the length of the list that a number stands for in each of
    them."""
    return CACHE.kept(_stamp(), f"inputs of {schema_text}", lambda: _written_inputs(schema_text))


def _written_inputs(schema_text: str) -> tuple[CodeType, list[int]]:
    parsed = schema.parse_schema(schema_text)
    tensors = {a.python_name for a in parsed.arguments if a.is_tensor and not a.is_list}
    text = describer_source([a.python_name for a in parsed.arguments], tensors)
    return compile(text, f"<mindtorch_v2 inputs of {parsed.name}>", "exec"), list_lengths(parsed.arguments)
