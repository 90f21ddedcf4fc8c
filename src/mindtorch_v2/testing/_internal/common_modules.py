"""`torch.testing._internal.common_modules`: modules of `torch.nn`, with inputs to try and mistakes to refuse."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from typing import Any

from ... import nn
from ..._dispatch.namespace import aten
from ..._dtype import bfloat16, complex64, complex128, float16, float32, float64, int64
from .._creation import make_tensor
from .info_parametrization import Described, over
from .loss_references import loss_reference_fns

__all__ = ["ErrorModuleInput", "FunctionInput", "ModuleErrorEnum", "ModuleInfo", "ModuleInput", "TrainEvalMode",
           "module_db", "modules"]

MODULE_NAMESPACES = [nn.modules]
MODULES_TO_SKIP: set[Any] = {nn.Module, getattr(nn, "Container", None), getattr(nn, "NLLLoss2d", None)}
MODULE_CLASS_NAMES: dict[Any, str] = {getattr(nn, name): f"nn.{name}" for name in reversed(nn.modules.__all__)}
MODULE_CLASSES = [cls for cls in MODULE_CLASS_NAMES if cls not in MODULES_TO_SKIP]

TrainEvalMode = enum.Enum("TrainEvalMode", ("train_only", "eval_only", "train_and_eval"))


class FunctionInput:
    """Arguments of a call."""

    __slots__ = ["args", "kwargs"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args, self.kwargs = args, kwargs


class ModuleInput:
    """A module's constructor and call arguments, and a function for the expected result.

    >>> case = ModuleInput(FunctionInput(2, 3), reference_fn=lambda module, parameters, x: parameters[0].shape)
    >>> case.reference_fn(nn.Linear(2, 3), None)
    torch.Size([3, 2])
    """

    __slots__ = ["constructor_input", "desc", "forward_input", "reference_fn"]

    def __init__(self, constructor_input: FunctionInput, forward_input: FunctionInput | None = None, desc: str = "",
                 reference_fn: Callable[..., Any] | None = None) -> None:
        self.constructor_input, self.forward_input, self.desc = constructor_input, forward_input, desc
        self.reference_fn = None if reference_fn is None else functools.partial(_on_copies, reference_fn)


def _on_copies(reference: Callable[..., Any], module: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a reference on copies, because the module may change its inputs."""
    return reference(module, list(module.parameters()), *deepcopy(args), **deepcopy(kwargs))


class ModuleErrorEnum(enum.Enum):
    """When an error comes."""

    CONSTRUCTION_ERROR = 0
    FORWARD_ERROR = 1


class ErrorModuleInput:
    """Arguments that a module refuses, and its error."""

    __slots__ = ["error_on", "error_regex", "error_type", "module_error_input"]

    def __init__(self, module_error_input: ModuleInput, *,
                 error_on: ModuleErrorEnum = ModuleErrorEnum.CONSTRUCTION_ERROR,
                 error_type: type[BaseException] = RuntimeError, error_regex: str) -> None:
        self.module_error_input = module_error_input
        self.error_on, self.error_type, self.error_regex = error_on, error_type, error_regex


def get_module_common_name(module_cls: Any) -> str:
    """A class as `nn.Name`, or its own name if it is not from there."""
    return MODULE_CLASS_NAMES.get(module_cls, module_cls.__name__)


class ModuleInfo(Described):
    """A module as tests see it."""

    def __init__(self, module_cls: Any, *, module_inputs_func: Callable[..., list[ModuleInput]],
                 skips: Iterable[Any] = (), decorators: Iterable[Any] | None = None,
                 dtypes: Sequence[Any] = (float32, float64), dtypesIfMPS: Sequence[Any] = (float32,),
                 dtypesIfHpu: Sequence[Any] = (float32,), supports_gradgrad: bool = True,
                 gradcheck_nondet_tol: float = 0.0, module_memformat_affects_out: bool = False,
                 train_and_eval_differ: bool = False,
                 module_error_inputs_func: Callable[..., list[ErrorModuleInput]] | None = None,
                 gradcheck_fast_mode: bool | None = None) -> None:
        super().__init__(skips, decorators)
        self.module_cls = module_cls
        self.module_inputs_func, self.module_error_inputs_func = module_inputs_func, module_error_inputs_func
        self.dtypes, self.dtypesIfMPS, self.dtypesIfHpu = tuple(dtypes), dtypesIfMPS, dtypesIfHpu
        self.supports_gradgrad, self.gradcheck_nondet_tol = supports_gradgrad, gradcheck_nondet_tol
        self.gradcheck_fast_mode = gradcheck_fast_mode
        self.module_memformat_affects_out = module_memformat_affects_out
        self.train_and_eval_differ = train_and_eval_differ
        self.is_lazy = issubclass(module_cls, nn.modules.lazy.LazyModuleMixin)

    def supported_dtypes(self, device_type: str) -> Sequence[Any]:
        """The element types that it computes with on a device."""
        return {"mps": self.dtypesIfMPS, "hpu": self.dtypesIfHpu}.get(device_type, self.dtypes)

    @property
    def name(self) -> str:
        """`nn.Name`."""
        return get_module_common_name(self.module_cls)

    @property
    def formatted_name(self) -> str:
        """`nn_Name`."""
        return self.name.replace(".", "_")


