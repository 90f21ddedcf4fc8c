"""What devices did: the questions of Holistic Trace Analysis, answered from columns, for any device.

`temporal`, `idle`, `kernels`, `overlap`, `queue` and `launches` need work of a device in the trace and return nothing
without it; `critical_path` answers for traces of the CPU too.
"""
