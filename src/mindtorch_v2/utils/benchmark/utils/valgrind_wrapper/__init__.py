"""Counts of instructions, as Callgrind makes them."""
