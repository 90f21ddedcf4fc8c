"""`SummaryWriter`: event files in a folder, written in the background by the package `tensorboard`."""

from __future__ import annotations

import os
import socket
import time
from datetime import datetime
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from ..._absent import refusing
from . import summary

__all__ = ["FileWriter", "SummaryWriter"]

_REASON = "SummaryWriter.{}: {}"


def _refused(name: str, why: str) -> Any:
    return refusing(name, NotImplementedError, _REASON.format(name, why))


class FileWriter:
    """Adds events to one file."""

    def __init__(self, log_dir: Any, max_queue: int = 10, flush_secs: float = 120, filename_suffix: str = "") -> None:
        self.event_writer = EventFileWriter(os.fspath(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """The folder."""
        return self.event_writer.get_logdir()

    def add_event(self, event: Event, step: Any = None, walltime: float | None = None) -> None:
        """Add an event, with its time and step."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, message: Summary, global_step: Any = None, walltime: float | None = None) -> None:
        """Add what TensorBoard shows."""
        self.add_event(Event(summary=message), global_step, walltime)

    def flush(self) -> None:
        """Have everything on disk."""
        self.event_writer.flush()

    def close(self) -> None:
        """Flush, and add nothing more."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Begin another file."""
        self.event_writer.reopen()


class SummaryWriter:
    """Writes numbers, histograms, pictures and texts that TensorBoard shows.

    The folder is `runs/` with the time and the host's name, unless one is given.
    """

    def __init__(self, log_dir: Any = None, comment: str = "", purge_step: int | None = None, max_queue: int = 10,
                 flush_secs: float = 120, filename_suffix: str = "") -> None:
        if not log_dir:
            now = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = log_dir
        self.purge_step, self.max_queue, self.flush_secs = purge_step, max_queue, flush_secs
        self.filename_suffix = filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self._get_file_writer()
        self.default_bins = summary.tensorflow_bins()

    def _get_file_writer(self) -> FileWriter:
        if self.all_writers is None or self.file_writer is None:
            self.file_writer = FileWriter(self.log_dir, self.max_queue, self.flush_secs, self.filename_suffix)
            self.all_writers = {self.file_writer.get_logdir(): self.file_writer}
            if self.purge_step is not None:
                step = self.purge_step
                self.file_writer.add_event(Event(step=step, file_version="brain.Event:2"))
                self.file_writer.add_event(Event(step=step, session_log=SessionLog(status=SessionLog.START)))
                self.purge_step = None
        return self.file_writer

    def _add(self, message: Summary, step: Any, walltime: float | None) -> None:
        self._get_file_writer().add_summary(message, step, walltime)

    def get_logdir(self) -> str:
        """The folder."""
        return str(self.log_dir)

    def add_scalar(self, tag: str, scalar_value: Any, global_step: Any = None, walltime: float | None = None,
                   new_style: bool = False, double_precision: bool = False) -> None:
        """Add a number."""
        self._add(summary.scalar(tag, scalar_value, new_style, double_precision), global_step, walltime)

    def add_scalars(self, main_tag: str, tag_scalar_dict: dict[str, Any], global_step: Any = None,
                    walltime: float | None = None) -> None:
        """Add numbers that are shown in one chart; each has a folder of its own."""
        folder = self._get_file_writer().get_logdir()
        writers: dict[str, FileWriter] = self.all_writers or {}
        for name, value in tag_scalar_dict.items():
            place = os.path.join(folder, f"{main_tag.replace('/', '_')}_{name}")
            if place not in writers:
                writers[place] = FileWriter(place, self.max_queue, self.flush_secs, self.filename_suffix)
            writers[place].add_summary(summary.scalar(main_tag, value), global_step, walltime)

    def add_tensor(self, tag: str, tensor: Any, global_step: Any = None, walltime: float | None = None) -> None:
        """Add a tensor."""
        self._add(summary.tensor_proto(tag, tensor), global_step, walltime)

    def add_histogram(self, tag: str, values: Any, global_step: Any = None, bins: Any = "tensorflow",
                      walltime: float | None = None, max_bins: int | None = None) -> None:
        """Add a histogram of values."""
        chosen = self.default_bins if isinstance(bins, str) and bins == "tensorflow" else bins
        self._add(summary.histogram(tag, values, chosen, max_bins), global_step, walltime)

    def add_histogram_raw(self, tag: str, min: float, max: float, num: float, sum: float, sum_squares: float,
                          bucket_limits: Any, bucket_counts: Any, global_step: Any = None,
                          walltime: float | None = None) -> None:
        """Add a histogram that the caller counted."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        self._add(summary.histogram_raw(tag, min, max, num, sum, sum_squares, list(bucket_limits),
                                        list(bucket_counts)), global_step, walltime)

    def add_image(self, tag: str, img_tensor: Any, global_step: Any = None, walltime: float | None = None,
                  dataformats: str = "CHW") -> None:
        """Add a picture."""
        self._add(summary.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_images(self, tag: str, img_tensor: Any, global_step: Any = None, walltime: float | None = None,
                   dataformats: str = "NCHW") -> None:
        """Add pictures, side by side."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_figure(self, tag: str, figure: Any, global_step: Any = None, close: bool = True,
                   walltime: float | None = None) -> None:
        """Add a figure of matplotlib, or several."""
        import numpy as np
        from matplotlib import pyplot
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        drawn = []
        for one in figure if isinstance(figure, list) else [figure]:
            canvas = FigureCanvasAgg(one)
            canvas.draw()
            drawn.append(np.asarray(canvas.buffer_rgba())[..., :3])
            if close:
                pyplot.close(one)
        order = "NHWC" if isinstance(figure, list) else "HWC"
        self.add_image(tag, np.stack(drawn) if isinstance(figure, list) else drawn[0], global_step, walltime, order)

    def add_text(self, tag: str, text_string: str, global_step: Any = None, walltime: float | None = None) -> None:
        """Add a piece of Markdown."""
        self._add(summary.text(tag, text_string), global_step, walltime)

    def add_pr_curve(self, tag: str, labels: Any, predictions: Any, global_step: Any = None,
                     num_thresholds: int = 127, weights: Any = None, walltime: float | None = None) -> None:
        """Add precision and recall by threshold."""
        self._add(summary.pr_curve(tag, labels, predictions, num_thresholds, weights), global_step, walltime)

    def add_pr_curve_raw(self, tag: str, true_positive_counts: Any, false_positive_counts: Any,
                         true_negative_counts: Any, false_negative_counts: Any, precision: Any, recall: Any,
                         global_step: Any = None, num_thresholds: int = 127, weights: Any = None,
                         walltime: float | None = None) -> None:
        """Add precision and recall by threshold, as the caller counted."""
        self._add(summary.pr_curve_raw(tag, true_positive_counts, false_positive_counts, true_negative_counts,
                                       false_negative_counts, precision, recall, num_thresholds), global_step, walltime)

    def add_hparams(self, hparam_dict: dict[str, Any], metric_dict: dict[str, Any], hparam_domain_discrete: Any = None,
                    run_name: str | None = None, global_step: Any = None) -> None:
        """Add a run's settings and its results, in a folder of its own."""
        if type(hparam_dict) is not dict or type(metric_dict) is not dict:
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        folder = os.path.join(self._get_file_writer().get_logdir(), run_name or str(time.time()))
        with SummaryWriter(log_dir=folder) as writer:
            for message in summary.hparams(hparam_dict, metric_dict):
                writer._add(message, None, None)
            for name, value in metric_dict.items():
                writer.add_scalar(name, value, global_step)

    add_audio = _refused("add_audio", "sound is not written here; use the package soundfile and TensorBoard's own API")
    add_video = _refused("add_video", "moving pictures are not written here; add_images writes single ones")
    add_mesh = _refused("add_mesh", "meshes are not written here")
    add_embedding = _refused("add_embedding", "the projector's files are not written here")
    add_graph = _refused("add_graph", "a model is not traced for TensorBoard here; torch.fx shows its graph")
    add_onnx_graph = _refused("add_onnx_graph", "ONNX is not part of this runtime")
    add_image_with_boxes = _refused("add_image_with_boxes", "draw the boxes first, with torchvision.utils or PIL")
    add_custom_scalars = _refused("add_custom_scalars", "layouts of charts are not written here")
    add_custom_scalars_multilinechart = _refused("add_custom_scalars_multilinechart",
                                                 "layouts of charts are not written here")
    add_custom_scalars_marginchart = _refused("add_custom_scalars_marginchart",
                                              "layouts of charts are not written here")

    def flush(self) -> None:
        """Have everything on disk."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Flush and close the files; adding more begins new ones."""
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
