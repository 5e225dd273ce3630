"""The store: every run is a directory of its own that survives any crash; the catalogue beside them only speeds up listing."""

from strakes.places import default_root
from strakes.store.model import Run, RunSummary
from strakes.store.store import Store
from strakes.store.writer import RunWriter

__all__ = ["Run", "RunSummary", "RunWriter", "Store", "default_root"]
