"""strakes: measure, advise, tune and keep alive parallel file systems."""

__version__ = "0.1.0"
