"""timm: small models of many families, training mode and gradients, feature extraction, its optimizers."""

from __future__ import annotations

from typing import Any

import numpy as np
import timm
import timm.optim
import torch

from ..harness import Figures, case, learn, learn_exactly, summary

MODELS: dict[str, dict[str, Any]] = {
    "resnet18": {}, "resnet26d": {}, "mobilenetv3_small_050": {}, "efficientnet_b0": {}, "convnext_atto": {},
    "vit_tiny_patch16_224": {"img_size": 64}, "deit_tiny_patch16_224": {"img_size": 64},
    "swin_tiny_patch4_window7_224": {"img_size": 56, "embed_dim": 24, "depths": (1, 1), "num_heads": (2, 4)},
    "mixer_s32_224": {"img_size": 64}, "regnetx_002": {}, "densenet121": {"block_config": (2, 2, 2, 2)},
    "ghostnet_050": {}, "repvgg_a0": {},
}
AMPLIFYING = ("efficientnet_b0", "densenet121", "mobilenetv3_small_050", "ghostnet_050")


def picture(size: int = 64) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(1).standard_normal((2, 3, size, size)).astype(np.float32))


def _train(name: str) -> Figures:
    torch.manual_seed(0)
    model = timm.create_model(name, pretrained=False, num_classes=5, **MODELS[name])
    x, labels = picture(MODELS[name].get("img_size", 64)), torch.tensor([1, 4])

    def run(m: Any) -> tuple[Any, Any]:
        out = m(x.to(next(m.parameters()).dtype))
        return out, torch.nn.functional.cross_entropy(out, labels)

    return learn_exactly(model, run) if name in AMPLIFYING else learn(model, run, lr=1e-2, optimizer="SGD")


for _name in MODELS:
    case("timm", _name, quick=_name == "resnet18")(
        lambda _name=_name: _train(_name))  # type: ignore[misc]


@case("timm", "features")
def features() -> Figures:
    torch.manual_seed(0)
    model = timm.create_model("resnet18", pretrained=False, features_only=True).eval()
    with torch.no_grad():
        return {str(i): summary(part) for i, part in enumerate(model(picture()))}


@case("timm", "optimizers")
def optimizers() -> Figures:
    figures = {}
    for name in ("sgd", "adamw", "lamb", "lion", "adafactor", "nadamw", "rmsproptf", "madgrad"):
        torch.manual_seed(0)
        layer = torch.nn.Linear(4, 3)
        optimizer = timm.optim.create_optimizer_v2(layer, opt=name, lr=1e-2, weight_decay=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            layer(torch.arange(8.0).reshape(2, 4)).square().mean().backward()
            optimizer.step()
        figures[name] = summary(layer.weight)
    return figures
