"""`torch._custom_op`: the home of the older way to define ops; see `_custom_ops`."""
