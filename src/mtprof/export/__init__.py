"""Exports of a trace or of lists of events: Chrome traces, stacks, tables. No module here knows tensors."""
