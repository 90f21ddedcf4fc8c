"""Part of `torch.distributed.elastic`: the decorator of a main function."""
