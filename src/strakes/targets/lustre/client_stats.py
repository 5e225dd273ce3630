"""``llite``, ``mdc`` and ``osc``: what this client counted, for the mount as a whole and for each target."""

from __future__ import annotations

from strakes.targets.description import CLIENT
from strakes.targets.lustre.stats import Stats

_CALLS = {
    "mknod": "md.create",
    "open": "md.open",
    "close": "md.close",
    "getattr": "md.getattr",
    "setattr": "md.setattr",
    "unlink": "md.unlink",
    "link": "md.link",
    "mkdir": "md.mkdir",
    "rmdir": "md.rmdir",
    "rename": "md.rename",
    "readdir": "md.readdir",
}
# What mdc calls "create" are directories, links and special files only (files come with the open): left out.
_METADATA_REQUESTS = {
    "close": "md.close",
    "getattr": "md.getattr",
    "setattr": "md.setattr",
    "unlink": "md.unlink",
    "link": "md.link",
    "rename": "md.rename",
    "read_page": "md.readdir",
}


def mount(llite: Stats) -> dict[str, float]:
    """System calls of applications on this mount (llite.*.stats): what caches answered is in them."""
    return {CLIENT + name: float(llite.samples(own)) for own, name in _CALLS.items()} | _data(llite)


def metadata_target(mdc: Stats, md_stats: Stats) -> dict[str, float]:
    """Return requests of this client to one metadata target (mdc.*.stats and mdc.*.md_stats)."""
    kinds = {CLIENT + name: float(md_stats.samples(own)) for own, name in _METADATA_REQUESTS.items()}
    return kinds | {f"{CLIENT}md.requests": float(mdc.samples("req_waittime"))} | _data(mdc)


def data_target(osc: Stats) -> dict[str, float]:
    """Return requests of this client to one data target (osc.*.stats)."""
    return _data(osc)


def _data(stats: Stats) -> dict[str, float]:
    counters = {}
    for way in ("read", "write"):
        counters[f"{CLIENT}data.{way}_requests"] = float(stats.samples(f"{way}_bytes"))
        counters[f"{CLIENT}data.{way}_bytes"] = float(stats.total(f"{way}_bytes"))
    return counters
