"""Dependencies between resources, such as a service and its volume or mount."""

from __future__ import annotations

from collections.abc import Iterator

from strakes.failover.cib import Cib
from strakes.failover.pacemaker_resources import Primitive
from strakes.failover.rules_possessions import one_name
from strakes.failover.setup import Setup

_LOCKED = ("gfs2", "ocfs2")


def provided_by(one: Primitive) -> tuple[str, ...]:
    """Return the beginnings of the paths that a resource provides, such as ``/dev/GROUP/`` for LVM."""
    values = one.values
    pool = values.get("pool", "") if "zfs" in one.agent.lower() or one.agent == "zpool" else ""
    if pool:
        return f"{pool}/", f"/{pool}/", f"/dev/zvol/{pool}/"
    if one.agent in ("LVM-activate", "LVM"):
        group, volume = values.get("vgname") or values.get("volgrpname", ""), values.get("lvname", "")
        return (f"/dev/{group}/{volume}/" if volume else f"/dev/{group}/",) if group else ()
    if one.agent == "crypt" and values.get("crypt_dev"):
        return (f"/dev/mapper/{values['crypt_dev']}/",)
    array = values.get("md_dev") or values.get("raiddev", "")
    return (f"{array}/",) if array else (f"{one.mount_point}/",) if one.is_mount and one.mount_point else ()


def _named(one: Primitive) -> Iterator[str]:
    for name, value in one.values.items():
        # A name without a slash may be a pool, or the name of anything else.
        if "/" in value or name in ("device", "dataset", "pool", "target"):
            yield f"{one_name(value.rstrip('/'))}/"
    # A SAP instance is called SID_INSTANCE_HOST.
    yield "/usr/sap/{}/{}/".format(*[*one.values.get("InstanceName", "").split("_"), "", ""][:2])


def users(cib: Cib) -> Iterator[tuple[Primitive, Primitive]]:
    """Yield (service, resource) pairs: the service uses a path that the resource provides."""
    provided = [(one, given) for one in cib.services if (given := provided_by(one))]
    for user in cib.services:
        for base, beginnings in provided:
            same = (user.is_mount and user.mount_point == base.mount_point != "") or provided_by(user) == beginnings
            if user.id != base.id and not same and any(name.startswith(beginnings) for name in _named(user)):
                yield user, base


def needs_of(cib: Cib) -> Iterator[tuple[Primitive, Primitive]]:
    """Yield (service, resource) pairs: the service needs the resource on its node."""
    yield from users(cib)
    by_agent: dict[str, list[Primitive]] = {}
    for one in cib.services:
        by_agent.setdefault(one.agent, []).append(one)
    for one in cib.services:
        locked = one.values.get("vg_access_mode") in ("lvmlockd", "clvmd") or one.agent in ("lvmlockd", "clvm")
        if locked or (one.is_mount and one.values.get("fstype") in _LOCKED):
            yield from ((one, manager) for manager in by_agent.get("controld", ())[:1])
        if one.agent == "iSCSILogicalUnit":
            targets = by_agent.get("iSCSITarget", ())
            yield from ((one, base) for base in targets if base.values.get("iqn") == one.values.get("target_iqn"))
        if one.agent == "exportfs":
            servers = by_agent.get("nfsserver", ())
            yield from ((one, base) for base in servers if base.group == one.group or cib.ties.starts_after(one, base))


def clone_of(setup: Setup, device: str) -> str:
    """Return the id of the clone of a DRBD device, or an empty text."""
    clones = {one.values.get("drbd_resource", ""): one.clone for one in setup.services if one.is_drbd}
    names = [resource.name for resource in setup.drbd if device in resource.devices]
    return next((clones[name] for name in names if name in clones), "")


def needed_with_role(setup: Setup) -> Iterator[tuple[Primitive, Primitive, str]]:
    """Yield (service, resource, role): the service needs the resource in this role (empty: any role)."""
    cib = setup.pacemaker
    yield from ((user, base, "") for user, base in needs_of(cib))
    for user in cib.services if setup.drbd else ():
        clone = clone_of(setup, user.device) if user.uses_disk else ""
        yield from ((user, base, "Promoted") for base in cib.services if clone and base.clone == clone)
