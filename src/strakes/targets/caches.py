"""Client caches in addition to the page cache; the kernel reports only the page cache."""

from __future__ import annotations

_BY_TYPE = {
    "gpfs": "the page pool of its client",
    "wekafs": "the cache of its client",
    "beegfs": "the buffers of its client (tuneFileCacheType)",
    "beegfs_nodev": "the buffers of its client (tuneFileCacheType)",
}


def own_cache(file_system: str) -> str:
    """Return the name of the client's cache for a type of mount, or "" if the client uses only the page cache.

    A FUSE client has a private cache that cannot be dropped or examined.

    >>> own_cache("gpfs"), own_cache("fuse.glusterfs"), own_cache("xfs")
    ('the page pool of its client', 'the cache of its client, a program', '')
    """
    program = "the cache of its client, a program" if "fuse" in file_system else ""
    return _BY_TYPE.get(file_system, program)
