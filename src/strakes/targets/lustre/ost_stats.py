"""``obdfilter.*.stats``: what a data target did, on its server."""

from __future__ import annotations

from strakes.targets.lustre.stats import Stats

PARAMETER = "obdfilter.*.stats"


def common(stats: Stats) -> dict[str, float]:
    """By the names all file systems share."""
    return stats.data()
