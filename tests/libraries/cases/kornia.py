"""Kornia: filters, colours, geometry and augmentation of images."""

from __future__ import annotations

import kornia
import torch

from ..harness import Figures, case, summary


@case("kornia", "filters", quick=True)
def filters() -> Figures:
    torch.manual_seed(0)
    image = torch.rand(2, 3, 24, 24)
    turned = kornia.geometry.transform.rotate(image, torch.tensor([30.0, 45.0]))
    return {"blur": summary(kornia.filters.gaussian_blur2d(image, (3, 3), (1.5, 1.5))),
            "edges": summary(kornia.filters.sobel(image)), "hsv": summary(kornia.color.rgb_to_hsv(image)),
            "lab": summary(kornia.color.rgb_to_lab(image)), "turned": summary(turned),
            "wider": summary(kornia.morphology.dilation(image, torch.ones(3, 3)))}


@case("kornia", "augmentation")
def augmentation() -> Figures:
    torch.manual_seed(0)
    image = torch.rand(2, 3, 24, 24, requires_grad=True)
    augment = kornia.augmentation
    made = torch.nn.Sequential(augment.RandomHorizontalFlip(p=1.0), augment.RandomAffine(20.0, p=1.0))(image)
    made.square().sum().backward()
    return {"made": summary(made), "gradient": summary(image.grad)}
