"""`torch.testing._internal.common_optimizers`: all optimizers, with options to try and mistakes to refuse."""

# ruff: noqa: PT009 - these are helpers for unittest: its methods are what they call

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from typing import Any

from ... import optim
from ..._autograd.grad_mode import no_grad
from ..._construct import tensor
from ..._dispatch.namespace import aten
from ..._dtype import float32
from ..._tensor import Tensor
from ...nn.parameter import Parameter
from ...optim import lr_scheduler
from ...optim.optimizer import _get_foreach_kernels_supported_devices
from .info_parametrization import Described, over
from .opinfo.inputs import DecorateInfo

__all__ = ["DecorateInfo", "ErrorOptimizerInput", "OptimizerErrorEnum", "OptimizerInfo", "OptimizerInput",
           "TensorTracker", "get_error_inputs_for_all_optims", "optim_db", "optims"]

FLAGS = ("foreach", "fused", "differentiable")  # at most one of them is on
Options = dict[str, Any]


class OptimizerInput:
    """What an optimizer is made with: parameters (mostly None, a test has its own) and options."""

    __slots__ = ["desc", "kwargs", "params"]

    def __init__(self, params: Any, kwargs: Options, desc: str = "") -> None:
        self.params, self.kwargs, self.desc = params, kwargs, desc

    def __repr__(self) -> str:
        return f"params={self.params}, kwargs={self.kwargs}, desc={self.desc}"


class OptimizerErrorEnum(enum.Enum):
    """When an error comes."""

    CONSTRUCTION_ERROR = 0
    STEP_ERROR = 1


class ErrorOptimizerInput:
    """What an optimizer refuses, and how."""

    __slots__ = ["error_on", "error_regex", "error_type", "optimizer_error_input"]

    def __init__(self, optimizer_error_input: OptimizerInput, *,
                 error_on: OptimizerErrorEnum = OptimizerErrorEnum.CONSTRUCTION_ERROR,
                 error_type: type[BaseException] = RuntimeError, error_regex: str = "") -> None:
        self.optimizer_error_input = optimizer_error_input
        self.error_on, self.error_type, self.error_regex = error_on, error_type, error_regex


SCHEDULES: list[Callable[[Any], Any]] = [lambda opt: lr_scheduler.StepLR(opt, step_size=10, gamma=0.9),
                                         lr_scheduler.ReduceLROnPlateau]


class OptimizerInfo(Described):
    """An optimizer as tests see it."""

    def __init__(self, optim_cls: Any, *, optim_inputs_func: Callable[..., list[OptimizerInput]],
                 scheduler_inputs: Sequence[list[Callable[[Any], Any]]] | None = None,
                 supported_impls: tuple[str, ...] = ("foreach", "differentiable"),
                 not_og_supported_flags: tuple[str, ...] = ("foreach", "differentiable", "maximize", "capturable"),
                 supports_sparse: bool = False, has_capturable_arg: bool = False,
                 only_supports_sparse_grads: bool = False, metadata_for_sparse: tuple[Options, list[Any]] = ({}, []),
                 supports_complex: bool = True, step_requires_closure: bool = False,
                 supports_param_groups: bool = True, supports_multiple_devices: bool = True,
                 skips: Iterable[Any] = (), decorators: Iterable[Any] | None = None,
                 optim_error_inputs_func: Callable[..., list[ErrorOptimizerInput]] | None = None,
                 supports_fused_on: tuple[str, ...] = ()) -> None:
        super().__init__(skips, decorators)
        self.optim_cls = optim_cls
        self.optim_inputs_func, self.optim_error_inputs_func = optim_inputs_func, optim_error_inputs_func
        self.scheduler_inputs = (SCHEDULES,) if scheduler_inputs is None else scheduler_inputs
        self.supported_impls, self.not_og_supported_flags = supported_impls, not_og_supported_flags
        self.supports_sparse, self.only_supports_sparse_grads = supports_sparse, only_supports_sparse_grads
        self.has_capturable_arg, self.metadata_for_sparse = has_capturable_arg, metadata_for_sparse
        self.supports_complex, self.step_requires_closure = supports_complex, step_requires_closure
        self.supports_param_groups = supports_param_groups
        self.supports_multiple_devices, self.supports_fused_on = supports_multiple_devices, supports_fused_on

    @property
    def name(self) -> str:
        """The optimizer's name."""
        return str(self.optim_cls.__name__)


