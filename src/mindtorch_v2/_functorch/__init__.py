"""`torch._functorch`: where the transforms of `torch.func` are found by programs written for functorch."""
