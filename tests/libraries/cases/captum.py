"""Captum: which inputs an answer depends on."""

from __future__ import annotations

import torch
from captum.attr import DeepLift, GuidedBackprop, IntegratedGradients, LayerGradCam, Occlusion, Saliency
from torch import nn

from ..harness import Figures, case, summary


@case("captum", "attributions", quick=True)
def attributions() -> Figures:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(36, 3)).eval()
    x = torch.randn(2, 1, 8, 8, requires_grad=True)
    made = {type(method).__name__: method.attribute(x, target=1) for method in (
        IntegratedGradients(model), Saliency(model), DeepLift(model), GuidedBackprop(model),
        LayerGradCam(model, model[0]))}
    made["Occlusion"] = Occlusion(model).attribute(x, target=1, sliding_window_shapes=(1, 3, 3))
    return {name: summary(value) for name, value in made.items()}
