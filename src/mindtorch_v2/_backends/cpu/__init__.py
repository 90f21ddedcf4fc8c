"""The CPU device: NumPy arrays in, NumPy arrays out."""
