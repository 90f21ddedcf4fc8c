"""The messages in TensorBoard's files, a function for each kind of content."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.plugins.hparams import api_pb2, plugin_data_pb2
from tensorboard.plugins.hparams import metadata as hparams_metadata
from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData
from tensorboard.plugins.text.plugin_data_pb2 import TextPluginData

from ..._tensor import Tensor


def as_numpy(value: Any) -> np.ndarray:
    """A tensor, an array or a number as an array."""
    if isinstance(value, str):
        raise NotImplementedError(f"Got {type(value)}, but numpy array or torch tensor are expected.")
    if isinstance(value, Tensor):
        value = value.detach()
        return value.float().numpy() if str(value.dtype) == "torch.bfloat16" else value.cpu().numpy()
    return np.asarray(value)


def scalar(tag: str, value: Any, new_style: bool = False, double_precision: bool = False) -> Summary:
    """One number."""
    number = as_numpy(value).squeeze()
    if number.ndim:
        raise AssertionError(f"Tensor should contain one element (0 dimensions). Was given size: {number.size} and "
                             f"{number.ndim} dimensions.")
    if not new_style:
        return Summary(value=[Summary.Value(tag=tag, simple_value=float(number))])
    kind = {"dtype": "DT_DOUBLE", "double_val": [float(number)]} if double_precision else {
        "dtype": "DT_FLOAT", "float_val": [float(number)]}
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="scalars"))
    return Summary(value=[Summary.Value(tag=tag, tensor=TensorProto(**kind), metadata=metadata)])


def tensorflow_bins() -> list[float]:
    """The buckets of histograms by default: powers of 1.1, of both signs."""
    positive, edge = [], 1e-12
    while edge < 1e20:
        positive.append(edge)
        edge *= 1.1
    return [-edge for edge in reversed(positive)] + [0.0] + positive


def histogram(tag: str, values: Any, bins: Any, max_bins: int | None = None) -> Summary:
    """A histogram of values."""
    flat = as_numpy(values).astype(float).reshape(-1)
    if not flat.size:
        raise ValueError("The input has no element.")
    counts, limits = np.histogram(flat, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        step = math.ceil(len(counts) / max_bins)
        padded = np.pad(counts, (0, -len(counts) % step))
        counts, last = padded.reshape(-1, step).sum(1), limits[-1]
        limits = np.append(limits[:-1:step], last)
    used = np.flatnonzero(counts)
    first, last = used[0], used[-1] + 1
    # The first bucket is an empty one, which says where the second begins.
    shown = np.concatenate([[0], counts[first:last]])
    message = HistogramProto(min=flat.min(), max=flat.max(), num=len(flat), sum=flat.sum(), sum_squares=flat @ flat,
                             bucket_limit=limits[first:last + 1].tolist(), bucket=shown.tolist())
    return Summary(value=[Summary.Value(tag=tag, histo=message)])


def histogram_raw(tag: str, minimum: float, maximum: float, num: float, total: float, sum_squares: float,
                  limits: Sequence[float], counts: Sequence[float]) -> Summary:
    """A histogram that the caller counted."""
    message = HistogramProto(min=minimum, max=maximum, num=num, sum=total, sum_squares=sum_squares,
                             bucket_limit=limits, bucket=counts)
    return Summary(value=[Summary.Value(tag=tag, histo=message)])


def image(tag: str, picture: Any, rescale: float = 1.0, dataformats: str = "CHW") -> Summary:
    """A picture, or several side by side."""
    from PIL import Image

    pixels = as_height_width_channels(as_numpy(picture), dataformats)
    if pixels.dtype != np.uint8:
        pixels = (pixels.astype(np.float32) * 255).clip(0, 255).astype(np.uint8)
    shown = Image.fromarray(pixels)
    if rescale != 1:
        shown = shown.resize((int(shown.width * rescale), int(shown.height * rescale)), Image.Resampling.LANCZOS)
    packed = io.BytesIO()
    shown.save(packed, format="PNG")
    message = Summary.Image(height=shown.height, width=shown.width, colorspace=pixels.shape[-1],
                            encoded_image_string=packed.getvalue())
    return Summary(value=[Summary.Value(tag=tag, image=message)])


def as_height_width_channels(pixels: np.ndarray, order: str) -> np.ndarray:
    """Pixels in the order of PNG; a batch becomes one picture, in rows of eight."""
    order = order.upper()
    if len(set(order)) != len(order):
        raise AssertionError(f"You can not use the same dimension shordhand twice. input_format: {order}")
    if len(order) != pixels.ndim:
        raise AssertionError(f"size of input tensor and input format are different. tensor shape: {pixels.shape}, "
                             f"input_format: {order}")
    if len(order) == 4:
        batch = pixels.transpose([order.index(letter) for letter in "NHWC"])
        count, height, width, channels = batch.shape
        columns = min(count, 8)
        rows = math.ceil(count / columns)
        sheet = np.zeros((rows * columns, height, width, channels), batch.dtype)
        sheet[:count] = batch
        pixels = sheet.reshape(rows, columns, height, width, channels).swapaxes(1, 2).reshape(
            rows * height, columns * width, channels)
    elif len(order) == 3:
        pixels = pixels.transpose([order.index(letter) for letter in "HWC"])
    else:
        pixels = pixels.transpose([order.index(letter) for letter in "HW"])[..., None]
    return np.repeat(pixels, 3, axis=2) if pixels.shape[2] == 1 else pixels


def text(tag: str, words: str) -> Summary:
    """A piece of Markdown."""
    data = SummaryMetadata.PluginData(plugin_name="text", content=TextPluginData(version=0).SerializeToString())
    tensor = TensorProto(dtype="DT_STRING", string_val=[words.encode()],
                         tensor_shape=TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)]))
    return Summary(value=[Summary.Value(tag=f"{tag}/text_summary", metadata=SummaryMetadata(plugin_data=data),
                                        tensor=tensor)])


def tensor_proto(tag: str, value: Any) -> Summary:
    """Any tensor."""
    array = as_numpy(value)
    names = {"float32": ("DT_FLOAT", "float_val"), "float64": ("DT_DOUBLE", "double_val"),
             "int32": ("DT_INT32", "int_val"), "int64": ("DT_INT64", "int64_val"), "bool": ("DT_BOOL", "bool_val"),
             "uint8": ("DT_UINT8", "int_val"), "int8": ("DT_INT8", "int_val"), "int16": ("DT_INT16", "int_val")}
    if array.dtype.name not in names:
        raise ValueError(f"{tag}: TensorBoard has no tensors of {array.dtype.name}")
    kind, values = names[array.dtype.name]
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in array.shape])
    data = SummaryMetadata.PluginData(plugin_name="tensor")
    proto = TensorProto(dtype=kind, tensor_shape=shape, **{values: array.reshape(-1).tolist()})
    return Summary(value=[Summary.Value(tag=tag, tensor=proto, metadata=SummaryMetadata(plugin_data=data))])


def pr_curve(tag: str, labels: Any, predictions: Any, count: int = 127, weights: Any = None) -> Summary:
    """Precision and recall by threshold."""
    wanted, scores = as_numpy(labels).reshape(-1).astype(bool), as_numpy(predictions).reshape(-1)
    weight = np.ones(len(scores)) if weights is None else as_numpy(weights).reshape(-1).astype(float)
    count = min(count, 127)
    place = np.floor(scores * (count - 1)).astype(int)
    positive = np.bincount(place[wanted], weight[wanted], count)[::-1].cumsum()[::-1]
    negative = np.bincount(place[~wanted], weight[~wanted], count)[::-1].cumsum()[::-1]
    precision = positive / np.maximum(1e-7, positive + negative)
    recall = positive / np.maximum(1e-7, positive[0])
    return pr_curve_raw(tag, positive, negative, negative[0] - negative, positive[0] - positive, precision, recall,
                        count)


def pr_curve_raw(tag: str, tp: Any, fp: Any, tn: Any, fn: Any, precision: Any, recall: Any,
                 count: int = 127) -> Summary:
    """Precision and recall by threshold, as the caller counted."""
    data = np.stack([as_numpy(one).astype(float) for one in (tp, fp, tn, fn, precision, recall)])
    content = PrCurvePluginData(version=0, num_thresholds=min(count, 127)).SerializeToString()
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="pr_curves", content=content))
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in data.shape])
    tensor = TensorProto(dtype="DT_FLOAT", float_val=data.reshape(-1).tolist(), tensor_shape=shape)
    return Summary(value=[Summary.Value(tag=tag, metadata=metadata, tensor=tensor)])


def hparams(values: dict[str, Any], metrics: dict[str, Any]) -> tuple[Summary, Summary, Summary]:
    """A run's settings and which of its numbers are its results: what they are, the settings, and the run's end."""
    plain = {name: as_numpy(value).item() if isinstance(value, Tensor) else value for name, value in values.items()}
    for name, value in plain.items():
        if not isinstance(value, (bool, int, float, str)):
            raise ValueError(f"value should be one of int, float, str, bool, or torch.Tensor, and {name} is "
                             f"{type(value).__name__}")
    kinds = {bool: "DATA_TYPE_BOOL", str: "DATA_TYPE_STRING"}
    experiment = api_pb2.Experiment(
        hparam_infos=[api_pb2.HParamInfo(name=name, type=kinds.get(type(value), "DATA_TYPE_FLOAT64"))
                      for name, value in plain.items()],
        metric_infos=[api_pb2.MetricInfo(name=api_pb2.MetricName(tag=name)) for name in metrics])
    started = plugin_data_pb2.SessionStartInfo()
    for name, value in plain.items():
        field = {bool: "bool_value", str: "string_value"}.get(type(value), "number_value")
        setattr(started.hparams[name], field, value)
    ended = plugin_data_pb2.SessionEndInfo(status="STATUS_SUCCESS")
    return (_hparams_message(hparams_metadata.EXPERIMENT_TAG, experiment=experiment),
            _hparams_message(hparams_metadata.SESSION_START_INFO_TAG, session_start_info=started),
            _hparams_message(hparams_metadata.SESSION_END_INFO_TAG, session_end_info=ended))


def _hparams_message(tag: str, **part: Any) -> Summary:
    content = plugin_data_pb2.HParamsPluginData(version=hparams_metadata.PLUGIN_DATA_VERSION, **part)
    data = SummaryMetadata.PluginData(plugin_name=hparams_metadata.PLUGIN_NAME, content=content.SerializeToString())
    return Summary(value=[Summary.Value(tag=tag, metadata=SummaryMetadata(plugin_data=data))])
