"""`torch.testing._internal`: the part of PyTorch's own test helpers that its tests of the CPU need."""
