"""Part of `torch.distributed.elastic`: what a main function is marked with."""
