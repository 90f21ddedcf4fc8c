"""Makes the public functions ask whether somebody takes them over, while anybody could.

A function keeps its identity and gets other code: references that a program holds ask too, `func is torch.add` holds
before and after, and a program without overriders runs the code that it would run without any of this. Methods of
Tensor get functions of their own, because a method and the function of the same name are two things to
`__torch_function__`. The runtime itself calls copies that never ask.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import numpy as np

from . import autograd  # noqa: F401  (its functions are offered, as are those of `init`)
from ._device import device
from ._dispatch import overriding
from ._dispatch.namespace import ASKING, LOOKUPS, METHODS, aten, offered
from ._dispatch.overriding import ACTIVE, OUTSIDE, PACKAGE, STATE, is_internal, offer, overriders
from ._dispatch.registry import is_public
from ._dtype import dtype
from ._methods import BINARY, OPERATORS, REFLECTED, SET_METHOD, set_method
from ._shape import Size
from ._tensor import Tensor
from .functional import NAMES as SECOND_NAMES
from .nn import init  # noqa: F401
from .nn.functional import DIRECT
from .nn.parameter import Parameter

# Classes of arguments that certainly do not take over; all others are inspected one by one.
PLAIN = {Tensor, Parameter, int, float, bool, complex, str, type(None), dtype, device, Size, slice, type(...),
         np.ndarray, bytes}
# Modules whose functions can be taken over, and how `resolve_name` calls them.
MODULES = {PACKAGE: "torch", f"{PACKAGE}.functional": "torch.functional",
           f"{PACKAGE}.nn.functional": "torch.nn.functional", f"{PACKAGE}.linalg": "torch.linalg",
           f"{PACKAGE}.fft": "torch.fft", f"{PACKAGE}.special": "torch.special", f"{PACKAGE}.nn.init": "torch.nn.init",
           f"{PACKAGE}.autograd": "torch.autograd"}
# Functions of `torch` that are no ops, and those of them that only modes are asked about.
MORE_FUNCTIONS = frozenset({
    "tensor", "as_tensor", "asarray", "get_device", "is_conj", "is_inference", "is_neg", "is_same_size", "is_signed",
    "numel", "sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sum"})
CONSTRUCTORS = frozenset({"tensor", "as_tensor", "asarray"})
# Functions of `nn.init` that PyTorch offers; of the others it offers what they call.
INITIALIZERS = frozenset({"constant_", "kaiming_uniform_", "normal_", "uniform_"})
# Attributes of Tensor that PyTorch does not offer, or does not have.
NOT_OFFERED = frozenset({
    "__class_getitem__", "__copy__", "__delitem__", "__dir__", "__getattribute__", "__getstate__", "__hash__",
    "__init__", "__init_subclass__", "__iter__", "__new__", "__setattr__", "__setstate__", "__subclasshook__",
    "__torch_function__", "as_subclass", "extras", "shared"})
# Operators that are functions of their own to `__torch_function__`; the others are the method they stand for.
OWN_OPERATORS = frozenset({"__eq__", "__floordiv__", "__invert__", "__ipow__", "__pos__", "__pow__", "__rsub__"})


# Overrides of these get the tensors of a list one by one, as in PyTorch.
SPREAD = frozenset({"einsum"})

WITH_ARGS, WITH_KWARGS = 0x04, 0x08  # flags of code


class Face:
    """A function that asks. `raw` is what it does if nobody answers, `func` what `__torch_function__` is given."""

    function: Any  # the one that has it, if it is a method's
    __slots__ = ("classes", "func", "function", "kind", "modes", "operator", "plain", "raw", "to_type", "types")

    def __init__(self, raw: Callable[..., Any], func: Any = None, operator: bool = False, classes: bool = True) -> None:
        self.raw, self.func, self.operator, self.classes = raw, func, operator, classes
        self.types, self.plain, self.modes, self.to_type, self.kind = PLAIN, PLAIN.issuperset, ACTIVE, map, type

    def ask(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """For calls with something else than plain arguments, or while a mode is active."""
        state = STATE
        if state.skip:
            state.skip = False
            return self.raw(*args, **kwargs)
        mode = bool(state.modes) and not state.all_off
        asked = [] if state.classes_off or not self.classes else overriders(overriding.flat((*args, *kwargs.values())))
        if not (asked or mode) or is_internal(sys._getframe(1).f_back):  # type: ignore[arg-type]
            return self.raw(*args, **kwargs)
        if len(args) == 2 and type(args[1]) in (list, tuple) and getattr(self.func, "__name__", "") in SPREAD:
            args = (args[0], *args[1])
        return offer(self.func, asked, args, kwargs, self.operator)


# The code of every face. It has its `Face` in place of the constant: functions that get it have globals and closures of
# their own. The second and third form are for properties and operators.
_ANY = """(*args, **kwargs):
        if b"".plain(b"".to_type(b"".kind, args)) and not kwargs and not b"".modes: return b"".raw(*args)
        return b"".ask(args, kwargs)
