"""``llite``, ``mdc`` and ``osc``: what this client counted, for the mount as a whole and for each target."""

from __future__ import annotations

from strakes.targets.description import CLIENT
from strakes.targets.lustre.md_stats import OPERATIONS
from strakes.targets.lustre.stats import Stats

# As metadata targets call them, but for the reading of directories.
_CALLS = {"readdir" if own == "readpage" else own: name for own, name in OPERATIONS.items()}
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
    return {CLIENT + name: float(llite.samples(own)) for own, name in _CALLS.items()} | llite.data(CLIENT)


def metadata_target(mdc: Stats, md_stats: Stats) -> dict[str, float]:
    """Return requests of this client to one metadata target (mdc.*.stats and mdc.*.md_stats)."""
    kinds = {CLIENT + name: float(md_stats.samples(own)) for own, name in _METADATA_REQUESTS.items()}
    return kinds | {f"{CLIENT}md.requests": float(mdc.samples("req_waittime"))} | mdc.data(CLIENT)


def data_target(osc: Stats) -> dict[str, float]:
    """Return requests of this client to one data target (osc.*.stats)."""
    return osc.data(CLIENT)
