"""PyTorch's name for a call of this package, read from the place where the user's code makes the call.

Functions of this package are Python functions where PyTorch's are built-in. Several of them may share one code object:
`x.add(y)`, `torch.add(x, y)` and `x + y` run the same one, and only the calling instruction distinguishes them. Each
place is inspected once, so the cost does not matter. A function that is Python in PyTorch too is shown with the place
of its definition here.
"""

from __future__ import annotations

import dis
import os
import sys
from collections.abc import Iterator
from functools import lru_cache
from inspect import CO_OPTIMIZED
from types import CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

from ..._dispatch.registry import CHOOSERS
from ..._tensor import Tensor
from ..locks import items_now

_PACKAGE = __name__.partition(".")[0]
_FUNCTIONAL = f"{_PACKAGE}.nn.functional"

# Public functions and methods that are written in Python in PyTorch too.
_PYTHON_FUNCTIONS = """
    atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod cdist chain_matmul
    compile cond einsum from_dlpack get_rng_state initial_seed is_storage is_tensor load lobpcg lu manual_seed meshgrid
    norm pca_lowrank save seed set_default_device set_default_dtype set_default_tensor_type set_float32_matmul_precision
    set_printoptions set_rng_state split stft svd_lowrank sym_float sym_int sym_max sym_min sym_not tensordot typename
    unique unique_consecutive unravel_index use_deterministic_algorithms while_loop
    are_deterministic_algorithms_enabled get_default_device get_float32_matmul_precision set_warn_always
    is_warn_always_enabled get_deterministic_debug_mode set_deterministic_debug_mode
    is_deterministic_algorithms_warn_only_enabled"""
_PYTHON_METHODS = """
    backward dim_order is_shared istft lu module_load norm register_hook register_post_accumulate_grad_hook reinforce
    resize resize_as share_memory_ split stft storage storage_type to_sparse_coo unflatten unique
    unique_consecutive"""
PYTHON_FUNCTIONS = frozenset(_PYTHON_FUNCTIONS.split())
PYTHON_METHODS = frozenset(_PYTHON_METHODS.split())
# The built-in part of nn.functional: methods of a class, and functions of a module, one of them with another name.
_FUNCTIONAL_METHODS = """
    adaptive_avg_pool1d avg_pool1d bilinear celu_ channel_shuffle conv1d conv2d conv3d conv_tbc conv_transpose1d
    conv_transpose2d conv_transpose3d cosine_similarity hardshrink native_channel_shuffle pairwise_distance pdist
    pixel_shuffle pixel_unshuffle prelu relu_ rrelu_ selu_ threshold_"""
_FUNCTIONAL_FUNCTIONS = """
    avg_pool2d avg_pool3d elu_ gelu hardtanh_ leaky_relu_ linear one_hot scaled_dot_product_attention softplus
    softshrink"""
FUNCTIONAL = {
    **{name: f"method {name} of type object" for name in _FUNCTIONAL_METHODS.split()},
    **{name: f"function {name}" for name in _FUNCTIONAL_FUNCTIONS.split()},
    "logsigmoid": "function log_sigmoid",
}
_PREFIXED = {f"{_PACKAGE}.{name}": name for name in ("fft", "linalg", "special")}

# Where Python functions of PyTorch have their counterparts: modules, and classes of modules.
_PYTHON_MODULES = (f"{_PACKAGE}.autograd",)
_PYTHON_CLASSES = ((f"{_PACKAGE}.nn.modules.module", "Module"), (f"{_PACKAGE}.optim.optimizer", "Optimizer"))
_FACES = (f"{_PACKAGE}._faces", "FACES")
_STEP_CALL = "_optimizer_step_code"
_PARENT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))) + os.sep

_codes: dict[int, list[str]] = {}
_python_codes: dict[int, CodeType] = {}
_counted: tuple[int, ...] = ()


def tells_of_a_step(code: CodeType) -> bool:
    """Whether it is the call that marks an optimizer's step. PyTorch's trees have it: it names the optimizer."""
    if code.co_name != _STEP_CALL:
        return False
    optimizer = _member(*_PYTHON_CLASSES[-1])
    return optimizer is not None and optimizer._optimizer_step_code.__code__ is code


def _member(module: str, name: str) -> Any:
    """What a module has under a name, or None while the module is not fully imported."""
    return vars(sys.modules[module]).get(name) if module in sys.modules else None


def is_public(code: CodeType) -> bool:
    """Whether it is the code of a public function, so that the user's calls of it are shown."""
    return id(code) in stand_in_codes() or id(code) in _python_codes