class optims(over):
    """Run a test once for each optimizer of a list, given as `optim_info`, and each of some element types."""

    def __init__(self, optim_info_iterable: Iterable[OptimizerInfo], dtypes: Sequence[Any] | None = None) -> None:
        self.optim_info_list = list(optim_info_iterable)
        self.dtypes = [float32] if dtypes is None else list(dtypes)

    def variants(self) -> Iterator[tuple[str, Any, Any]]:
        """Each optimizer with each dtype."""
        for info, kind in itertools.product(self.optim_info_list, self.dtypes):
            if not info.leaves_out(self.test):
                yield info.name, info, kind

    def arguments(self, chosen: Any) -> dict[str, Any]:
        """The optimizer."""
        return {"optim_info": chosen}


class TensorTracker:
    """Tensors of one computation, kept in order, that a second one is compared with and brought to step by step."""

    def __init__(self, assert_eq_kwargs: Options | None = None) -> None:
        self.assert_eq_kwargs = assert_eq_kwargs or {}
        self.tensors: list[Tensor] = []

    def add(self, tensor: Tensor) -> None:
        """Keep a copy."""
        self.tensors.append(aten.clone(tensor.detach()))

    def pop_check_set(self, tensor_to_set: Tensor, testcase: Any,
                      override_assert_eq_kwargs: Options | None = None) -> None:
        """Compare with the oldest that was kept, and take its values over."""
        testcase.assertGreater(len(self.tensors), 0, "no tensors to pop")
        kept = self.tensors.pop(0)
        chosen = self.assert_eq_kwargs if override_assert_eq_kwargs is None else override_assert_eq_kwargs
        testcase.assertEqual(tensor_to_set, kept, **chosen)
        with no_grad():
            aten.copy_(tensor_to_set, kept)

    def all_popped(self) -> bool:
        """Whether nothing is left."""
        return not self.tensors


def _get_device_type(device: Any) -> str:
    """"cuda" of "cuda:1" or of a device."""
    return str(getattr(device, "type", device)).partition(":")[0]


def _get_optim_inputs_including_global_cliquey_kwargs(device: Any, dtype: Any, optim_info: OptimizerInfo,
                                                      skip: Sequence[str] = ()) -> list[OptimizerInput]:
    """Every choice of options, with all of the optimizer's flags off and with each of them on."""
    unknown = set(skip) - set(FLAGS)
    if unknown:
        raise AssertionError(f"skip must be a subset of {list(FLAGS)}, got {sorted(unknown)} besides")
    where = _get_device_type(device)
    able = {"fused": optim_info.supports_fused_on, "foreach": _get_foreach_kernels_supported_devices()}
    flags = [flag for flag in optim_info.supported_impls
             if flag not in skip and where in able.get(flag, (where,))]
    made = []
    for given in optim_info.optim_inputs_func(device=device):
        off = dict.fromkeys(flags, False)
        for flag in (None, *flags):
            chosen = {**deepcopy(given.kwargs), **off, **({} if flag is None else {flag: True})}
            if flag in ("foreach", "fused") and isinstance(chosen.get("lr"), Tensor) and where == "cpu":
                # Lists of parameters and a rate in a tensor go together only where `capturable` does.
                continue
            made.append(OptimizerInput(given.params, chosen,
                                       given.desc if flag is None else f"{given.desc} & {flag}"))
    return made


def _inputs(options: Sequence[tuple[str, Options]], common: bool = True) -> Callable[..., list[OptimizerInput]]:
    """The choices that all optimizers have, and an optimizer's own."""
    shared: list[tuple[str, Options]] = [
        ("default", {}), ("non-default lr", {"lr": 0.02}), ("nonzero weight_decay", {"weight_decay": 0.1}),
        ("maximize", {"weight_decay": 0.1, "maximize": True}),
    ] if common else [("default", {})]

    def made(device: Any = None, dtype: Any = None) -> list[OptimizerInput]:
        return [OptimizerInput(None, deepcopy(kwargs), desc) for desc, kwargs in [*shared, *options]]

    return made


