"""What devices did: the questions of Holistic Trace Analysis, for any device.

`temporal`, `idle`, `kernels`, `overlap`, `queue` and `launches` need device work in the trace and return nothing
without it. `critical_path` works for traces of the CPU too.
"""
