"""What users see of a trace: event objects, averages, the table. These modules import the trace and NumPy, never
tensors."""

from __future__ import annotations