class modules(over):
    """Run a test once for each module of a list, element type, and mode if its modes differ.

    The test is given `module_info`, `dtype` and `training`.
    """

    def __init__(self, module_info_iterable: Iterable[ModuleInfo], allowed_dtypes: Iterable[Any] | None = None,
                 train_eval_mode: Any = TrainEvalMode.train_and_eval, skip_if_dynamo: bool = True) -> None:
        self.module_info_list = list(module_info_iterable)
        self.allowed_dtypes = None if allowed_dtypes is None else set(allowed_dtypes)
        self.train_eval_mode = train_eval_mode

    def variants(self) -> Iterator[tuple[str, Any, Any]]:
        """Each module with each of its dtypes."""
        flags = {"train_only": [True], "eval_only": [False]}.get(self.train_eval_mode.name, [True, False])
        for info in self.module_info_list:
            if info.leaves_out(self.test):
                continue
            chosen = flags if info.train_and_eval_differ else flags[:1]
            for training in chosen:
                mode = "" if len(chosen) == 1 else "_train_mode" if training else "_eval_mode"
                for kind in info.supported_dtypes("cpu"):
                    if self.allowed_dtypes is None or kind in self.allowed_dtypes:
                        yield info.formatted_name + mode, (info, training), kind

    def arguments(self, chosen: Any) -> dict[str, Any]:
        """The module and the mode."""
        return {"module_info": chosen[0], "training": chosen[1]}


class Draw:
    """Makes the inputs of a row: tuples are shapes of tensors with the test's dtype."""

    def __init__(self, device: Any, dtype: Any, requires_grad: bool) -> None:
        self.device, self.dtype, self.requires_grad = device, dtype, requires_grad

    def real(self, *shape: int, low: float | None = None, high: float | None = None) -> Any:
        """Random numbers, by default between -9 and 9."""
        return make_tensor(shape, device=self.device, dtype=self.dtype, low=low, high=high,
                           requires_grad=self.requires_grad)

    def still(self, *shape: int, low: float | None = None, high: float | None = None) -> Any:
        """Random numbers that no gradient is asked for: targets and weights."""
        return make_tensor(shape, device=self.device, dtype=self.dtype, low=low, high=high)

    def leaf(self, made: Any) -> Any:
        """What was computed, as an input that a gradient is asked for."""
        return made.detach().requires_grad_(self.requires_grad)

    def classes(self, *shape: int, below: int) -> Any:
        """Random class numbers."""
        return make_tensor(shape, device=self.device, dtype=int64, low=0, high=below)

    def signs(self, *shape: int) -> Any:
        """1 or -1."""
        return aten.sign(self.still(*shape))

    def filled(self, given: Any) -> Any:
        """An argument of a row: a shape, a function of this object, or the value itself."""
        if callable(given):
            return given(self)
        return self.real(*given) if isinstance(given, tuple) else given


class Row:
    """One way to make and call a module: constructor arguments, inputs, and what it should give."""

    def __init__(self, made: Any, *inputs: Any, desc: str = "", reference: Callable[..., Any] | None = None,
                 **more: Any) -> None:
        self.made, self.inputs, self.desc, self.reference, self.more = made, inputs, desc, reference, more

    def case(self, draw: Draw) -> ModuleInput:
        """The row with fresh random numbers."""
        given = self.made(draw) if callable(self.made) else self.made
        positional, named = (given[:-1], given[-1]) if given and isinstance(given[-1], dict) else (given, {})
        return ModuleInput(FunctionInput(*positional, **named),
                           FunctionInput(*map(draw.filled, self.inputs),
                                         **{key: draw.filled(value) for key, value in self.more.items()}),
                           self.desc, self.reference)


