"""Modules with one name and different contents, for tests that load a module that has changed."""
