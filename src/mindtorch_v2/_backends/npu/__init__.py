"""Ascend NPUs through the C functions of their runtime (ACL), called with ctypes."""
