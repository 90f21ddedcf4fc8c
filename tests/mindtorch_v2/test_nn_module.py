"""Modules: parameters, names, walking, saving, conversion. Nothing here needs PyTorch."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn


class Scale(nn.Module):
    """`x * weight + shift`, with a buffer that is saved and one that is not."""

    def __init__(self, size: int = 2) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size) * 2)
        self.register_buffer("shift", torch.zeros(size))
        self.register_buffer("scratch", torch.zeros(1), persistent=False)

    def forward(self, x: Any, *, plus: float = 0.0) -> Any:
        return x * self.weight + self.shift + plus


class Pair(nn.Module):
    """Two of them."""

    def __init__(self) -> None:
        super().__init__()
        self.first = Scale()
        self.second = Scale()

    def forward(self, x: Any) -> Any:
        return self.second(self.first(x))


# -- parameters ----------------------------------------------------------------------------------------------------


def test_parameter_shares_memory_and_requires_grad() -> None:
    data = torch.zeros(2)
    parameter = nn.Parameter(data)
    data.fill_(3.0)
    assert parameter.tolist() == [3.0, 3.0]
    assert parameter.requires_grad
    assert parameter.is_leaf
    assert isinstance(parameter, torch.Tensor)
    assert repr(parameter) == "Parameter containing:\ntensor([3., 3.], requires_grad=True)"
    assert not nn.Parameter(data, requires_grad=False).requires_grad


def test_ops_on_a_parameter_give_plain_tensors() -> None:
    assert type(nn.Parameter(torch.ones(2)) * 2) is torch.Tensor


def test_integer_parameter_must_not_require_grad() -> None:
    with pytest.raises(RuntimeError, match="floating point"):
        nn.Parameter(torch.ones(2, dtype=torch.int64))
    assert nn.Parameter(torch.ones(2, dtype=torch.int64), requires_grad=False).dtype is torch.int64


def test_parameter_deepcopy_and_pickle() -> None:
    parameter = nn.Parameter(torch.ones(2))
    parameter.note = "kept by pickle only"
    parameter.grad = torch.ones(2)
    twin = copy.deepcopy(parameter)
    assert type(twin) is nn.Parameter
    assert twin.data_ptr() != parameter.data_ptr()
    assert twin.grad is None
    assert not hasattr(twin, "note")
    back = pickle.loads(pickle.dumps(parameter))
    assert type(back) is nn.Parameter
    assert back.requires_grad
    assert back.note == parameter.note


def test_deepcopy_keeps_sharing() -> None:
    module = Pair()
    module.second.weight = module.first.weight
    twin = copy.deepcopy(module)
    assert twin.second.weight is twin.first.weight
    assert twin.first.weight is not module.first.weight


def test_uninitialized_parameter_says_what_is_missing() -> None:
    parameter = nn.UninitializedParameter()
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized parameter"):
        print(parameter.shape)
    parameter.materialize((2, 3))
    assert type(parameter) is nn.Parameter
    assert parameter.shape == (2, 3)


# -- attributes ----------------------------------------------------------------------------------------------------


def test_attributes_land_in_their_tables() -> None:
    module = Pair()
    assert set(module._modules) == {"first", "second"}
    assert set(module.first._parameters) == {"weight"}
    assert set(module.first._buffers) == {"shift", "scratch"}
    assert "weight" not in module.first.__dict__
    module.first.shift = torch.ones(2)
    assert module.first._buffers["shift"].tolist() == [1.0, 1.0]
    module.first.weight = None
    assert module.first._parameters == {"weight": None}
    del module.second
    assert not hasattr(module, "second")
    assert "first" in dir(module)


def test_a_name_changes_its_kind() -> None:
    module = nn.Module()
    module.thing = 3
    module.thing = nn.Parameter(torch.ones(1))
    assert "thing" in module._parameters
    assert "thing" not in module.__dict__
    module.thing = nn.ReLU() if False else None
    module.other = nn.Buffer(torch.ones(1), persistent=False)
    assert "other" in module._buffers
    assert "other" not in module.state_dict()
    module.other = nn.Parameter(torch.ones(1))
    assert "other" in module._parameters
    assert "other" not in module._buffers
    assert "other" in module.state_dict()


class Early(nn.Module):
    """Assigns before `super().__init__()`."""

    def __init__(self, value: Any) -> None:
        self.value = value


def test_assignment_before_init() -> None:
    with pytest.raises(AttributeError, match="cannot assign module before"):
        Early(nn.ReLU())
    with pytest.raises(AttributeError, match="cannot assign parameters before"):
        Early(nn.Parameter(torch.ones(1)))
    assert Early(5).value == 5


@pytest.mark.parametrize(("action", "error", "words"), [
    (lambda m: m.register_parameter("a.b", None), KeyError, "can't contain"),
    (lambda m: m.register_parameter("", None), KeyError, "empty string"),
    (lambda m: m.register_parameter("forward", None), KeyError, "already exists"),
    (lambda m: m.register_parameter("x", torch.ones(1)), TypeError, "torch.FloatTensor"),
    (lambda m: m.register_buffer(3, None), TypeError, "should be a string. Got int"),
    (lambda m: m.register_buffer("x", 3), TypeError, "torch Tensor or None required"),
    (lambda m: m.add_module("x", 3), TypeError, "int is not a Module subclass"),
    (lambda m: m.add_module("a.b", nn.ReLU()), KeyError, "got: a.b"),
    (lambda m: setattr(m, "weight", torch.ones(2)), TypeError, "as parameter 'weight'"),
    (lambda m: setattr(m, "shift", 3), TypeError, "as buffer 'shift'"),
    (lambda m: m.nothing, AttributeError, "'Scale' object has no attribute 'nothing'"),
    (lambda m: m.train("yes"), ValueError, "expected to be boolean"),
    (lambda m: m.to(torch.int32), TypeError, "only accepts floating point or complex"),
    (lambda m: m.load_state_dict([]), TypeError, "dict-like"),
    (lambda m: m.get_submodule("a.b"), AttributeError, "Scale has no attribute `a`"),
    (lambda m: m.get_submodule("weight"), AttributeError, "is not an nn.Module"),
    (lambda m: m.get_parameter("shift"), AttributeError, "is not an nn.Parameter"),
    (lambda m: m.get_buffer("weight"), AttributeError, "is not a buffer"),
    (lambda m: m.set_submodule("", m), ValueError, "without a target name"),
    (lambda m: nn.Module()(1), NotImplementedError, 'required "forward"'),
    (lambda m: nn.Module(3), TypeError, "takes 1 positional argument but 2 were given"),
    (lambda m: nn.Module(a=3), TypeError, "unexpected keyword argument 'a'"),
])
def test_errors(action: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error) as raised:
        action(Scale())
    assert words in str(raised.value).replace("\\'", "'")


def test_look_up_by_path() -> None:
    module = Pair()
    assert module.get_submodule("first") is module.first
    assert module.get_submodule("") is module
    assert module.get_parameter("first.weight") is module.first.weight
    assert module.get_buffer("second.shift") is module.second.shift
    module.set_submodule("first", nn.ReLU())
    assert isinstance(module.first, nn.ReLU)


# -- walking -------------------------------------------------------------------------------------------------------


def test_walking() -> None:
    module = Pair()
    module.second.weight = module.first.weight
    module.again = module.first
    assert [n for n, _ in module.named_parameters()] == ["first.weight"]
    assert [n for n, _ in module.named_parameters(remove_duplicate=False)] == [
        "first.weight", "second.weight", "again.weight"]
    assert [n for n, _ in module.named_parameters(prefix="net")] == ["net.first.weight"]
    assert list(module.parameters(recurse=False)) == []
    assert [n for n, _ in module.named_modules()] == ["", "first", "second"]
    assert [n for n, _ in module.named_modules(remove_duplicate=False)] == ["", "first", "second", "again"]
    assert [n for n, _ in module.named_children()] == ["first", "second"]
    assert [n for n, _ in module.named_buffers()] == ["first.shift", "first.scratch", "second.shift", "second.scratch"]
    assert len(list(module.modules())) == 3


def test_train_eval_apply_and_grads() -> None:
    module = Pair()
    assert module.eval() is module
    assert not any(m.training for m in module.modules())
    module.train()
    assert all(m.training for m in module.modules())
    order: list[Any] = []
    module.apply(order.append)
    assert order == [module.first, module.second, module]
    module(torch.ones(2)).sum().backward()
    assert module.first.weight.grad is not None
    module.zero_grad(set_to_none=False)
    assert module.first.weight.grad.tolist() == [0.0, 0.0]
    module.zero_grad()
    assert module.first.weight.grad is None
    module.requires_grad_(False)
    assert not any(p.requires_grad for p in module.parameters())


# -- conversion ----------------------------------------------------------------------------------------------------


def test_conversion_keeps_parameters_and_skips_integers() -> None:
    module = Pair()
    module.register_buffer("count", torch.zeros((), dtype=torch.int64))
    weight = module.first.weight
    module(torch.ones(2)).sum().backward()
    assert module.to(torch.float64) is module
    assert module.first.weight is weight
    assert weight.dtype is torch.float64
    assert weight.grad.dtype is torch.float64
    assert weight.requires_grad
    assert module.first.shift.dtype is torch.float64
    assert module.count.dtype is torch.int64
    module(torch.ones(2, dtype=torch.float64)).sum().backward()
    assert weight.grad.tolist() == [4.0, 4.0]
    for method, dtype in (("half", torch.float16), ("bfloat16", torch.bfloat16), ("float", torch.float32),
                          ("double", torch.float64)):
        getattr(module, method)()
        assert weight.dtype is dtype
        assert module.count.dtype is torch.int64
    module.type(torch.float32)
    assert module.count.dtype is torch.float32


# -- state dict ----------------------------------------------------------------------------------------------------


def test_state_dict_shares_memory_and_loads() -> None:
    source, target = Pair(), Pair()
    state = source.state_dict()
    assert list(state) == ["first.weight", "first.shift", "second.weight", "second.shift"]
    assert type(state) is OrderedDict
    assert state._metadata[""] == {"version": 1}
    assert state._metadata["first"] == {"version": 1}
    assert type(state["first.weight"]) is torch.Tensor
    assert state["first.weight"].data_ptr() == source.first.weight.data_ptr()
    assert source.state_dict(keep_vars=True)["first.weight"] is source.first.weight
    assert next(iter(source.state_dict(prefix="net."))) == "net.first.weight"
    state["first.weight"].fill_(7.0)
    weight = target.first.weight
    result = target.load_state_dict(state)
    assert str(result) == "<All keys matched successfully>"
    assert target.first.weight is weight
    assert weight.tolist() == [7.0, 7.0]
    assert weight.data_ptr() != source.first.weight.data_ptr()


def test_load_state_dict_errors_are_collected() -> None:
    module = Pair()
    state = module.state_dict()
    del state["first.weight"]
    state["more"] = torch.ones(1)
    state["second.shift"] = torch.ones(3)
    with pytest.raises(RuntimeError) as raised:
        module.load_state_dict(state)
    assert str(raised.value) == (
        "Error(s) in loading state_dict for Pair:\n"
        '\tMissing key(s) in state_dict: "first.weight". \n'
        '\tUnexpected key(s) in state_dict: "more". \n'
        "\tsize mismatch for second.shift: copying a param with shape torch.Size([3]) from checkpoint, the shape in "
        "current model is torch.Size([2])."
    )
    state["second.shift"] = torch.ones(2)
    missing, unexpected = module.load_state_dict(state, strict=False)
    assert (missing, unexpected) == (["first.weight"], ["more"])
    state["second.shift"] = 3
    with pytest.raises(RuntimeError, match="or Tensor-like object"):
        module.load_state_dict(state, strict=False)


def test_load_state_dict_assign() -> None:
    module = Scale()
    state = {"weight": torch.ones(2, dtype=torch.float64), "shift": torch.ones(2)}
    module.load_state_dict(state, assign=True)
    assert isinstance(module.weight, nn.Parameter)
    assert module.weight.dtype is torch.float64
    assert module.weight.data_ptr() == state["weight"].data_ptr()
    assert module.shift is state["shift"]


class WithExtra(nn.Module):
    """Saves a number along."""

    count = 0

    def get_extra_state(self) -> Any:
        return self.count

    def set_extra_state(self, state: Any) -> None:
        self.count = state


def test_extra_state() -> None:
    source, target = WithExtra(), WithExtra()
    source.count = 5
    assert dict(source.state_dict()) == {"_extra_state": 5}
    target.load_state_dict(source.state_dict())
    assert target.count == 5
    with pytest.raises(RuntimeError, match="Missing key"):
        target.load_state_dict({})


def test_state_dict_hooks() -> None:
    module = Pair()
    seen: list[str] = []
    module.register_state_dict_pre_hook(lambda m, prefix, keep_vars: seen.append("pre"))
    module.register_state_dict_post_hook(lambda m, state, prefix, meta: state.__delitem__("first.shift"))
    module.register_load_state_dict_pre_hook(lambda m, state, *rest: state.update({"first.shift": torch.ones(2)}))
    module.register_load_state_dict_post_hook(lambda m, keys: seen.append(f"post {len(keys.missing_keys)}"))
    state = module.state_dict()
    assert "first.shift" not in state
    module.load_state_dict(state)
    assert module.first.shift.tolist() == [1.0, 1.0]
    assert seen == ["pre", "post 0"]
    twin = copy.deepcopy(module)
    twin.load_state_dict(state)
    assert twin.first.shift.tolist() == [1.0, 1.0]


class Renamed(Scale):
    """Reads files in which `weight` was still called `scale`."""

    _version = 2

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any) -> None:
        if local_metadata.get("version", 1) < 2 and prefix + "scale" in state_dict:
            state_dict[prefix + "weight"] = state_dict.pop(prefix + "scale")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


def test_old_formats_are_read_by_override() -> None:
    module = Renamed()
    given = {"scale": torch.ones(2), "shift": torch.ones(2)}
    module.load_state_dict(given)
    assert module.weight.tolist() == [1.0, 1.0]
    assert set(given) == {"scale", "shift"}, "the caller's dictionary is left alone"


def test_pickle_of_a_module() -> None:
    module = Pair()
    back = pickle.loads(pickle.dumps(module))
    assert back(torch.ones(2)).tolist() == module(torch.ones(2)).tolist()
    assert isinstance(back.first.weight, nn.Parameter)