def _inputs(rows: Sequence[Row]) -> Callable[..., list[ModuleInput]]:
    def made(module_info: Any, device: Any, dtype: Any, requires_grad: bool, training: bool,
             **kwargs: Any) -> list[ModuleInput]:
        draw = Draw(device, dtype, requires_grad)
        return [row.case(draw) for row in rows]

    return made


Mistake = tuple[Row, ModuleErrorEnum, type[BaseException], str]


def _mistakes(rows: Sequence[Mistake]) -> Callable[..., list[ErrorModuleInput]]:
    def made(module_info: Any, device: Any, dtype: Any, requires_grad: bool, training: bool,
             **kwargs: Any) -> list[ErrorModuleInput]:
        draw = Draw(device, dtype, requires_grad)
        return [ErrorModuleInput(row.case(draw), error_on=when, error_type=kind, error_regex=text)
                for row, when, kind, text in rows]

    return made


def _info(name: str, *rows: Row, mistakes: Sequence[Mistake] = (), **facts: Any) -> ModuleInfo:
    refused = _mistakes(mistakes) if mistakes else None
    return ModuleInfo(getattr(nn, name), module_inputs_func=_inputs(rows), module_error_inputs_func=refused, **facts)


def _activation(name: str, *options: tuple[Any, ...], **facts: Any) -> ModuleInfo:
    """An elementwise module: of several samples, of one number, and with options."""
    return _info(name, Row((), (2, 3, 4)), Row((), (), desc="scalar"), Row((), (4,), desc="no_batch_dim"),
                 *[Row(one, (3, 2, 5), desc="options") for one in options], **facts)


def _loss(name: str, inputs: Sequence[Any], *options: dict[str, Any], **facts: Any) -> ModuleInfo:
    """A loss with each reduction, and with options, beside its definition if there is one written out."""
    known: Any = loss_reference_fns.get(name)

    def row(given: dict[str, Any], desc: str) -> Row:
        taken = known is not None and not given.get("zero_infinity")
        return Row((given,) if given else (), *inputs, desc=desc,
                   reference=(lambda m, p, *args: known(*args, **given)) if known is not None and taken else None)

    return _info(name, row({}, ""), *[row({"reduction": how}, f"reduction_{how}") for how in ("sum", "none")],
                 *[row(one, "_".join(one)) for one in options], **facts)


def _with_images(name: str, sizes: tuple[int, ...], *made: tuple[Any, ...], **facts: Any) -> ModuleInfo:
    """A module of images: each choice of options with a batch and with a single one."""
    rows = [Row(one, shape, desc=desc) for one in made for shape, desc in (((2, *sizes), ""), (sizes, "no_batch_dim"))]
    return _info(name, *rows, **facts)


def _linear(module: Any, parameters: list[Any], x: Any) -> Any:
    made = aten.matmul(x, parameters[0].t())
    return made + parameters[1] if len(parameters) > 1 else made


_BUILT, _CALLED = ModuleErrorEnum.CONSTRUCTION_ERROR, ModuleErrorEnum.FORWARD_ERROR


def _cells(name: str, states: int) -> ModuleInfo:
    hidden = (lambda d: (d.real(2, 5), d.real(2, 5))) if states == 2 else (2, 5)
    return _info(name, Row((4, 5), (2, 4)), Row((4, 5), (2, 4), hidden, desc="state"),
                 Row((4, 5, {"bias": False}), (4,), desc="no_batch_dim"),
                 mistakes=[(Row((4, 5), (2, 3)), _CALLED, RuntimeError, "got 3 expected 4"),
                           (Row((4, 5), (3, 4), hidden), _CALLED, RuntimeError, "doesn't match hidden0 batch size 2")])


