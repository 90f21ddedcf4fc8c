"""Ops that a program adds: what `torch.library` and the namespaces of `torch.ops` are made of."""
