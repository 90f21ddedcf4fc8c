"""`torch.utils.tensorboard` needs the event file format of TensorBoard, which this runtime does not write."""

from __future__ import annotations

raise ModuleNotFoundError(
    "torch.utils.tensorboard is not part of mindtorch_v2: it writes TensorBoard's event files, which need the package "
    "'tensorboard' and protocol buffers. The profiler's traces can be exported with export_chrome_trace.",
    name="torch.utils.tensorboard",
)