"""
_ONE = """(self):
        if b"".kind(self) in b"".types and not b"".modes: return b"".raw(self)
        return b"".ask((self,), {})
"""
_TWO = """(self, other):
        if b"".kind(other) in b"".types and b"".kind(self) in b"".types and not b"".modes: return b"".raw(self, other)
        return b"".ask((self, other), {})
"""


@functools.cache
def _template(form: str, free: tuple[str, ...]) -> CodeType:
    """Code of a form in a closure with these variables: as many, and as properly set up, as the function has."""
    named = f"        {', '.join(free) or None}\n"  # never reached, but it makes them variables of the closure
    text = f"def make({', '.join(free)}):\n    def asking{form}{named}    return asking\n"
    space: dict[str, Any] = {}
    exec(compile(text, "<mindtorch_v2 face>", "exec"), space)
    return space["make"](*free).__code__


def asking_code(face: Face, name: str, like: CodeType | None = None, form: str = _ANY) -> CodeType:
    """Code that asks, for a function with the closure of other code."""
    code = _template(form, () if like is None else like.co_freevars)
    constants = tuple(face if constant == b"" else constant for constant in code.co_consts)
    code = code.replace(co_consts=constants, co_name=name)
    return code if like is None else placed(code, like)


def placed(code: CodeType, like: CodeType) -> CodeType:
    """The code as if it stood where other code does: a recording of calls shows a function by its place."""
    return code.replace(co_filename=like.co_filename, co_firstlineno=like.co_firstlineno)


def _offered_iter(self: Any) -> Any:
    if self.dim() == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(self.unbind(0))


# Iterating is not offered itself, but what it calls is, as if a program had called it.
_iterate = FunctionType(_offered_iter.__code__, {"__builtins__": __builtins__, "__name__": "torch"}, "__iter__")
_OWN_ITER = Tensor.__iter__


class Faces:
    """All functions that ask, and whether they do now."""

    def __init__(self) -> None:
        self.armed = False
        self.for_good = False
        self.changes = 0  # how often there was other code, for those who know functions by it
        self.codes: dict[FunctionType, tuple[CodeType, CodeType]] = {}  # as it is, and asking
        self.raw: dict[Any, Callable[..., Any]] = {}
        self.function_of = ASKING  # by its raw copy
        self.methods: dict[str, Face] = METHODS

    def arm(self, for_good: bool) -> None:
        """Make the public functions ask."""
        self.for_good = self.for_good or for_good
        if self.armed:
            return
        self.armed = True
        for function, (_, asking) in self.codes.items():
            function.__code__ = asking
        for name, value in list(vars(aten).items()):
            vars(aten)[name] = self.raw.get(value, value)
        for name in MODULES:
            if name in sys.modules:
                self.add_module(name, sys.modules[name])
        for name, value in list(vars(aten).items()):
            self.look_up(name, value)
        for name, value in list(vars(Tensor).items()):
            if name not in NOT_OFFERED:
                self._add_attribute(name, value)
        for name, face in self.methods.items():
            face.raw = self.raw.get(face.raw, face.raw)  # a program may have asked for the method before
            current = vars(Tensor).get(name)
            if isinstance(current, FunctionType) and is_own(current):  # and not a function of the program's
                setattr(Tensor, name, face.function)
        Tensor.__iter__ = _iterate  # type: ignore[method-assign]
        self.changes += 1
        _set_aten(offered)

    def disarm(self) -> None:
        """Give the public functions their own code back, if no class needs them to ask."""
        if not self.armed or self.for_good or ACTIVE:
            return
        self.armed = False
        for function, (code, _) in self.codes.items():
            function.__code__ = code
        for name, face in self.methods.items():
            if vars(Tensor).get(name) is face.function:
                setattr(Tensor, name, self.own(face))
        Tensor.__iter__ = _OWN_ITER  # type: ignore[method-assign]
        self.changes += 1
        for name, value in list(vars(aten).items()):
            vars(aten)[name] = self.function_of.get(value, value)
        _set_aten(aten)

    def own(self, face: Face) -> Callable[..., Any]:
        """The method that a face of Tensor stands for."""
        return self.function_of.get(face.raw, face.raw)

    def add_module(self, place: str, module: ModuleType) -> None:
        """The functions of a module that PyTorch has under its name. The package calls itself `torch` at times."""
        for name, value in list(vars(module).items()):
            if self.is_offered(place, module, name, value):
                self.add(value, name=name)
                if place == f"{PACKAGE}.nn.init":
                    value.__module__ = MODULES[place]  # by which programs tell these functions from others

    @staticmethod
    def is_offered(place: str, module: ModuleType, name: str, value: Any) -> bool:
        if not isinstance(value, FunctionType) or name.startswith("_") or hasattr(value, "__refused__"):
            return False
        if name == "broadcast_shapes":  # its arguments are no tensors
            return False
        if not is_own(value):
            return False
        if place == PACKAGE:
            return name in MORE_FUNCTIONS or is_public(name, "f")
        if place == f"{PACKAGE}.autograd":
            return name in ("backward", "grad")
        if place == f"{PACKAGE}.nn.init":
            return name in INITIALIZERS
        places = ("torch.", f"{place}.", f"{PACKAGE}._C.")
        return value.__module__ == "torch" or value.__module__.startswith(places) or (
            value.__module__ == place and name in getattr(module, "__all__", (name,)))

    def look_up(self, name: str, function: Any) -> None:
        """A function that a program, or a part of the runtime, has just found for the first time."""
        if self.armed and (name in MORE_FUNCTIONS or is_public(name, "f") or name in DIRECT or "." in name):
            self.add(function, name=name.rpartition(".")[2])
        if self.armed and name in vars(aten):
            vars(aten)[name] = self.raw.get(vars(aten)[name], vars(aten)[name])

    def add(self, function: Any, func: Any = None, name: str = "", form: str = _ANY) -> None:
        """Have a function ask from now on, as long as the others do."""
        if not self.armed or not isinstance(function, FunctionType):
            return
        if function in self.codes or function in self.function_of:
            return
        raw = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__,
                           function.__closure__)
        raw.__kwdefaults__ = function.__kwdefaults__
        raw.__qualname__, raw.__module__ = function.__qualname__, function.__module__
        if function.__name__ == f"{name}_":  # so called where the name is also that of a built-in function
            function.__name__ = name
        face = Face(raw, function if func is None else func, classes=name not in CONSTRUCTORS)
        asking = asking_code(face, function.__name__, function.__code__, form)
        self.codes[function] = (function.__code__, asking)
        self.raw[function], self.function_of[raw] = raw, function
        function.__code__ = asking
        self.changes += 1
        function.__wrapped__ = raw  # type: ignore[attr-defined]  # for inspect.signature
        function.__face__ = face  # type: ignore[attr-defined]

    def _add_attribute(self, name: str, value: Any) -> None:
        if isinstance(value, property):
            if not name.startswith("_") and value.fget is not None:
                self.add(value.fget, value.__get__, form=_ONE)
                self.add(value.fset, value.__set__, form=_TWO)
        elif (isinstance(value, FunctionType) and name not in self.methods and is_own(value)
              and not hasattr(value, "__refused__")):
            self._add_method(name, value)

    def _add_method(self, name: str, value: Any) -> Face:
        operator = name in OPERATORS or name in REFLECTED
        face = self.methods[name] = Face(self.raw.get(value, value), operator=operator)
        form = _ANY if not operator else _TWO if name in BINARY or name in REFLECTED else _ONE
        code = placed(asking_code(face, name, form=form), value.__code__)
        function: Any = FunctionType(code, {"__builtins__": __builtins__}, name)
        function.__qualname__, function.__module__, function.__doc__ = f"Tensor.{name}", "torch", value.__doc__
        function.__wrapped__ = value
        face.function = face.func = function
        self.changes += 1
        base = OPERATORS.get(name)
        if base is not None and name not in OWN_OPERATORS and base in vars(Tensor) and base != name:
            known = self.methods.get(base) or self._add_method(base, vars(Tensor)[base])
            face.func = known.func
        return face

    def method(self, name: str, value: FunctionType) -> Callable[..., Any]:
        """What stands for a method wherever programs see it, whether methods ask now or not."""
        if name in NOT_OFFERED or not is_own(value) or hasattr(value, "__refused__"):
            return value
        face = self.methods.get(name) or self._add_method(name, value)
        return face.function  # type: ignore[no-any-return]

    def behind_operator(self, form: str) -> Any:
        """What `__torch_function__` gets for the operator that calls a method; the operators are known."""
        return next(self.methods[name].func for name, base in OPERATORS.items() if base == form)

    def set_method(self, name: str, old: Any, function: Any) -> None:
        """A method is compiled at its first call, and then replaces what stood for it."""
        face = self.methods.get(name)
        set_method(name, old, function)
        if face is not None:
            face.raw = self.raw.get(function, function)


def is_own(function: FunctionType) -> bool:
    """Whether a function is of this package, and not one that a program has put in its place."""
    return f"{function.__globals__.get('__name__')}.".startswith(f"{PACKAGE}.")


FACES = Faces()


def _set_aten(namespace: Any) -> None:
    vars(offered).clear()
    for name, module in list(sys.modules.items()):
        if name.startswith(OUTSIDE) and hasattr(module, "aten"):
            module.aten = namespace  # type: ignore[attr-defined]


def face_of_frame(frame: FrameType) -> Any:
    """The public function whose body a frame is, with the arguments it was called with; None if it is another's."""
    code, values = frame.f_code, frame.f_locals
    # Functions that are made in a loop know their name, or the op that they call, as `linalg_eigh`.
    names = (code.co_name, values.get("name"), str(values.get("op")).partition("_")[2])
    for module_name in MODULES:
        space = vars(sys.modules[module_name]) if module_name in sys.modules else {}
        for found in (space.get(name) for name in names if isinstance(name, str)):
            if isinstance(found, FunctionType) and code in (found.__code__, FACES.codes.get(found, (None,))[0]):
                return found, *_arguments(code, values, found)
    return None


