"""torchvision: models, detection, transforms, ops."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torchvision
from torchvision.models.feature_extraction import create_feature_extractor
from torchvision.transforms import v2

from ..harness import Figures, case, learn, learn_exactly, summary

MODELS = ("mobilenet_v3_small", "squeezenet1_1")
AMPLIFYING = ("resnet18", "resnet50", "mobilenet_v2", "shufflenet_v2_x0_5", "efficientnet_b0", "mnasnet0_5",
              "regnet_y_400mf")


def picture(count: int = 2, size: int = 64) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(1).random((count, 3, size, size)).astype(np.float32))


def _train(name: str) -> Figures:
    torch.manual_seed(0)
    model = getattr(torchvision.models, name)(weights=None, num_classes=5)
    labels = torch.tensor([1, 4])

    def run(m: Any) -> tuple[Any, Any]:
        out = m(picture().to(next(m.parameters()).dtype))
        return out, torch.nn.functional.cross_entropy(out, labels)

    return learn_exactly(model, run) if name in AMPLIFYING else learn(model, run, lr=1e-2, optimizer="SGD")


for _name in MODELS + AMPLIFYING:
    case("torchvision", _name, quick=_name == "resnet18")(
        lambda _name=_name: _train(_name))  # type: ignore[misc]


@case("torchvision", "vit")
def vit() -> Figures:
    torch.manual_seed(0)
    model = torchvision.models.VisionTransformer(32, 8, 2, 4, 32, 64, num_classes=5)

    def run(m: Any) -> tuple[Any, Any]:
        out = m(picture(2, 32))
        return out, out.square().mean()

    return learn(model, run, lr=1e-2, optimizer="SGD")


@case("torchvision", "segmentation")
def segmentation() -> Figures:
    torch.manual_seed(0)
    model = torchvision.models.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None,
                                                                      num_classes=4)

    def run(m: Any) -> tuple[Any, Any]:
        out = m(picture())["out"]
        return out, out.square().mean()

    return learn(model, run, lr=1e-2, optimizer="SGD")


@case("torchvision", "detection")
def detection() -> Figures:
    """Losses of a Faster R-CNN in training, on boxes that are given."""
    torch.manual_seed(0)
    model = torchvision.models.detection.fasterrcnn_mobilenet_v3_large_320_fpn(
        weights=None, weights_backbone=None, num_classes=3, min_size=64, max_size=64)
    targets = [{"boxes": torch.tensor([[4.0, 4.0, 40.0, 44.0]]), "labels": torch.tensor([1])},
               {"boxes": torch.tensor([[10.0, 8.0, 60.0, 30.0], [2.0, 2.0, 20.0, 20.0]]),
                "labels": torch.tensor([2, 1])}]
    torch.manual_seed(1)
    losses = model(list(picture()), targets)
    sum(losses.values()).backward()
    grads = [p.grad.norm() for p in model.parameters() if p.grad is not None]
    return {**{name: [float(value)] for name, value in losses.items()}, "gradient": [float(torch.stack(grads).norm())]}


@case("torchvision", "transforms")
def transforms() -> Figures:
    image = (picture(1, 40)[0] * 255).to(torch.uint8)
    ways = {
        "resize": v2.Resize((24, 31), antialias=True), "crop": v2.RandomCrop(20), "flip": v2.RandomHorizontalFlip(1.0),
        "jitter": v2.ColorJitter(0.3, 0.3, 0.3, 0.1), "rotation": v2.RandomRotation(30), "blur": v2.GaussianBlur(5),
        "affine": v2.RandomAffine(20, (0.1, 0.1), (0.8, 1.2), 10), "gray": v2.Grayscale(3),
        "crop_resize": v2.RandomResizedCrop(16, antialias=True), "erasing": v2.RandomErasing(1.0),
        "augment": v2.RandAugment(), "trivial": v2.TrivialAugmentWide(), "perspective": v2.RandomPerspective(0.4, 1.0),
        "normal": v2.Compose([v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5] * 3, [0.25] * 3)]),
    }
    figures = {}
    for name, way in ways.items():
        torch.manual_seed(4)
        figures[name] = summary(way(image))
    return figures


@case("torchvision", "boxes")
def boxes() -> Figures:
    generator = np.random.default_rng(3)
    corners = generator.random((12, 2)) * 30
    found = torch.from_numpy(np.concatenate([corners, corners + 2 + generator.random((12, 2)) * 20], 1)).float()
    scores = torch.from_numpy(generator.random(12)).float()
    features = picture(1, 16).requires_grad_()
    pooled = torchvision.ops.roi_align(features, [found[:3] / 4], (3, 3), sampling_ratio=2)
    pooled.sum().backward()
    ops = torchvision.ops
    return {"nms": ops.nms(found, scores, 0.3).tolist(), "iou": summary(ops.box_iou(found, found)),
            "giou": summary(ops.generalized_box_iou(found, found)), "roi_align": summary(pooled),
            "gradient": summary(features.grad),
            "focal": summary(ops.sigmoid_focal_loss(scores, (scores > 0.5).float(), reduction="none"))}


@case("torchvision", "feature_extraction")
def feature_extraction() -> Figures:
    torch.manual_seed(0)
    model = torchvision.models.resnet18(weights=None).eval()
    made = create_feature_extractor(model, {"layer1": "early", "layer3.1.relu": "late"})
    with torch.no_grad():
        return {name: summary(part) for name, part in made(picture()).items()}
