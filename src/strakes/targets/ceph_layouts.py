"""Layouts and pins of CephFS in extended attributes.

https://docs.ceph.com/en/latest/cephfs/file-layouts/, .../multimds/
"""

from __future__ import annotations

from collections.abc import Mapping

from strakes.base.errors import BadInputError, MeasurementError
from strakes.base.units import KIB, MIB, counted
from strakes.targets.description import Layout, Placement

FILE, DIRECTORY = "ceph.file.layout", "ceph.dir.layout"
PIN, DISTRIBUTED, RANDOM = "ceph.dir.pin", "ceph.dir.pin.distributed", "ceph.dir.pin.random"
# Values of ``hash`` in a Placement: distributed and random ephemeral pins.
BY_CHILD, BY_CHANCE = "distributed", "random"
# Stripe units are multiples of this.
UNIT_BYTES = 64 * KIB
# Ceph's default of the object size.
_OBJECT_BYTES = 4 * MIB


def read_layout(text: str) -> Layout:
    """Parse a layout attribute. Raises MeasurementError if the text is not valid.

    >>> read_layout("stripe_unit=65536 stripe_count=2 object_size=1048576 pool=data").stripe_count
    2
    """
    # The name of a pool may contain spaces. It is the last field, except for a namespace.
    fields, _, pool = text.partition(" pool=")
    pool = pool.partition(" pool_namespace=")[0]
    values = dict(field.partition("=")[::2] for field in fields.split())
    try:
        return Layout(
            stripe_size_bytes=int(values["stripe_unit"]),
            stripe_count=int(values["stripe_count"]),
            pool=pool,
            object_bytes=int(values["object_size"]),
        )
    except (KeyError, ValueError):
        raise MeasurementError("a Ceph layout is not understood", where=repr(text[:200])) from None


def write_layout(wanted: Layout, current: Layout, stores: int) -> str:
    """Return the value of the layout attribute.

    Values not given in ``wanted`` keep their ``current`` value; objects grow to hold a stripe unit.

    Raises BadInputError for a layout that Ceph cannot express.

    >>> write_layout(Layout(stripe_size_bytes=1 << 20, stripe_count=-1), Layout(4 << 20, 1, object_bytes=4 << 20), 3)
    'stripe_unit=1048576 stripe_count=3 object_size=4194304'
    """
    for what, asked in (
        ("the first target", wanted.first_target),
        ("a pattern", wanted.pattern),
        ("components", wanted.components),
    ):
        if asked:
            raise BadInputError(
                f"{what} cannot be chosen on CephFS", why="Ceph places objects by a hash of their names"
            )
    unit = wanted.stripe_size_bytes or current.stripe_size_bytes or _OBJECT_BYTES
    count = wanted.stripe_count or current.stripe_count or 1
    usual = wanted.object_bytes or current.object_bytes or _OBJECT_BYTES
    size = usual if wanted.object_bytes or usual % unit == 0 else unit * max(1, _OBJECT_BYTES // unit)
    fields = [f"stripe_unit={unit}", f"stripe_count={stores if count == -1 else count}", f"object_size={size}"]
    return " ".join([*fields, f"pool={wanted.pool}"] if wanted.pool else fields)


def read_pins(values: Mapping[str, str]) -> Placement:
    """Return the placement of a directory by its pin, which is one of three kinds.

    >>> read_pins({"ceph.dir.pin": "1", "ceph.dir.pin.distributed": "0"}).metadata_targets
    (1,)
    """
    rank = values.get(PIN, "-1")
    if rank.isdecimal():
        return Placement("manual", (int(rank),), inherited=True)
    if values.get(DISTRIBUTED, "0") == "1":
        return Placement("automatic", count=1, hash=BY_CHILD)
    if _share(values.get(RANDOM, "0")) > 0:
        return Placement("automatic", count=1, hash=f"{BY_CHANCE} {values[RANDOM]}", inherited=True)
    return Placement("inherit")


def pin_for(wanted: Placement, ranks: tuple[int, ...]) -> tuple[str, str] | None:
    """Return attribute and value of a pin, or None for no pin. Raises BadInputError if Ceph cannot express it."""
    if wanted.kind == "inherit":
        return None
    if wanted.kind == "manual":
        if len(wanted.metadata_targets) != 1:
            raise BadInputError(
                "a CephFS directory can be pinned to only one metadata rank",
                why=f"{len(wanted.metadata_targets)} were asked for",
            )
        (rank,) = wanted.metadata_targets
        # Ceph accepts and ignores numbers of ranks that do not exist.
        if rank not in ranks:
            there = ", ".join(map(str, ranks))
            raise BadInputError(
                f"metadata rank {rank} does not exist",
                why=f"there are {there}",
                remedy="Raise max_mds, or choose one of these ranks.",
            )
        return PIN, str(rank)
    if wanted.hash.startswith(BY_CHANCE):
        return RANDOM, wanted.hash.removeprefix(BY_CHANCE).strip() or "0.01"
    if wanted.count not in (None, 1, -1):
        why = (
            "it spreads the directory's children over all ranks (distributed), or a share of all directories below "
            "(random)"
        )
        raise BadInputError(
            f"CephFS does not spread a directory over {counted(wanted.count, 'metadata rank')}", why=why
        )
    return DISTRIBUTED, "1"


def _share(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
