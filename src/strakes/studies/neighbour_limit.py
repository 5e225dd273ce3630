"""Parser of ``--neighbour p99=20ms``, the limit for the 99th percentile of other users' latencies."""

from __future__ import annotations

from strakes.base.errors import BadInputError
from strakes.base.units import parse_seconds

# Below 1 ms the probe's own scheduling dominates; above 1 minute the limit protects nobody.
_LEAST_S, _MOST_S = 0.001, 60.0
_REMEDY = "Write, for example, p99=20ms: 99 of 100 operations of others then take no longer than that."


def parse_neighbour(text: str) -> float:
    """Return the limit in seconds. Raises BadInputError.

    >>> parse_neighbour("p99=20ms")
    0.02
    """
    name, equals, value = text.partition("=")
    if name.strip().lower() != "p99" or not equals:
        raise BadInputError(f"not a limit for neighbours: {text!r}", remedy=_REMEDY)
    try:
        seconds = parse_seconds(value)
    except BadInputError as error:
        raise BadInputError(f"not a limit for neighbours: {text!r}", why=error.what, remedy=_REMEDY) from error
    if not _LEAST_S <= seconds <= _MOST_S:
        raise BadInputError(f"not a limit for neighbours: {text!r}", remedy="Give at least 1 ms and at most 1 minute.")
    return seconds
