"""The version of the engine, the package and every run."""

__version__ = "0.1.0"
