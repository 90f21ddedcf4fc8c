"""What users see of a trace: event objects, averages, the table. Imports the trace and NumPy, never tensors."""

from __future__ import annotations
