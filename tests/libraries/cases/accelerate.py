"""Accelerate: a training loop as its documents show it, with accumulation, clipping and saved state."""

from __future__ import annotations

import tempfile

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from accelerate.utils import set_seed

from ..harness import Figures, case, summary


def _parts() -> tuple[torch.nn.Module, torch.optim.Optimizer, torch.utils.data.DataLoader]:
    set_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.GELU(), torch.nn.Dropout(0.1), torch.nn.Linear(16, 1))
    x = torch.randn(32, 6)
    data = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))
    return (model, torch.optim.AdamW(model.parameters(), lr=1e-2),
            torch.utils.data.DataLoader(data, batch_size=4, shuffle=True))


@case("accelerate", "training_loop", quick=True)
def training_loop() -> Figures:
    accelerator = Accelerator(gradient_accumulation_steps=2, cpu=True)
    model, optimizer, loader = _parts()
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
    losses = []
    for _ in range(2):
        for x, y in loader:
            with accelerator.accumulate(model):
                loss = torch.nn.functional.mse_loss(model(x), y)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            losses.append(float(accelerator.gather(loss.detach()).mean()))
    weights = accelerator.unwrap_model(model)[0].weight
    return {"losses": losses, "weights": summary(weights), "rate": [schedule.get_last_lr()[0]]}


@case("accelerate", "save_state")
def save_state() -> Figures:
    """Random numbers, model, optimizer and loader continue from a checkpoint."""
    accelerator = Accelerator(cpu=True)
    model, optimizer, loader = accelerator.prepare(*_parts())

    def epoch() -> list[float]:
        losses = []
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            losses.append(float(loss))
        return losses

    epoch()
    with tempfile.TemporaryDirectory() as folder:
        accelerator.save_state(folder)
        straight = epoch()
        accelerator.load_state(folder)
        again = epoch()
    return {"straight": straight, "again": again}


@case("accelerate", "autocast")
def autocast() -> Figures:
    AcceleratorState._reset_state()  # precision is chosen once in a process
    accelerator = Accelerator(cpu=True, mixed_precision="bf16")
    model, optimizer, loader = accelerator.prepare(*_parts())
    losses = []
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
        losses.append(round(float(loss), 1))
    return {"losses": losses[:1], "count": [float(len(losses))]}


@case("accelerate", "empty_weights")
def empty_weights() -> Figures:
    """A model without memory, then filled from a state dict, and split over devices by size."""
    from accelerate import infer_auto_device_map, init_empty_weights

    with init_empty_weights():
        model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 2))
    meta = [float(p.device.type == "meta") for p in model.parameters()]
    places = infer_auto_device_map(model, max_memory={"cpu": "1GB"})
    torch.manual_seed(0)
    full = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 2))
    model.load_state_dict(full.state_dict(), assign=True)
    return {"meta": meta, "places": [float(len(places))], "output": summary(model(torch.ones(2, 8)))}
