"""Programs that use libraries on top of `torch`, run on PyTorch and on this runtime."""
