"""A simulator of the Ascend runtime's C ABI: C sources, and the code that builds them on first use."""
