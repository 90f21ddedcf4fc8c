"""Differentiation: the graph, the engine that walks it backwards, and the modes that turn recording off."""
