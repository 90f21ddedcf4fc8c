"""Boxes that overlap: `torchvision::nms`."""

from __future__ import annotations

import numpy as np


def nms(dets: np.ndarray, scores: np.ndarray, iou_threshold: float) -> np.ndarray:
    """The boxes to keep, best first: each removes those after it whose overlap with it is above the threshold.

    >>> nms(np.array([[0, 0, 2, 2], [0, 0, 2, 1.9], [5, 5, 6, 6]], np.float32), np.array([.5, .9, .7], np.float32), .5)
    array([1, 2])
    """
    order = np.argsort(-scores, kind="stable")
    x1, y1, x2, y2 = dets[order].T
    areas = (x2 - x1) * (y2 - y1)
    alive = np.ones(len(order), bool)
    for best in range(len(order)):
        if not alive[best]:
            continue
        rest = slice(best + 1, None)
        width = np.maximum(np.minimum(x2[best], x2[rest]) - np.maximum(x1[best], x1[rest]), 0)
        height = np.maximum(np.minimum(y2[best], y2[rest]) - np.maximum(y1[best], y1[rest]), 0)
        common = width * height
        alive[rest] &= ~(common / (areas[best] + areas[rest] - common) > iou_threshold)
    return order[alive]
