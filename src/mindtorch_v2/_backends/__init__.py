"""Devices: one folder each, supplying arrays, allocation and kernels."""
