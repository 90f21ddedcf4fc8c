"""Code in C, a directory of sources for each extension; none is required (see `_dispatch/native.py`)."""
