"""``obdfilter.*.stats``: what a data target did, on its server."""

from __future__ import annotations

from strakes.targets.lustre.stats import Stats

PARAMETER = "obdfilter.*.stats"


def common(stats: Stats) -> dict[str, float]:
    """By the names all file systems share; a sample of bytes is one request."""
    counters = {}
    for way in ("read", "write"):
        counters[f"data.{way}_requests"] = float(stats.samples(f"{way}_bytes"))
        counters[f"data.{way}_bytes"] = float(stats.total(f"{way}_bytes"))
    return counters