def stand_in_codes() -> dict[int, list[str]]:
    """Identities of the code objects of public functions, with their public names, without compiled ops."""
    global _codes, _python_codes, _counted
    public = vars(sys.modules[_PACKAGE])
    further = [(name, vars(sys.modules[name])) for name in (_FUNCTIONAL, *_PREFIXED) if name in sys.modules]
    faces = _member(*_FACES)
    counted = (len(CHOOSERS), len(public), *(len(names) for _, names in further),
               sum(_member(*place) is not None for place in _PYTHON_CLASSES),
               # Functions that ask for overrides have other code.
               0 if faces is None else faces.changes)
    if counted != _counted:
        found: dict[int, list[str]] = {}
        named = [(name, function) for name, (function, _) in items_now(CHOOSERS)]
        named += [(name, value) for name, value in items_now(public) if name not in PYTHON_FUNCTIONS]
        methods = [] if faces is None else [(name, face.function) for name, face in items_now(faces.methods)]
        named += [(name, value) for name, value in (*items_now(vars(Tensor)), *methods) if name not in PYTHON_METHODS]
        for module, names in further:
            named += [(name, value) for name, value in items_now(names)
                      if module != _FUNCTIONAL or name in FUNCTIONAL]
        for name, value in named:
            if isinstance(value, FunctionType) and not name.startswith("_"):
                known = found.setdefault(id(value.__code__), [])
                if name not in known:
                    known.append(name)
        _codes, _counted = found, counted
        _python_codes = {id(code): code for code in _written_in_python(dict(further)) if id(code) not in found}
    return _codes


def _written_in_python(further: dict[str, dict[str, Any]]) -> Iterator[CodeType]:
    """The code of public functions that are Python functions in PyTorch too."""
    spaces = [{name: vars(sys.modules[_PACKAGE]).get(name) for name in PYTHON_FUNCTIONS},
              {name: vars(Tensor).get(name) for name in PYTHON_METHODS}, further.get(_FUNCTIONAL, {}),
              *(vars(sys.modules[name]) for name in _PYTHON_MODULES if name in sys.modules)]
    for place in _PYTHON_CLASSES:
        found = _member(*place)
        if found is not None:
            spaces += [vars(kind) for kind in found.__mro__[:-1]]
    for space in spaces:
        for name, value in items_now(space):
            if isinstance(value, FunctionType) and not name.startswith("_") and value.__code__.co_name == name:
                yield value.__code__
            elif isinstance(value, staticmethod):
                # Code from a decorator: everything that it decorates has this code.
                yield from (constant for constant in value.__func__.__code__.co_consts
                            if isinstance(constant, CodeType) and not constant.co_name.startswith("<"))


def called_name(caller: FrameType, instruction: int, code: CodeType) -> str | None:
    """PyTorch's name of the call of this code that a frame is making, or None if PyTorch does not show one."""
    if id(code) in _python_codes:
        return f"{code.co_filename.removeprefix(_PARENT)}({code.co_firstlineno}): {code.co_name}"
    place = _callable_at(caller.f_code, instruction)
    if place is None:
        return None
    attribute, chain = place
    if not chain:
        # The meaning of a name that the code calls directly. `map(torch.sin, tensors)` calls only `map`.
        value = _value(caller, attribute) if attribute else _UNKNOWN
        if value is _UNKNOWN:
            name = _public_name(code, code.co_name)
            return None if name in PYTHON_FUNCTIONS else f"<built-in method {name} of type object>"
        function: Any = value.__func__ if isinstance(value, MethodType) else value
        if getattr(function, "__code__", None) is not code:
            return None
        is_method = isinstance(value, MethodType) or function.__qualname__.startswith("Tensor.")
        owner = "Tensor" if is_method else "type"
        name = _public_name(code, function.__name__)
        builtin = name not in (PYTHON_METHODS if owner == "Tensor" else PYTHON_FUNCTIONS)
        return f"<built-in method {name} of {owner} object>" if builtin else None
    module = _module(caller, chain)
    if module is None:
        if attribute in PYTHON_METHODS or attribute not in vars(Tensor):
            return None
        return f"<built-in method {attribute} of Tensor object>"
    if module == _FUNCTIONAL:
        return f"<built-in {FUNCTIONAL[attribute]}>" if attribute in FUNCTIONAL else None
    if module in _PREFIXED:
        return f"<built-in function {_PREFIXED[module]}_{attribute}>"
    if module != _PACKAGE or attribute in PYTHON_FUNCTIONS:
        return None
    return f"<built-in method {attribute} of type object>"


