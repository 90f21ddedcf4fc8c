"""`torch.profiler`: record, average, print and export what a program does."""
