"""The version, said once: the engine, the package and every run take it from here."""

__version__ = "0.1.0"
