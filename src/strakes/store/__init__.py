"""The store: every run is a directory of its own that survives any crash.

The catalogue beside them only speeds up listing.
"""

from strakes.files import default_root
from strakes.store.run import Run, RunSummary
from strakes.store.store import Store
from strakes.store.writer import RunWriter

__all__ = ["Run", "RunSummary", "RunWriter", "Store", "default_root"]
