"""Speed as ratios to PyTorch, measured in the same run. `make bench` runs all, `python -m benchmarks ops` one."""
