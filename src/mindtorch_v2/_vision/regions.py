"""Regions of a feature map brought to one size: `torchvision::roi_align`, `roi_pool` and their gradients.

A region is a row of five numbers: which image, then its corners in the image's coordinates.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np


def _corners(rois: np.ndarray, scale: float, aligned: bool) -> tuple[np.ndarray, ...]:
    """Left, top, width and height of regions in the feature map's coordinates."""
    shift = rois.dtype.type(0.5 if aligned else 0.0)
    left, top, right, bottom = (rois[:, 1:] * rois.dtype.type(scale) - shift).T
    width, height = right - left, bottom - top
    if not aligned:
        width, height = np.maximum(width, 1), np.maximum(height, 1)
    return left, top, width, height


def _axis(start: np.ndarray, extent: np.ndarray, bins: int, samples: int, size: int) -> tuple[np.ndarray, ...]:
    """Where the samples of regions lie on one axis: the two pixels around each, the weight of the second, and whether
    it is inside. All are (regions, bins * samples)."""
    step = extent[:, None] / bins
    cell = np.arange(bins).repeat(samples)
    inside = (np.tile(np.arange(samples), bins) + 0.5).astype(start.dtype)
    place = start[:, None] + cell * step + inside * step / samples
    valid = (place >= -1.0) & (place <= size)
    place = np.maximum(place, 0)
    low = np.minimum(place.astype(np.int64), size - 1)
    high = np.minimum(low + 1, size - 1)
    weight = np.where(low >= size - 1, 0, place - low).astype(start.dtype)
    return low, high, weight, valid


def _groups(rois: np.ndarray, scale: float, bins: tuple[int, int], sampling: int, aligned: bool,
            size: tuple[int, int]) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, int]]:
    """Regions that take equally many samples: which they are, the four pixels of each sample as places in a flat image,
    their weights (divided by the number of samples of a bin), both (regions, rows, columns, 4), and the samples a bin
    has on its second axis."""
    left, top, width, height = _corners(rois, scale, aligned)
    if sampling > 0:
        counts = np.full((len(rois), 2), sampling)
    else:
        counts = np.maximum(np.ceil(np.stack([height / bins[0], width / bins[1]], 1)), 0).astype(np.int64)
    for rows, columns in np.unique(counts, axis=0):
        chosen = np.nonzero((counts == (rows, columns)).all(1))[0]
        if not rows or not columns:
            continue
        y0, y1, fy, valid_y = _axis(top[chosen], height[chosen], bins[0], int(rows), size[0])
        x0, x1, fx, valid_x = _axis(left[chosen], width[chosen], bins[1], int(columns), size[1])
        y0, y1, fy, valid_y = (part[:, :, None] for part in (y0, y1, fy, valid_y))
        x0, x1, fx, valid_x = (part[:, None, :] for part in (x0, x1, fx, valid_x))
        places = np.stack([y0 * size[1] + x0, y0 * size[1] + x1, y1 * size[1] + x0, y1 * size[1] + x1], -1)
        weights = np.stack([(1 - fy) * (1 - fx), (1 - fy) * fx, fy * (1 - fx), fy * fx], -1)
        weights = weights * (valid_y & valid_x)[..., None] / (rows * columns)
        yield chosen, places, weights.astype(rois.dtype), int(columns)


def roi_align(image: np.ndarray, rois: np.ndarray, spatial_scale: float, pooled_height: int, pooled_width: int,
              sampling_ratio: int, aligned: bool) -> np.ndarray:
    """The mean of interpolated samples in each bin of each region."""
    _, channels, height, width = image.shape
    made = np.zeros((len(rois), channels, pooled_height, pooled_width), image.dtype)
    flat = image.reshape(len(image), channels, height * width)
    for chosen, places, weights, _ in _groups(rois, spatial_scale, (pooled_height, pooled_width), sampling_ratio,
                                              aligned, (height, width)):
        for region, place, weight in zip(chosen, places, weights, strict=True):
            samples = (flat[int(rois[region, 0])][:, place] * weight).sum(-1)
            made[region] = samples.reshape(channels, pooled_height, -1, pooled_width,
                                           samples.shape[2] // pooled_width).sum((2, 4))
    return made


def roi_align_backward(grad: np.ndarray, rois: np.ndarray, spatial_scale: float, pooled_height: int, pooled_width: int,
                       batch_size: int, channels: int, height: int, width: int, sampling_ratio: int,
                       aligned: bool) -> np.ndarray:
    """Each bin's gradient spread over the pixels its samples came from."""
    made = np.zeros((batch_size, channels, height * width), grad.dtype)
    for chosen, places, weights, columns in _groups(rois, spatial_scale, (pooled_height, pooled_width), sampling_ratio,
                                                    aligned, (height, width)):
        for region, place, weight in zip(chosen, places, weights, strict=True):
            spread = grad[region].repeat(place.shape[0] // pooled_height, 1).repeat(columns, 2)
            pixels, values = place.reshape(-1), (spread[..., None] * weight).reshape(channels, -1)
            np.add.at(made[int(rois[region, 0])].T, pixels, values.T)
    return made.reshape(batch_size, channels, height, width)


def roi_pool(image: np.ndarray, rois: np.ndarray, spatial_scale: float, pooled_height: int,
             pooled_width: int) -> tuple[np.ndarray, np.ndarray]:
    """The largest value in each bin of each region, and where in the image it is."""
    _, channels, height, width = image.shape
    made = np.zeros((len(rois), channels, pooled_height, pooled_width), image.dtype)
    places = np.full(made.shape, -1, np.int32)
    corners = np.floor(rois[:, 1:] * rois.dtype.type(spatial_scale) + 0.5).astype(np.int64)
    for region, (left, top, right, bottom) in enumerate(corners):
        rows = _bins(top, bottom, pooled_height, height, rois.dtype)
        columns = _bins(left, right, pooled_width, width, rois.dtype)
        source = image[int(rois[region, 0])]
        for i, (y0, y1) in enumerate(rows):
            for j, (x0, x1) in enumerate(columns):
                if y1 <= y0 or x1 <= x0:
                    continue
                part = source[:, y0:y1, x0:x1].reshape(channels, -1)
                best = part.argmax(1)
                made[region, :, i, j] = part[np.arange(channels), best]
                places[region, :, i, j] = (y0 + best // (x1 - x0)) * width + x0 + best % (x1 - x0)
    return made, places


def _bins(start: int, stop: int, count: int, size: int, dtype: np.dtype) -> np.ndarray:
    """First and last pixel of each bin on one axis, as pairs."""
    step = dtype.type(max(stop - start + 1, 1)) / dtype.type(count)
    cells = np.arange(count, dtype=dtype)
    first, last = np.floor(cells * step).astype(np.int64), np.ceil((cells + 1) * step).astype(np.int64)
    return np.clip(np.stack([first, last], 1) + start, 0, size)


def roi_pool_backward(grad: np.ndarray, rois: np.ndarray, argmax: np.ndarray, spatial_scale: float, pooled_height: int,
                      pooled_width: int, batch_size: int, channels: int, height: int, width: int) -> np.ndarray:
    """Each bin's gradient to the pixel its value came from."""
    made = np.zeros((batch_size, channels, height * width), grad.dtype)
    image, channel = rois[:, 0].astype(np.int64)[:, None, None, None], np.arange(channels)[None, :, None, None]
    found = argmax >= 0
    image, channel = (np.broadcast_to(index, argmax.shape)[found] for index in (image, channel))
    np.add.at(made, (image, channel, argmax[found]), grad[found])
    return made.reshape(batch_size, channels, height, width)