def _arguments(code: CodeType, values: dict[str, Any],
               function: FunctionType) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What a function was given: the values of its parameters, without those that have their defaults."""
    count, more = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames
    args = [values[name] for name in names[:count]]
    kwdefaults = function.__kwdefaults__ or {}
    kwargs = {name: values[name] for name in names[count:count + more]
              if name not in kwdefaults or values[name] is not kwdefaults[name]}
    rest = count + more
    if code.co_flags & WITH_ARGS:
        args += values[names[rest]]
        rest += 1
    else:
        for default in reversed(function.__defaults__ or ()):
            if args[-1] is not default:
                break
            args.pop()
    if code.co_flags & WITH_KWARGS:
        kwargs.update(values[names[rest]])
    return tuple(args), kwargs


def name_of(function: Any) -> str | None:
    """`torch.add` or `torch.Tensor.add`, None if it is no function that can be taken over."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, property):
        found = next((name for name, value in vars(Tensor).items() if value is owner), None)
        return None if found is None else f"torch.Tensor.{found}.{function.__name__}"
    for name, face in FACES.methods.items():
        if face.function is function:
            return f"torch.Tensor.{name}"
    own = getattr(function, "__name__", "")
    if own in SECOND_NAMES and vars(sys.modules[PACKAGE]).get(own) is function:
        return f"torch.functional.{own}"
    # A function of several modules has the name of the one that PyTorch looks through last.
    for module_name in sorted(MODULES, key=lambda one: not one.endswith("nn.functional")):
        module, shown = sys.modules.get(module_name), MODULES[module_name]
        names: Iterable[str] = () if module is None else (
            name for name, value in vars(module).items() if value is function and not name.startswith("_"))
        for name in names:
            return f"{shown}.{name}"
    found = next((name for name, value in vars(Tensor).items() if value is function), None)
    if found is not None:
        return f"torch.Tensor.{found}"
    # The runtime may have found it before the program does.
    return f"torch.{function.__name__}" if function in FACES.codes else None


SET_METHOD[0] = FACES.set_method
LOOKUPS.append(FACES.look_up)
