"""Caches of clients beside the page cache, which is all that the kernel tells of."""

from __future__ import annotations

_BY_TYPE = {
    "gpfs": "the page pool of its client",
    "wekafs": "the cache of its client",
    "beegfs": "the buffers of its client (tuneFileCacheType)",
    "beegfs_nodev": "the buffers of its client (tuneFileCacheType)",
}


def own_cache(file_system: str) -> str:
    """Name the cache that the client of a file system has, by the type of its mount; empty where it has none.

    A client that is a program (FUSE) has a cache of its own, which nobody can drop or look into.

    >>> own_cache("gpfs"), own_cache("fuse.glusterfs"), own_cache("xfs")
    ('the page pool of its client', 'the cache of its client, a program', '')
    """
    program = "the cache of its client, a program" if "fuse" in file_system else ""
    return _BY_TYPE.get(file_system, program)