def get_error_inputs_for_all_optims(device: Any, dtype: Any) -> list[ErrorOptimizerInput]:
    """What no optimizer takes."""
    if _get_device_type(device) != "cpu":
        return []
    one, other = (Parameter(aten.randn((1, 1), device=device, dtype=dtype)) for _ in range(2))
    rows: list[tuple[str, Any, Options, type[BaseException], str]] = [
        ("a tensor in place of a list", one, {}, TypeError,
         "params argument given to the optimizer should be an iterable of Tensors or dicts"),
        ("a parameter twice in a group", [one, one], {}, UserWarning,
         ".*a parameter group with duplicate parameters.*"),
        ("a parameter in two groups", [{"params": one}, {"params": one}], {}, ValueError,
         "some parameters appear in more than one parameter group"),
        ("two rates in a tensor", None, {"lr": tensor([0.1, 0.2])}, ValueError, "Tensor lr must be 1-element"),
        ("names for some parameters", [("weight", one), other], {}, ValueError,
         "all optimizer params should be with/without names. Some param names are missing"),
        ("names for some groups", [{"params": [one]}, {"params": [("weight", other)]}], {}, ValueError,
         "all optimizer param groups should be with/without names. cannot add param group with names to the optimizer"),
    ]
    return [ErrorOptimizerInput(OptimizerInput(params, kwargs, desc), error_type=kind, error_regex=text)
            for desc, params, kwargs, kind, text in rows]


def _errors(*rows: tuple[Options, str]) -> Callable[..., list[ErrorOptimizerInput]]:
    """What no optimizer takes, and values that this one refuses."""

    def made(device: Any, dtype: Any) -> list[ErrorOptimizerInput]:
        if _get_device_type(device) != "cpu":
            return []
        return get_error_inputs_for_all_optims(device, dtype) + [
            ErrorOptimizerInput(OptimizerInput(None, kwargs, f"refused: {kwargs}"), error_type=ValueError,
                                error_regex=text) for kwargs, text in rows]

    return made


def _sparse_adam_errors(device: Any, dtype: Any) -> list[ErrorOptimizerInput]:
    made = _errors(*_BETAS)(device, dtype)
    if _get_device_type(device) == "cpu":
        holed = aten.zeros((2, 2), device=device, dtype=dtype).to_sparse()
        made.append(ErrorOptimizerInput(OptimizerInput([holed], {}, "a sparse parameter"), error_type=ValueError,
                                        error_regex="SparseAdam requires dense parameter tensors"))
    return made


