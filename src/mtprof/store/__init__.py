"""Reading and writing trace files."""