def _recurrent(name: str) -> ModuleInfo:
    return _info(name, Row((3, 4), (5, 2, 3)), Row((3, 4, {"batch_first": True, "bidirectional": True}), (2, 5, 3)),
                 Row((3, 4, {"num_layers": 2, "bias": False}), (5, 3), desc="no_batch_dim"),
                 mistakes=[(Row((3, 0)), _BUILT, ValueError, "hidden_size must be greater than zero"),
                           (Row((3, 4.0)), _BUILT, TypeError, "hidden_size should be of type int"),
                           (Row((3, 4, {"bias": 1})), _BUILT, TypeError, "bias should be of type bool"),
                           (Row(lambda d: (3, 4, {"dtype": d.dtype}), (5, 2, 2)), _CALLED, RuntimeError,
                            "must be equal to input_size")],
                 train_and_eval_differ=True)


_PROBABILITIES = lambda d: d.real(4, 3, low=0.02, high=0.98)
_TARGETS = lambda d: d.still(4, 3, low=0.0, high=1.0)
_STILL = lambda d: d.still(4, 3)
_SIGNS = lambda d: d.signs(4, 3)
_NORMAL: dict[str, Any] = {"train_and_eval_differ": True}
_IMAGE: dict[str, Any] = {"module_memformat_affects_out": True, "gradcheck_nondet_tol": 1e-12}
_COMPLEX_TOO = (float32, float64, complex64, complex128)
_WRONG_POOL: list[Mistake] = [(Row((2,), (3, 4)), _CALLED, RuntimeError, "3D or 4D"),
                              (Row((3, {"padding": 2}), (3, 4, 4)), _CALLED, RuntimeError, "at most half")]

_ACTIVATIONS: list[ModuleInfo] = [
    _activation("ReLU"), _activation("ReLU6"),
    _activation("ELU", (2.0,)), _activation("CELU", (2.0,)), _activation("SELU"),
    _activation("GELU", ("tanh",)), _activation("SiLU"), _activation("Mish"),
    _activation("LeakyReLU", (0.5,)), _activation("Hardtanh", (-0.5, 0.5)),
    _activation("Hardsigmoid"), _activation("Hardswish", supports_gradgrad=False),
    _activation("Hardshrink", (2.0,)), _activation("Sigmoid"),
    _activation("LogSigmoid"), _activation("Softplus", (2, 100)), _activation("Softshrink", (1.0,)),
    _activation("Softsign"), _activation("Tanh"), _activation("Tanhshrink"), _activation("Identity"),
    _info("Threshold", Row((2.0, 1.0), (2, 3, 4)), Row((2.0, 10.0), (), desc="scalar")),
    _info("PReLU", Row((), (2, 3, 4)), Row((3,), (2, 3, 4, 5), desc="channels")),
    _info("GLU", Row((), (5, 6)), Row((1,), (5, 6, 7), desc="dim")),
    _info("RReLU", Row((), (1, 2, 2)), Row((0.1, 0.9), (4, 4, 5), desc="bounds"), **_NORMAL),
    _info("Softmax", Row((1,), (10, 20)), Row((0,), (), desc="scalar"), Row((-1,), (4, 5), desc="last")),
    _info("Softmax2d", Row((), (1, 3, 10, 20)), Row((), (3, 4, 5), desc="no_batch_dim")),
    _info("LogSoftmax", Row((1,), (10, 20)), Row((-1,), (1, 3, 10, 20), desc="last")),
    _info("Softmin", Row((1,), (10, 20)), Row((1,), (2, 3, 5, 10), desc="multidim")),
]

