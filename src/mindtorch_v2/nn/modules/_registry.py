"""What a module owns: parameters, buffers and submodules by name, reached as attributes."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ..._dispatch.module_flag import Flag
from ..._dispatch.namespace import aten
from ..._tensor import Tensor
from ..parameter import Buffer, Parameter
from ._hooks import GlobalHooks, HookTable, run_registration_hooks

# Instance dictionaries that hold hooks, and how each is made; older pickles may lack some of them.
HOOK_TABLES: dict[str, Any] = {
    "_backward_pre_hooks": HookTable,
    "_backward_hooks": HookTable,
    "_forward_hooks": HookTable,
    "_forward_hooks_with_kwargs": OrderedDict,
    "_forward_hooks_always_called": OrderedDict,
    "_forward_pre_hooks": HookTable,
    "_forward_pre_hooks_with_kwargs": OrderedDict,
    "_state_dict_hooks": OrderedDict,
    "_state_dict_pre_hooks": OrderedDict,
    "_load_state_dict_pre_hooks": OrderedDict,
    "_load_state_dict_post_hooks": OrderedDict,
}


def type_name(value: Any) -> str:
    """What PyTorch's messages call the type of a value: `torch.FloatTensor`, `int`, `package.Class`."""
    if isinstance(value, Tensor):
        return aten.type(value)
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


class Registry:
    """The part of `Module` that knows names."""

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _non_persistent_buffers_set: set[str]
    _modules: dict[str, Any]
    _is_full_backward_hook: bool | None
    call_super_init = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            where = f"{type(self).__name__}.__init__()"
            if kwargs:
                raise TypeError(f"{where} got an unexpected keyword argument '{next(iter(kwargs))}'")
            if args:
                raise TypeError(f"{where} takes 1 positional argument but {len(args) + 1} were given")
        # Straight into the dictionary: __setattr__ asks these tables about every name.
        self.__dict__.update(training=True, _parameters={}, _buffers={}, _non_persistent_buffers_set=set(),
                             _is_full_backward_hook=None, _modules={})
        self.__dict__.update({name: make() for name, make in HOOK_TABLES.items()})
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name, make in HOOK_TABLES.items():
            kept = self.__dict__.get(name)
            if kept:
                # It stays itself, because handles in the same file refer to it.
                Flag.raised = Flag.hooks = True
            elif not isinstance(kept, make):
                self.__dict__[name] = make()
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    # -- attributes ------------------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        # Every use of a parameter in a forward comes through here, hence one table after the other and no loop.
        own = self.__dict__
        table = own.get("_parameters")
        if table and name in table:
            return table[name]
        table = own.get("_buffers")
        if table and name in table:
            return table[name]
        table = own.get("_modules")
        if table and name in table:
            return table[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        parameters = own.get("_parameters")
        if isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, "_buffers", "_modules")
            self.register_parameter(name, value)
        elif parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(f"cannot assign '{type_name(value)}' as parameter '{name}' "
                                "(torch.nn.Parameter or None expected)")
            self.register_parameter(name, None)
        elif isinstance(value, Registry):
            if "_modules" not in own:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, "_parameters", "_buffers")
            own["_modules"][name] = run_registration_hooks(GlobalHooks.module_registration, self, name, value)
        elif "_modules" in own and name in own["_modules"]:
            if value is not None:
                raise TypeError(f"cannot assign '{type_name(value)}' as child module '{name}' "
                                "(torch.nn.Module or None expected)")
            own["_modules"][name] = run_registration_hooks(GlobalHooks.module_registration, self, name, value)
        elif "_buffers" not in own and isinstance(value, Buffer):
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        elif isinstance(value, Buffer) or ("_buffers" in own and name in own["_buffers"]):
            self._set_buffer(name, value)
        else:
            object.__setattr__(self, name, value)

    def _set_buffer(self, name: str, value: Any) -> None:
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(f"cannot assign '{type_name(value)}' as buffer '{name}' "
                            "(torch.nn.Buffer, torch.Tensor or None expected)")
        if isinstance(value, Buffer):
            self._forget(name, "_parameters", "_modules")
            self.register_buffer(name, value, value.persistent)
        else:
            self._buffers[name] = run_registration_hooks(GlobalHooks.buffer_registration, self, name, value)

    def _forget(self, name: str, *tables: str) -> None:
        """A name means one thing only: drop what it meant before."""
        own = self.__dict__
        own.pop(name, None)
        for table in tables:
            own[table].pop(name, None)
        own["_non_persistent_buffers_set"].discard(name)

    def __delattr__(self, name: str) -> None:
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        return sorted(name for name in names if not name[:1].isdigit())

    # -- registration ----------------------------------------------------------------------------------------------

    def _check_name(self, kind: str, name: Any, table: dict[str, Any], shown: str = "") -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {type_name(name)}")
        if kind == "module":
            self._check_unused(name, table)
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."{shown}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if kind != "module":
            self._check_unused(name, table)

    def _check_unused(self, name: str, table: dict[str, Any]) -> None:
        if hasattr(self, name) and name not in table:
            raise KeyError(f"attribute '{name}' already exists")

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Own a tensor that is not trained; with `persistent` it is part of the state dict."""
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"cannot assign '{type_name(tensor)}' object to buffer '{name}' "
                            "(torch Tensor or None required)")
        self._buffers[name] = run_registration_hooks(GlobalHooks.buffer_registration, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Own a parameter; None keeps the name without one."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, self._parameters)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(f"cannot assign '{type_name(param)}' object to parameter '{name}' "
                                "(torch.nn.Parameter or None required)")
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created "
                    f"explicitly. To express '{name}' as a function of another Tensor, compute the value in "
                    "the forward() method."
                )
            param = run_registration_hooks(GlobalHooks.parameter_registration, self, name, param)
        self._parameters[name] = param

    def add_module(self, name: str, module: Any) -> None:
        """Own a submodule; None keeps the name without one."""
        if module is not None and not isinstance(module, Registry):
            raise TypeError(f"{type_name(module)} is not a Module subclass")
        self._check_name("module", name, self._modules, f", got: {name}")
        self._modules[name] = run_registration_hooks(GlobalHooks.module_registration, self, name, module)

    def register_module(self, name: str, module: Any) -> None:
        """The same as `add_module`."""
        self.add_module(name, module)

    # -- look-up by dotted path ------------------------------------------------------------------------------------

    def get_submodule(self, target: str) -> Any:
        """The submodule at a dotted path such as `"encoder.0.linear"`; the empty path is this module."""
        found: Any = self
        for step in target.split(".") if target else ():
            if not hasattr(found, step):
                raise AttributeError(f"{type(found).__name__} has no attribute `{step}`")
            found = getattr(found, step)
            if not isinstance(found, Registry):
                raise AttributeError(f"`{step}` is not an nn.Module")
        return found

    def set_submodule(self, target: str, module: Any, strict: bool = False) -> None:
        """Put `module` at a dotted path; with `strict` something must be there already."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        path, _, name = target.rpartition(".")
        if not isinstance(module, Registry):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{type(parent).__name__} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Registry):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def _member(self, target: str) -> tuple[Any, str]:
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if not hasattr(owner, name):
            raise AttributeError(f"{type(owner).__name__} has no attribute `{name}`")
        return owner, name

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path."""
        owner, name = self._member(target)
        found = getattr(owner, name)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path."""
        owner, name = self._member(target)
        if name not in owner._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return getattr(owner, name)
