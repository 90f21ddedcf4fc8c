"""Optimizers that are given their gradients: parameters and states as PyTorch's."""

import warnings

import numpy as np
import pytest
import torch as pytorch

import mindtorch_v2
from mindtorch_v2.distributed.optim import utils as own_utils

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PyTorch's are compiled by a deprecated function
    from torch.distributed.optim import utils as pytorch_utils

OPTIONS = {"SGD": {"momentum": 0.9, "weight_decay": 0.1}, "Adam": {"amsgrad": True}, "AdamW": {"weight_decay": 0.2},
           "Adagrad": {"lr_decay": 0.1}, "Adadelta": {"rho": 0.8}, "RMSprop": {"momentum": 0.5, "centered": True},
           "Rprop": {}, "Adamax": {"weight_decay": 0.1}}


def steps(torch, utils, name, *, single):
    """Parameters after some steps, their states, and what is refused."""
    params = [torch.tensor([1.0, -2.0, 3.0]), torch.tensor([[0.5, -0.5]])]
    gradients = [torch.tensor([0.1, 0.2, -0.3]), torch.tensor([[1.0, -2.0]])]
    optimizer = utils.as_functional_optim(getattr(torch.optim, name), lr=0.1, **OPTIONS[name])
    if single:
        for _ in range(3):
            for param, gradient in zip(params, gradients, strict=True):
                optimizer.step_param(param, gradient)
    else:
        optimizer = type(optimizer)(params, lr=0.1, **OPTIONS[name])
        for count in range(3):
            optimizer.step([gradients[0], None if count == 1 and name != "Adagrad" else gradients[1]])
    states = [{key: value.tolist() if isinstance(value, torch.Tensor) else value
               for key, value in optimizer.state[param].items()
               if value is not None and key != "exp_inf"} for param in params]
    assert all(param.grad is None for param in params)
    with pytest.raises(ValueError, match="size of the parameters"):
        optimizer.step([None] * 7)
    return [param.tolist() for param in params], states


@pytest.mark.parametrize("name", list(OPTIONS))
@pytest.mark.parametrize("single", [False, True])
def test_steps_with_given_gradients(name, single):
    if single and name not in ("SGD", "Adam", "AdamW"):
        assert not hasattr(own_utils.functional_optim_map[getattr(mindtorch_v2.optim, name)], "step_param")
        return
    (params, states), (expected, expected_states) = (
        steps(torch, utils, name, single=single)
        for torch, utils in ((mindtorch_v2, own_utils), (pytorch, pytorch_utils)))
    for one, other in zip(params, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    for one, other in zip(states, expected_states, strict=True):
        for key in one.keys() & other.keys():
            np.testing.assert_allclose(one[key], other[key], rtol=1e-5)


def test_classes_can_be_registered():
    own_utils.register_functional_optim("mine", int)
    own_utils.register_functional_optim("mine", float)
    assert own_utils.functional_optim_map.pop("mine") is int
    with pytest.raises(ValueError, match="functional counterpart"):
        own_utils.as_functional_optim(mindtorch_v2.optim.LBFGS)
    with pytest.raises(ValueError, match="empty parameter list"):
        own_utils.functional_optim_map[mindtorch_v2.optim.Adam]([])
