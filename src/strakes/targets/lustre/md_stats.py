"""``mdt.*.md_stats``: what a metadata target did, on its server; a new file counts as an open and a mknod."""

from __future__ import annotations

from strakes.targets.lustre.stats import Stats

PARAMETER = "mdt.*.md_stats"

OPERATIONS = {
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
    "readpage": "md.readdir",
}


def common(stats: Stats) -> dict[str, float]:
    """By the names all file systems share. Zeros are there: the server leaves out what it never did."""
    # Data of small files may be on the metadata target.
    return {name: float(stats.samples(own)) for own, name in OPERATIONS.items()} | stats.data()
