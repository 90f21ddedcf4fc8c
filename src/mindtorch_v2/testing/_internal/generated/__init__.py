"""`torch.testing._internal.generated`: what PyTorch's build writes for its tests."""
