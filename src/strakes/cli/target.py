"""``strakes target DIR``: show the properties of the file system under DIR, and what strakes can change there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from strakes.base.units import format_bytes
from strakes.cli.options import AsJson, AtServers, Directory, command_named, write_json
from strakes.cli.say import print_table, say, say_rows, say_sentence

if TYPE_CHECKING:
    from strakes.targets.description import Layout, Placement, StorageTarget
    from strakes.targets.knowledge import Knowledge

_HEADS = ("name", "server", "state", "free", "free inodes", "pools")


@command_named("target")
def command(directory: Directory, servers: AtServers, as_json: AsJson) -> None:
    """Show the properties of the file system under DIR. Nothing is written there."""
    from strakes.targets.knowledge import know
    from strakes.targets.registry import detect

    known = know(detect(directory, servers))
    if not write_json(as_json, known.document()):
        return
    description = known.description
    say_rows([(label, text) for label, text in _rows(known) if text])
    hosts = [(server.name, server.role, server.address, server.state) for server in description.servers]
    tables: dict[str, tuple[Sequence[str], Sequence[Sequence[str]]]] = {
        "Servers": (("name", "role", "address", "state"), hosts),
        "Metadata targets": (_HEADS, list(map(_target_row, description.metadata_targets))),
        "Data targets": (_HEADS, list(map(_target_row, description.data_targets))),
    }
    for title, (heads, rows) in tables.items():
        kept = [column for column in range(len(heads)) if any(row[column] for row in rows)]
        if kept:
            say()
            say(title)
            print_table([heads[column] for column in kept], [[row[column] or "-" for column in kept] for row in rows])
    controls = known.controls or ("no layouts of files; for settings see: strakes knobs list DIR",)
    for title, lines in (
        ("Check before you trust figures", known.unlike),
        ("Notes", (*known.facts.notes, *description.notes)),
        ("strakes can change", controls),
        ("strakes cannot change, and why", [f"{limit.what}: {limit.why}" for limit in known.limits]),
    ):
        for text in ("", title, *(f"  {line}" for line in lines)) if lines else ():
            say_sentence(text)


def _rows(known: Knowledge) -> Iterator[tuple[str, object]]:
    facts, description = known.facts, known.description
    free = f"{facts.free_inodes:,} free of {facts.total_inodes:,}"
    name = description.file_system_name
    yield "directory", facts.path
    yield "file system", facts.file_system
    yield "device", facts.device
    yield "mounted on", facts.mount_point
    yield "mount options", ",".join(facts.mount_options)
    yield "space", f"{format_bytes(facts.free_bytes)} free of {format_bytes(facts.total_bytes)}"
    yield "inodes", free if facts.total_inodes else "this file system does not count inodes"
    yield from (("quota", text) for text in facts.quotas)
    if device := facts.block_device:
        kind = "rotational" if device.rotational else "not rotational"
        yield "block device", f"{device.name}, {format_bytes(device.total_bytes)}, {kind} (according to the kernel)"
        yield "I/O scheduler", device.scheduler
        yield "read-ahead", format_bytes(device.read_ahead_bytes)
        yield "write cache", device.write_cache
        yield "made of", f"{device.raid} {', '.join(device.members)}".strip()
        yield "backing file", device.backing_file
    yield "name", "" if name == facts.device else name
    yield "version", description.version
    yield "pools", ", ".join(description.pools)
    yield "network", ", ".join(description.network)
    yield from ((key, value) for key, value in description.client.items() if key != "mount options")
    yield "layout here", known.layout and layout_text(known.layout)
    yield "placement here", known.placement and placement_text(known.placement)


def layout_text(layout: Layout) -> str:
    """Return the layout of files as text. Omits a stripe size that equals the preceding component's."""
    mirrors: dict[int, list[str]] = {}
    sizes: dict[int, int] = {}
    for part in layout.components:
        size = part.layout.stripe_size_bytes
        same = size is not None and sizes.get(part.mirror) == size
        text = _plain_text(replace(part.layout, stripe_size_bytes=None) if same else part.layout)
        if size is None:
            # For an extendable component, ``lfs`` prints the extension size instead of the stripe size.
            text = "extends the component before"
        elif part.layout.pattern != "mdt":
            sizes[part.mirror] = size
        ends = "then" if part.end == part.begin else f"up to {format_bytes(part.end)}" if part.end else "rest"
        mirrors.setdefault(part.mirror, []).append(text if (part.begin, part.end) == (0, None) else f"{ends}: {text}")
    if len(mirrors) > 1:
        return ", ".join(f"mirror {number} ({'; '.join(parts)})" for number, parts in mirrors.items())
    return "; ".join(*mirrors.values()) if mirrors else _plain_text(layout) or "the file system's default"


def _plain_text(layout: Layout) -> str:
    if layout.pattern == "mdt":
        return "on the metadata target"
    values = {
        "stripe count {}": "-1 (all targets)" if layout.stripe_count == -1 else layout.stripe_count,
        "stripe size {}": format_bytes(layout.stripe_size_bytes) if layout.stripe_size_bytes is not None else None,
        "objects of {}": format_bytes(layout.object_bytes) if layout.object_bytes is not None else None,
        "first target {}": layout.first_target,
        "pool {}": layout.pool or None,
        "{}": None if layout.pattern in ("", "0", "raid0") else layout.pattern,
    }
    return ", ".join(form.format(value) for form, value in values.items() if value is not None)


def placement_text(placement: Placement) -> str:
    """Return the placement of directories on metadata targets as text."""
    targets = ", ".join(map(str, placement.metadata_targets))
    if placement.kind == "inherit":
        return f"same as the parent directory{f' (metadata target {targets})' if targets else ''}"
    many = len(placement.metadata_targets) > 1
    if placement.kind == "manual":
        how = f"on metadata target{'s' if many else ''} {targets}"
    elif many:
        how = f"spread by the file system over {len(placement.metadata_targets)} metadata targets ({targets})"
    else:
        how = f"on metadata target {targets}, its subdirectories spread by the file system" if targets else "spread"
    return ", ".join(filter(None, (how, placement.hash, "also for subdirectories" if placement.inherited else "")))


def _target_row(target: StorageTarget) -> tuple[str, ...]:
    space = f"{format_bytes(target.free_bytes)} of {format_bytes(target.total_bytes)}" if target.total_bytes else ""
    inodes = f"{target.free_inodes:,} of {target.total_inodes:,}" if target.total_inodes else ""
    return target.name, target.server, target.state, space, inodes, ", ".join(target.pools)