def _public_name(code: CodeType, given: str) -> str:
    names = stand_in_codes().get(id(code), [])
    return names[0] if len(names) == 1 else given


_UNKNOWN = object()


def _value(frame: FrameType, name: str) -> Any:
    value = _local(frame, name)
    for names in (frame.f_globals, frame.f_builtins):
        if value is _UNKNOWN:
            value = names.get(name, _UNKNOWN)
    return value


def _local(frame: FrameType, name: str) -> Any:
    """A local variable's value.

    Before Python 3.13, asking a function's frame for them copies all its variables, and the frame keeps the copy. Its
    tensors would live until the function returns, so the copy is emptied again, unless the program itself has it.
    """
    names = frame.f_locals
    value = names.get(name, _UNKNOWN)
    if sys.version_info < (3, 13) and frame.f_code.co_flags & CO_OPTIMIZED and sys.getrefcount(names) <= 3:
        names.clear()
    return value


def _module(frame: FrameType, chain: tuple[str, ...]) -> str | None:
    """The name of the module that `a.b.c` is, or None if it is not a module."""
    value = _value(frame, chain[0]) if chain[0] else _UNKNOWN
    for name in chain[1:]:
        if not isinstance(value, ModuleType):
            return None
        value = vars(value).get(name, _UNKNOWN)
    if not isinstance(value, ModuleType):
        return None
    # The name by which it was imported: if programs import it as torch, its own name may differ.
    return value.__name__ if value.__spec__ is None else value.__spec__.name


@lru_cache(maxsize=64)
def _instructions(code: CodeType) -> list[dis.Instruction]:
    return [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "EXTENDED_ARG")]


_NAMES = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FAST", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR")
_CALLS = ("CALL", "CALL_KW", "CALL_METHOD", "CALL_FUNCTION", "CALL_FUNCTION_KW", "CALL_FUNCTION_EX")
# Instructions that assemble a call's arguments; they have the call's position.
_OF_THE_CALL = ("PRECALL", "KW_NAMES", "PUSH_NULL", "LOAD_CONST", "BUILD_", "LIST_", "DICT_", "CALL_INTRINSIC")


def _callable_at(code: CodeType, instruction: int) -> tuple[str, tuple[str, ...]] | None:
    """What an instruction calls: `("relu", ("torch", "nn", "functional"))`; None for an operator.

    The chain begins with "" if it is an attribute of a value without a name. If the chain has nothing else, the callee
    comes from an expression, as in `functions[0](x)`.
    """
    listing = _instructions(code)
    # On Python 3.11 a frame that has called is behind the instruction, in its cache.
    place = max((i for i, found in enumerate(listing) if found.offset <= instruction), default=-1)
    if place < 0 or listing[place].opname not in _CALLS:
        return None
    load = _load_of_callable(listing, place)
    if load is None:
        return "", ()
    names: list[str] = []
    while load >= 0 and listing[load].opname in ("LOAD_ATTR", "LOAD_METHOD"):
        names.insert(0, str(listing[load].argval))
        load -= 1
        while load >= 0 and listing[load].opname == "PUSH_NULL":
            load -= 1
    if load >= 0 and listing[load].opname.startswith(_NAMES):
        value = listing[load].argval
        names.insert(0, str(value[-1] if isinstance(value, tuple) else value))
    else:
        names.insert(0, "")
    return names[-1], tuple(names[:-1])


def _load_of_callable(listing: list[dis.Instruction], place: int) -> int | None:
    call = listing[place]
    if sys.version_info >= (3, 11):
        # An expression begins where its callee begins; its arguments come after that.
        where = call.positions
        if where is None or where.lineno is None or where.col_offset is None:
            return None
        for i in range(place - 1, -1, -1):
            there = listing[i].positions
            same = there is not None and (there.lineno, there.col_offset) == (where.lineno, where.col_offset)
            if same and not listing[i].opname.startswith(_OF_THE_CALL):
                return i
        return None
    # Before 3.11 there are no columns: go back over the instructions that put the arguments on the stack.
    above = {"CALL_FUNCTION_KW": (call.arg or 0) + 1,
             "CALL_FUNCTION_EX": 1 + (call.arg or 0) % 2}.get(call.opname, call.arg or 0)
    for i in range(place - 1, -1, -1):
        if above <= 0:
            return i
        found = listing[i]
        above -= dis.stack_effect(found.opcode, found.arg if found.opcode >= dis.HAVE_ARGUMENT else None, jump=False)
    return None
