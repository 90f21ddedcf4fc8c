"""The parts of `torch.utils.benchmark`, a file each."""
