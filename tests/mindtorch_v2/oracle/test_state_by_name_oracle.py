"""`torch.distributed.checkpoint.state_dict` in one process: what it gives and takes is PyTorch's."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from both import outcome, same


def _parts(torch: Any) -> tuple[Any, Any, Any]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.PReLU(3), torch.nn.Linear(3, 1))
    model[2].bias.requires_grad_(False)
    model.register_buffer("seen", torch.zeros(1))
    rest = [p for p in model[1:].parameters() if p.requires_grad]
    optimizer = torch.optim.Adam([{"params": model[0].parameters(), "lr": 0.1}, {"params": rest}])
    return model, optimizer, importlib.import_module(f"{torch.__name__}.distributed.checkpoint.state_dict")


def _step(torch: Any, model: Any, optimizer: Any) -> None:
    model(torch.arange(8.0).view(4, 2)).square().sum().backward()
    optimizer.step()
    optimizer.zero_grad()


@pytest.mark.parametrize("options", [
    {}, {"full_state_dict": True, "cpu_offload": True}, {"ignore_frozen_params": True},
    {"full_state_dict": True}, {"flatten_optimizer_state_dict": True},
])
def test_states(options: dict[str, bool]) -> None:
    def program(torch: Any) -> Any:
        model, optimizer, by_name = _parts(torch)
        fresh = by_name.get_optimizer_state_dict(model, optimizer)["state"]["0.weight"]["step"]
        _step(torch, model, optimizer)
        chosen = by_name.StateDictOptions(**options)
        state, of_optimizer = by_name.get_state_dict(model, [optimizer], options=chosen)
        other, its_optimizer, _ = _parts(torch)
        if not options.get("ignore_frozen_params"):
            by_name.set_state_dict(other, its_optimizer, model_state_dict=state, optim_state_dict=of_optimizer,
                                   options=chosen)
        else:
            by_name.set_optimizer_state_dict(other, its_optimizer, of_optimizer, options=chosen)
        return [fresh, list(of_optimizer), list(state.items()), its_optimizer.state_dict()["param_groups"],
                list(its_optimizer.state_dict()["state"][0].items())]

    same(program)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_modules_and_mistakes() -> None:
    def program(torch: Any) -> Any:
        model, _, by_name = _parts(torch)
        lax = by_name.StateDictOptions(strict=False)
        short = by_name.StateDictOptions(keep_submodule_prefixes=False)
        loaded = by_name.set_model_state_dict(model, {"0.weight": torch.ones(3, 2), "more": torch.ones(1)}, options=lax)
        return [
            list(by_name.get_model_state_dict(model, submodules={model[0], model[2]})),
            list(by_name.get_model_state_dict(model, submodules={model[0]}, options=short)),
            by_name.get_model_state_dict(model)["0.weight"].data_ptr() == model[0].weight.data_ptr(),
            list(loaded.missing_keys), list(loaded.unexpected_keys), model[0].weight,
            by_name.set_model_state_dict(model, {model[0]: {"bias": torch.ones(3)}}, options=lax).missing_keys[:1],
            model[0].bias,
            outcome(lambda: by_name.set_model_state_dict(model, {"0.weight": torch.ones(3, 2)}), 40),
        ]

    same(program)
