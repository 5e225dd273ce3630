"""The version of the package and the engine, which every run records."""

__version__ = "0.1.0"