_LAYERS: list[ModuleInfo] = [
    _info("Linear", Row((10, 8), (4, 10), reference=_linear),
          Row((10, 8, {"bias": False}), (4, 10), desc="no_bias", reference=_linear),
          Row((3, 5), (3,), desc="no_batch_dim", reference=_linear)),
    _info("Bilinear", Row((2, 3, 4), (8, 2), (8, 3)), Row((2, 3, 4, {"bias": False}), (8, 2), (8, 3), desc="no_bias"),
          Row((2, 3, 4), (2,), (3,), desc="no_batch_dim")),
    _info("Flatten", Row((), (2, 3, 4)), Row((0, 1), (2, 3, 4), desc="dims")),
    _info("Embedding", Row((4, 3), lambda d: d.classes(2, 5, below=4)),
          Row((4, 3, {"max_norm": None}), lambda d: d.classes(5, below=4), desc="no_batch_dim"),
          mistakes=[(Row((4, 3), lambda d: d.classes(5, below=4) + 4), _CALLED, IndexError, "index out of range"),
                    (Row((-1, 3)), _BUILT, RuntimeError, "negative dimension")]),
    _info("EmbeddingBag", Row((4, 3), lambda d: d.classes(2, 5, below=4)),
          Row((4, 3, {"mode": "sum"}), lambda d: d.classes(2, 5, below=4), desc="sum"),
          Row((4, 3, {"mode": "max"}), lambda d: d.classes(2, 5, below=4), desc="max"), supports_gradgrad=False),
    _with_images("Conv1d", (4, 7), (4, 6, 3), (4, 6, 3, 2, 1, {"padding_mode": "circular"}), **_IMAGE),
    _with_images("Conv2d", (4, 5, 6), (4, 6, 3), (4, 4, (3, 2), {"groups": 2, "bias": False}), **_IMAGE),
    _with_images("Conv3d", (2, 4, 4, 4), (2, 3, 2), (2, 2, 2, {"stride": 2, "dilation": 1}), **_IMAGE),
    _with_images("ConvTranspose1d", (3, 6), (3, 4, 3), (3, 4, 3, 2, 1, 1), **_IMAGE, dtypes=_COMPLEX_TOO),
    _with_images("ConvTranspose2d", (3, 4, 5), (3, 4, 3), (3, 4, 3, 2, 1, 1), **_IMAGE, dtypes=_COMPLEX_TOO),
    _with_images("ConvTranspose3d", (2, 3, 3, 3), (2, 3, 2), **_IMAGE, dtypes=_COMPLEX_TOO),
    *[_with_images(f"Lazy{kind}{n}d", sizes, (4, 2), **_IMAGE) for kind in ("Conv", "ConvTranspose")
      for n, sizes in ((1, (3, 6)), (2, (3, 4, 5)), (3, (2, 3, 3, 3)))],
    _cells("RNNCell", 1), _cells("GRUCell", 1), _cells("LSTMCell", 2),
    _recurrent("RNN"), _recurrent("GRU"), _recurrent("LSTM"),
    _info("MultiheadAttention", Row((8, 2), (3, 2, 8), (3, 2, 8), (3, 2, 8)),
          Row((8, 2, {"batch_first": True, "bias": False}), (2, 3, 8), (2, 3, 8), (2, 3, 8), desc="batch_first"),
          Row((8, 2), (3, 8), (3, 8), (3, 8), desc="no_batch_dim"), **_NORMAL),
    _info("TransformerEncoderLayer", Row((4, 2, 16, 0.0), (2, 3, 4)),
          Row((4, 2, 8, 0.0, {"activation": "gelu", "norm_first": True}), (3, 4), desc="no_batch_dim"), **_NORMAL),
    _info("TransformerEncoder", Row(lambda d: (nn.TransformerEncoderLayer(4, 2, 8, 0.0), 2), (3, 2, 4)), **_NORMAL),
    _info("TransformerDecoderLayer", Row((4, 2, 16, 0.0), (2, 3, 4), (2, 3, 4))),
    _info("Transformer", Row((4, 2, 1, 1, 8, 0.0), (3, 2, 4), (3, 2, 4)), gradcheck_fast_mode=True),
    *[_info(name, *[Row((0.3,), shape) for shape in shapes], **_NORMAL) for name, shapes in (
        ("Dropout", ((2, 3, 4),)), ("AlphaDropout", ((2, 3, 4),)), ("Dropout1d", ((2, 3, 4), (3, 4))),
        ("Dropout2d", ((2, 3, 4, 5),)), ("Dropout3d", ((2, 3, 4, 5, 2),)), ("FeatureAlphaDropout", ((2, 3, 4, 5),)))],
    _info("PixelShuffle", Row((3,), (1, 9, 4, 4))), _info("PixelUnshuffle", Row((3,), (1, 1, 12, 12))),
    _info("ChannelShuffle", Row((2,), (2, 4, 3, 3))), _info("Unflatten", Row((1, (2, 2)), (3, 4))),
    _info("Upsample", Row((6,), (1, 2, 4)), Row(({"scale_factor": 2, "mode": "bilinear"},), (1, 2, 4, 5))),
    _info("Fold", Row(((4, 4), (2, 2)), (2, 12, 9))), _info("Unfold", Row((2,), (2, 3, 4, 4))),
    _info("CosineSimilarity", Row((), (5, 3), (5, 3))), _info("PairwiseDistance", Row((), (5, 3), (5, 3))),
]

