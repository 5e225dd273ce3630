"""Ends a run in order after an interrupt or a failure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from strakes.base.errors import BadInputError, InterruptedByUser, StoppedForOthersError
from strakes.runs.store import Store
from strakes.runs.writer import RunWriter


@contextmanager
def ended_in_order(store: Store, writer: RunWriter, *, resumable: bool = True) -> Iterator[None]:
    """Set the run's status if the body raises; keep its visits, or discard the run if it has none.

    Raises InterruptedByUser for Ctrl-C, otherwise the body's exception.
    """
    try:
        yield
    except KeyboardInterrupt:
        if all(visit.purpose == "pilot" for visit in store.open(writer.id).visits):
            store.discard(writer)
            raise InterruptedByUser("interrupted before the first run was complete: nothing is kept") from None
        writer.finish("interrupted")
        remedy = "To continue, run the same command with --resume."
        if not resumable:
            remedy = "Its files have been removed. To be able to resume, start the run with --keep."
        raise InterruptedByUser(
            "interrupted; finished measurements are kept", where=f"run {writer.id}", remedy=remedy
        ) from None
    except StoppedForOthersError as error:
        writer.finish("interrupted")
        error.where = f"run {writer.id}"
        raise
    except BaseException as error:
        visits = store.open(writer.id).visits
        # A refusal after the pilot (for example: no space) is not a failure of the file system.
        refused = isinstance(error, BadInputError) and all(visit.purpose == "pilot" for visit in visits)
        if visits and not refused:
            writer.finish("failed")
        else:
            store.discard(writer)  # refused before anything was measured: not a run
        raise
