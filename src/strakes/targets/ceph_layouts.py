"""Layouts and pins of CephFS as extended attributes (docs.ceph.com: cephfs/file-layouts, cephfs/multimds)."""

from __future__ import annotations

from collections.abc import Mapping

from strakes.base.errors import BadInputError
from strakes.base.units import KIB, MIB, counted
from strakes.targets.answers import understood
from strakes.targets.description import Layout, Placement

FILE, DIRECTORY = "ceph.file.layout", "ceph.dir.layout"
PIN, DISTRIBUTED, RANDOM = "ceph.dir.pin", "ceph.dir.pin.distributed", "ceph.dir.pin.random"
# Values of Placement.hash for CephFS: distributed and random ephemeral pins.
BY_CHILD, BY_CHANCE = "distributed", "random"
# In CephFS, stripe units are multiples of 64 KiB, and objects have 4 MiB by default.
UNIT_BYTES, _OBJECT_BYTES = 64 * KIB, 4 * MIB


def read_layout(text: str) -> Layout:
    """Parse the value of a CephFS layout attribute. Raises MeasurementError if it is invalid."""
    # A Ceph pool's name may contain spaces, so it extends to the end of the text or to pool_namespace=.
    fields, _, pool = text.partition(" pool=")
    pool = pool.partition(" pool_namespace=")[0]
    values = dict(field.partition("=")[::2] for field in fields.split())
    with understood("getfattr", text):
        unit, count, size = (int(values[name]) for name in ("stripe_unit", "stripe_count", "object_size"))
        return Layout(unit, count, pool=pool, object_bytes=size)


def write_layout(wanted: Layout, current: Layout, stores: int) -> str:
    """Return a layout as the value of a CephFS layout attribute. Raises BadInputError if CephFS cannot express it.

    ``current`` supplies missing values. ``stores``: number of OSDs, which replaces the stripe count -1 (all).
    """
    for what, asked in (("first_target", "the first target"), ("pattern", "a pattern"), ("components", "components")):
        if getattr(wanted, what):
            why = "Ceph places objects by a hash of their names"
            raise BadInputError(f"a CephFS layout cannot specify {asked}", why=why)
    unit = wanted.stripe_size_bytes or current.stripe_size_bytes or _OBJECT_BYTES
    count = wanted.stripe_count or current.stripe_count or 1
    usual = wanted.object_bytes or current.object_bytes or _OBJECT_BYTES
    size = usual if wanted.object_bytes or usual % unit == 0 else unit * max(1, _OBJECT_BYTES // unit)
    fields = [f"stripe_unit={unit}", f"stripe_count={stores if count == -1 else count}", f"object_size={size}"]
    return " ".join([*fields, f"pool={wanted.pool}"] if wanted.pool else fields)


def read_pins(values: Mapping[str, str]) -> Placement:
    """Return the placement of a CephFS directory. ``values``: name of a pin attribute -> its value."""
    rank = values.get(PIN, "-1")
    if rank.isdecimal():
        return Placement("manual", (int(rank),), inherited=True)
    if values.get(DISTRIBUTED, "0") == "1":
        return Placement("automatic", count=1, hash=BY_CHILD)
    if values.get(RANDOM, "0").strip("0."):
        return Placement("automatic", count=1, hash=f"{BY_CHANCE} {values[RANDOM]}", inherited=True)
    return Placement("inherit")


def pin_for(wanted: Placement, ranks: tuple[int, ...]) -> tuple[str, str] | None:
    """Return name and value of the CephFS pin attribute of a placement, or None for "inherit". Raises BadInputError."""
    if wanted.kind == "inherit":
        return None
    if wanted.kind == "manual":
        if len(wanted.metadata_targets) != 1:
            why = f"{len(wanted.metadata_targets)} ranks were requested"
            raise BadInputError("a CephFS directory can be pinned to only one metadata rank", why=why)
        (rank,) = wanted.metadata_targets
        # Ceph accepts a pin to a rank that does not exist, and ignores it.
        if rank not in ranks:
            why, remedy = f"the ranks are {', '.join(map(str, ranks))}", "Raise max_mds, or choose one of these ranks."
            raise BadInputError(f"metadata rank {rank} does not exist", why=why, remedy=remedy)
        return PIN, str(rank)
    if wanted.hash.startswith(BY_CHANCE):
        return RANDOM, wanted.hash.removeprefix(BY_CHANCE).strip() or "0.01"
    if wanted.count not in (None, 1, -1):
        why = "it can spread only a directory's children over all ranks (distributed), or a share of its tree (random)"
        what = f"CephFS does not spread a directory over {counted(wanted.count, 'metadata rank')}"
        raise BadInputError(what, why=why)
    return DISTRIBUTED, "1"
