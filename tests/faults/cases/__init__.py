"""The cases, by what is at fault."""