_NORMS: list[ModuleInfo] = [
    *[_info(f"BatchNorm{n}d", Row((4,), (3, 4, *sizes)), Row((4, 1e-3, 0.3, False), (3, 4, *sizes), desc="not_affine"),
            Row((4, 1e-3, 0.3, True, False), (3, 4, *sizes), desc="not_tracking"),
            mistakes=[(Row((3,), (2, 4, *sizes)), _CALLED, RuntimeError, "running_mean should contain"),
                      (Row((4,), (4,)), _CALLED, ValueError, "expected")], **_NORMAL)
      for n, sizes in ((1, (5,)), (2, (3, 3)), (3, (2, 3, 2)))],
    *[_info(f"InstanceNorm{n}d", Row((3,), (4, 3, *sizes)), Row((3, 1e-3, 0.3, True, True), (4, 3, *sizes)),
            Row((3,), (3, *sizes), desc="no_batch_dim"), **_NORMAL)
      for n, sizes in ((1, (6,)), (2, (3, 3)), (3, (2, 3, 2)))],
    _info("GroupNorm", Row((3, 6, 1e-3), (4, 6, 5)), Row((1, 5, 1e-3, False), (4, 5, 5), desc="not_affine"),
          mistakes=[(Row((3, 10), (4, 10)), _BUILT, ValueError, "must be divisible by num_groups")],
          dtypes=(float32, float64, float16, bfloat16)),
    _info("LayerNorm", Row(([5], 1e-3), (4, 5, 5)), Row(([5, 4], 1e-3, False), (3, 5, 4), desc="not_affine")),
    _info("RMSNorm", Row(([5],), (4, 5, 5)), Row(([5], 1e-3, False), (4, 5), desc="not_affine")),
    _info("LocalResponseNorm", Row((3,), (1, 5, 7)), Row((2,), (1, 5, 7, 7), desc="even")),
    _info("CrossMapLRN2d", Row((5, 5e-3, 1e-3, 2), (2, 3, 6, 6)), supports_gradgrad=False, skips=("test_grad",)),
]

_POOLS: list[ModuleInfo] = [
    *[_with_images(f"{kind}Pool{n}d", sizes, (2,), (3, 2, 1), mistakes=_WRONG_POOL if (kind, n) == ("Max", 2) else ())
      for kind in ("Avg", "Max") for n, sizes in ((1, (3, 6)), (2, (3, 6, 6)), (3, (2, 4, 4, 4)))],
    *[_with_images(f"Adaptive{kind}Pool{n}d", sizes, (3,), (1,)) for kind in ("Avg", "Max")
      for n, sizes in ((1, (3, 5)), (2, (3, 5, 6)), (3, (2, 4, 5, 3)))],
    *[_with_images(f"LPPool{n}d", sizes, (2, 2)) for n, sizes in ((1, (3, 7)), (2, (3, 7, 7)), (3, (2, 4, 4, 4)))],
    _info("FractionalMaxPool2d",
          Row(lambda d: (2, {"output_ratio": 0.5, "_random_samples": d.still(1, 3, 2, low=0, high=1)}), (1, 3, 5, 7))),
    _info("FractionalMaxPool3d",
          Row(lambda d: (2, {"output_ratio": 0.5, "_random_samples": d.still(2, 4, 3, low=0, high=1)}),
              (2, 4, 5, 5, 5))),
    *[_with_images(f"{kind}Pad{n}d", sizes, (1,), (tuple(range(1, 2 * n + 1)),), mistakes=[
        (Row((1,), (4,) * (n + 3)), _CALLED, ValueError, "expected")] if kind == "Circular" else ())
      for kind in ("Reflection", "Replication", "Zero", "Circular")
      for n, sizes in ((1, (3, 5)), (2, (3, 5, 6)), (3, (2, 8, 7, 6)))],
    *[_with_images(f"ConstantPad{n}d", sizes, (1, 2.5)) for n, sizes in (
        (1, (3, 4)), (2, (3, 4, 4)), (3, (2, 4, 3, 5)))],
]