_BETAS: list[tuple[Options, str]] = [({"betas": (1.0, 0.0)}, "Invalid beta parameter at index 0: 1.0")]
_ADAM_ERRORS: list[tuple[Options, str]] = [
    *_BETAS, ({"lr": -1e-2}, "Invalid learning rate: -0.01"), ({"weight_decay": -1}, "Invalid weight_decay value: -1"),
    ({"lr": tensor(0.001), "foreach": True}, "lr as a Tensor is not supported for capturable=False and foreach=True"),
    ({"betas": (0.9, tensor(0.99))}, "betas must be either both floats or both Tensors"),
]
_ADAM: list[tuple[str, Options]] = [
    ("amsgrad", {"weight_decay": 0.1, "amsgrad": True}), ("eps", {"eps": 1e-3}),
]
_DECOUPLED: list[tuple[str, Options]] = [
    ("decoupled_weight_decay", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
]
_ALL = ("foreach", "differentiable", "fused")
_LATE = ("foreach", "differentiable", "maximize", "capturable", "fused")


def _rate_decay(step: int, gamma: float) -> list[Callable[[Any], Any]]:
    return [lambda opt: lr_scheduler.StepLR(opt, step_size=step, gamma=gamma)]


def _info(name: str, inputs: Callable[..., list[OptimizerInput]], errors: Callable[..., list[ErrorOptimizerInput]],
          **more: Any) -> OptimizerInfo:
    return OptimizerInfo(getattr(optim, name), optim_inputs_func=inputs, optim_error_inputs_func=errors, **more)


optim_db: list[OptimizerInfo] = [
    _info("Adadelta", _inputs([("rho", {"rho": 0.95, "weight_decay": 0.9})]),
          _errors(({"rho": 1.1}, "Invalid rho value: 1.1")), has_capturable_arg=True),
    _info("Adafactor", _inputs([("clipping", {"d": 1.5}), ("epsilons", {"eps": (1e-8, 1e-2)}),
                                ("beta2_decay", {"beta2_decay": -0.7})]),
          _errors(({"lr": -1}, "Learning rate should be >= 0 but is: -1"),
                  ({"beta2_decay": 0.2}, "beta2_decay should be <= 0 but is: 0.2"),
                  ({"eps": (-1, 1e-3)}, "epsilon1 should be >= 0 but is: -1"),
                  ({"eps": (None, -1)}, "epsilon2 should be >= 0 but is: -1"),
                  ({"d": 0}, "Clipping threshold d should be >= 1 but is: 0"),
                  ({"weight_decay": -1}, "weight_decay should be >= 0 but is: -1")),
          supported_impls=("foreach",), not_og_supported_flags=("foreach",), supports_complex=False),
    _info("Adagrad", _inputs([("lr_decay", {"lr": 0.1, "lr_decay": 0.5}), ("Tensor lr", {"lr": tensor(0.02)}),
                              ("initial accumulator", {"initial_accumulator_value": 0.1})]),
          _errors(({"lr_decay": -0.5}, "Invalid lr_decay value: -0.5")), supported_impls=_ALL,
          not_og_supported_flags=_LATE, supports_fused_on=("cpu",), supports_sparse=True,
          metadata_for_sparse=({"lr": 0.1, "weight_decay": 0, "lr_decay": 0}, [
              lambda opt: lr_scheduler.StepLR(opt, gamma=0.9999, step_size=400),
              lambda opt: lr_scheduler.ReduceLROnPlateau(opt, threshold=1e-4)])),
    _info("Adam", _inputs([*_ADAM, *_DECOUPLED]), _errors(*_ADAM_ERRORS), supported_impls=_ALL,
          not_og_supported_flags=_LATE, has_capturable_arg=True, supports_fused_on=("cpu", "cuda", "xpu", "mps"),
          scheduler_inputs=(_rate_decay(10, 0.9), *[[one] for one in (
              lambda opt: lr_scheduler.ExponentialLR(opt, gamma=0.9),
              lambda opt: lr_scheduler.LinearLR(opt, start_factor=0.4, total_iters=4),
              lambda opt: lr_scheduler.ReduceLROnPlateau(opt))])),
    _info("Adamax", _inputs([("eps", {"eps": 1e-3})]),
          _errors(({"betas": (0.0, 1.0)}, "Invalid beta parameter at index 1: 1.0")), has_capturable_arg=True),
    _info("AdamW", _inputs(_ADAM), _errors(*_ADAM_ERRORS), supported_impls=_ALL, not_og_supported_flags=_LATE,
          has_capturable_arg=True, supports_fused_on=("cpu", "cuda", "xpu", "mps")),
    _info("ASGD", _inputs([("lambd", {"lambd": 0.1}), ("t0", {"t0": 100, "alpha": 0.8})]),
          _errors(({"weight_decay": -0.5}, "Invalid weight_decay value: -0.5")), has_capturable_arg=True),
    _info("LBFGS", _inputs([("rate", {"lr": 0.5}), ("Tensor lr", {"lr": tensor(0.5)}),
                            ("line search", {"line_search_fn": "strong_wolfe"}),
                            ("tolerances", {"tolerance_grad": 1e-6, "history_size": 10})], common=False),
          _errors(({"lr": -1}, "Invalid learning rate: -1")), supported_impls=(), not_og_supported_flags=(),
          step_requires_closure=True, supports_param_groups=False, supports_multiple_devices=False),
    _info("Muon", _inputs([("rate", {"lr": 0.02}), ("Tensor lr", {"lr": tensor(0.02)}),
                           ("weight_decay", {"weight_decay": 0.2}), ("momentum", {"momentum": 0.8}),
                           ("iterations", {"ns_steps": 6, "nesterov": False}),
                           ("rate as RMS", {"adjust_lr_fn": "match_rms_adamw"})], common=False),
          _errors(({"lr": -1}, "Learning rate should be >= 0 but is: -1"),
                  ({"momentum": -0.2}, "momentum should be >= 0 but is: -0.2"),
                  ({"weight_decay": -0.2}, "weight decay should be >= 0 but is: -0.2"),
                  ({"adjust_lr_fn": "arbitrary"}, "Adjust learning rate function arbitrary is not supported")),
          supported_impls=(), not_og_supported_flags=(), supports_complex=False),
    _info("NAdam", _inputs([("momentum_decay", {"momentum_decay": 6e-3}), *_DECOUPLED]),
          _errors(*_BETAS, ({"momentum_decay": -0.2}, "Invalid momentum_decay value: -0.2")),
          has_capturable_arg=True),
    _info("RAdam", _inputs([("eps", {"eps": 1e-6}), *_DECOUPLED]),
          _errors(*_BETAS, ({"weight_decay": -1}, "Invalid weight_decay value: -1")), has_capturable_arg=True),
    _info("RMSprop", _inputs([("centered", {"weight_decay": 0.1, "centered": True}),
                              ("momentum", {"weight_decay": 0.1, "centered": True, "momentum": 0.1})]),
          _errors(({"momentum": -1.0}, "Invalid momentum value: -1.0")), has_capturable_arg=True),
    _info("Rprop", _inputs([("rate", {"lr": 2e-4}),
                            ("etas", {"etas": (0.4, 1.4)}), ("step sizes", {"step_sizes": (2e-6, 30)}),
                            ("maximize", {"maximize": True})], common=False),
          _errors(({"etas": (1.0, 0.5)}, "Invalid eta values: 1.0, 0.5")), has_capturable_arg=True),
    _info("SGD", _inputs([("momentum", {"momentum": 0.9}), ("Tensor lr", {"lr": tensor(0.01)}),
                          ("dampening", {"momentum": 0.9, "dampening": 0.5}),
                          ("nesterov", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1})]),
          _errors(({"momentum": -0.5}, "Invalid momentum value: -0.5")), supported_impls=_ALL,
          not_og_supported_flags=_LATE, supports_sparse=True, supports_fused_on=("cpu", "cuda", "xpu", "mps"),
          metadata_for_sparse=({"lr": 5e-3, "maximize": False, "momentum": 0, "nesterov": False, "weight_decay": 0},
                               _rate_decay(300, 0.9999)),
          scheduler_inputs=(_rate_decay(10, 0.9), *[[one] for one in (
              lambda opt: lr_scheduler.CosineAnnealingLR(opt, T_max=20),
              lambda opt: lr_scheduler.ReduceLROnPlateau(opt))])),
    _info("SparseAdam", _inputs([("rate", {"lr": 0.02}), ("Tensor lr", {"lr": tensor(0.02)}),
                                 ("maximize", {"maximize": True})], common=False),
          _sparse_adam_errors, supported_impls=(), not_og_supported_flags=(), supports_sparse=True,
          only_supports_sparse_grads=True, supports_complex=False, metadata_for_sparse=({"lr": 0.05}, [])),
]


def __getattr__(name: str) -> Any:
    """`optim_inputs_func_adam` and its kin: an optimizer's part of the table."""
    for start, part in (("optim_inputs_func_", "optim_inputs_func"),
                        ("optim_error_inputs_func_", "optim_error_inputs_func")):
        if name.startswith(start):
            for info in optim_db:
                if info.name.lower() == name.removeprefix(start):
                    return getattr(info, part)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
