"""`torch._vendor`: what PyTorch carries of other projects."""
