"""Devices: one folder each, with arrays, allocation and kernels."""
