"""`torch.utils.tensorboard`: writes what TensorBoard shows, with the package `tensorboard`."""

from __future__ import annotations

try:
    import tensorboard  # noqa: F401
except ImportError as error:
    raise ModuleNotFoundError("torch.utils.tensorboard writes TensorBoard's event files and needs the package "
                              "tensorboard: pip install tensorboard", name="tensorboard") from error

from tensorboard.summary.writer.record_writer import RecordWriter

from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]
