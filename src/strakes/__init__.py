"""strakes: measure, advise, tune and keep alive parallel file systems.

In Python and in notebooks a stored run is opened by its id: ``strakes.open("latest").cells.to_pandas()``.
"""

from __future__ import annotations

from strakes.base.version import __version__

# Not imported from typing, because that import would double the start time of child processes.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from strakes.api import OpenedRun

__all__ = ["__version__", "open"]


def open(run: str = "latest", store: str | Path | None = None) -> OpenedRun:  # noqa: A001 - what people look for
    """Open a stored run.

    ``run``: id of the run or its beginning, "latest", "latest~1" (the run before it), or path, with a slash or a dot,
    of a file from ``strakes export``. ``store``: directory of runs (default: $STRAKES_STORE). Raises BadInputError.
    """
    from strakes.api import OpenedRun

    return OpenedRun(run, store)
