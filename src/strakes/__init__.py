"""strakes: measure, advise, tune and keep alive parallel file systems.

In Python and in notebooks a stored run is opened by its id: ``strakes.open("latest").cells.to_pandas()``.
"""

from __future__ import annotations

from strakes.base.version import __version__

# In place of typing.TYPE_CHECKING: child processes import this package, and typing would double their start time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from strakes.api import OpenedRun

__all__ = ["__version__", "open"]


def open(run: str = "latest", store: str | Path | None = None) -> OpenedRun:  # noqa: A001 - what people look for
    """Open a stored run by its id, by the beginning of one, the "latest" ("latest~1": the one before it), or a file.

    Files are those that ``strakes export`` wrote.

    ``store`` is a directory of runs; without it that of the command line is read ($STRAKES_STORE). Raises BadInputError
    for a run that is not there.
    """
    from strakes.api import open_run

    return open_run(run, store)