_LOSSES: list[ModuleInfo] = [
    _loss("L1Loss", [(4, 3), _STILL]), _loss("MSELoss", [(4, 3), _STILL]),
    _loss("HuberLoss", [(4, 3), _STILL],
          mistakes=[(Row(({"delta": 1j},)), _BUILT, TypeError, "delta must be")]),
    _loss("SmoothL1Loss", [(4, 3), _STILL], {"beta": 0.5}), _loss("SoftMarginLoss", [(4, 3), _SIGNS]),
    _loss("HingeEmbeddingLoss", [(4, 3), _SIGNS], {"margin": 0.5}),
    _loss("BCELoss", [_PROBABILITIES, _TARGETS]), _loss("BCEWithLogitsLoss", [(4, 3), _TARGETS]),
    _loss("KLDivLoss", [lambda d: d.leaf(aten.log(_PROBABILITIES(d))), _TARGETS], {"reduction": "batchmean"}),
    _loss("PoissonNLLLoss", [(4, 3), _TARGETS], {"log_input": True, "full": True}),
    _loss("GaussianNLLLoss", [(4, 3), _STILL, lambda d: d.real(4, 1, low=0.1, high=2)], {"full": True}),
    _loss("NLLLoss", [lambda d: d.leaf(aten.log_softmax(d.real(5, 4), 1)), lambda d: d.classes(5, below=4)],
          {"ignore_index": 2}, mistakes=[(Row((), (5, 4), lambda d: d.classes(4, below=4)), _CALLED, ValueError,
                                          "to match target batch_size")]),
    _loss("CrossEntropyLoss", [(5, 4), lambda d: d.classes(5, below=4)], {"ignore_index": 1},
          {"label_smoothing": 0.2}, dtypes=(float32, float64, float16),
          mistakes=[(Row(({"label_smoothing": 1.5},), (5, 4), lambda d: d.classes(5, below=4)), _CALLED, RuntimeError,
                     "label_smoothing must be between 0.0 and 1.0"),
                    (Row(({"ignore_index": 1},), (2, 3), lambda d: d.still(2, 3)), _CALLED, RuntimeError,
                     "ignore_index is not supported for floating point target"),
                    (Row((), (2, 3, 5), lambda d: d.classes(2, 4, below=3)), _CALLED, RuntimeError,
                     "Expected target size")]),
    _info("LinearCrossEntropyLoss", Row((4, 3), (5, 4), lambda d: d.classes(5, below=3)),
          Row((4, 3, {"bias": True, "reduction": "sum"}), (5, 4), lambda d: d.classes(5, below=3), desc="bias"),
          mistakes=[(Row((4, 3, {"label_smoothing": 1.5})), _BUILT, RuntimeError, "expected label_smoothing")],
          dtypes=(float32, float64, float16, bfloat16), gradcheck_nondet_tol=1e-12),
    _loss("MultiMarginLoss", [(5, 4), lambda d: d.classes(5, below=4)], {"margin": 0.5}, {"p": 2},
          mistakes=[(Row((), (5, 4), lambda d: d.classes(3, below=4)), _CALLED, RuntimeError, "target")]),
    _loss("MultiLabelMarginLoss", [(5, 4), lambda d: d.classes(5, 4, below=4)]),
    _loss("MultiLabelSoftMarginLoss", [(4, 3), _TARGETS]),
    _loss("CosineEmbeddingLoss", [(4, 3), (4, 3), lambda d: d.signs(4)], {"margin": 0.5}),
    _loss("MarginRankingLoss", [(4,), (4,), lambda d: d.signs(4)], {"margin": 0.5}),
    _loss("TripletMarginLoss", [(4, 3), (4, 3), (4, 3)], {"margin": 0.5}, {"swap": True}),
    _loss("TripletMarginWithDistanceLoss", [(4, 3), (4, 3), (4, 3)]),
    _loss("CTCLoss", [lambda d: d.leaf(aten.log_softmax(d.real(8, 2, 4), 2)), lambda d: d.classes(2, 3, below=3) + 1,
                      lambda d: [8, 8], lambda d: [3, 2]], {"zero_infinity": True}, supports_gradgrad=False,
          skips=("test_grad",)),
]

module_db: list[ModuleInfo] = [*_LAYERS, *_ACTIVATIONS, *_NORMS, *_POOLS, *_LOSSES]


def __getattr__(name: str) -> Any:
    """`module_inputs_torch_nn_Linear` and its kin: a module's part of the table."""
    for start, part in (("module_inputs_torch_nn_", "module_inputs_func"),
                        ("module_error_inputs_torch_nn_", "module_error_inputs_func")):
        if name.startswith(start):
            for info in module_db:
                if info.module_cls.__name__ == name.removeprefix(start):
                    return getattr(info, part)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
