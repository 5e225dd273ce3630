"""The store of runs: one directory for each run, consistent after any crash."""

from strakes.files import default_root
from strakes.store.run import Run, RunSummary
from strakes.store.store import Store
from strakes.store.writer import RunWriter

__all__ = ["Run", "RunSummary", "RunWriter", "Store", "default_root"]
