"""``strakes target DIR``: properties of the file system under DIR, and what strakes can change there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from strakes.base.foreign_text import for_terminal
from strakes.base.text_width import columns, padded
from strakes.cli.options import DIRECTORY, as_json_option, servers_option
from strakes.cli.say import print_json, say_sentence

if TYPE_CHECKING:
    from strakes.targets.block_device import BlockDevice
    from strakes.targets.command import Servers
    from strakes.targets.description import DataTarget, Description, Layout, MetadataTarget, Placement
    from strakes.targets.knowledge import Knowledge

_Row = tuple[str, str]


@click.command()
@click.argument("directory", metavar="DIR", type=DIRECTORY)
@servers_option
@as_json_option
def command(directory: Path, servers: Servers | None, as_json: bool) -> None:
    """Show the properties of the file system under DIR. Nothing is written there."""
    from strakes.targets.knowledge import know
    from strakes.targets.registry import detect

    known = know(detect(directory, servers))
    if as_json:
        print_json(known.document())
        return
    rows = [
        *_rows(known),
        *(_device_rows(known.facts.block_device) if known.facts.block_device else []),
        *_told(known),
    ]
    width = max(len(label) for label, _ in rows)
    for label, text in rows:
        say_sentence(f"{label:<{width}}  {text}", indent=width + 2)
    for line in _tables(known.description):
        click.echo(for_terminal(line))
    for sentence in _sentences(known):
        say_sentence(sentence)


def _rows(known: Knowledge) -> list[_Row]:
    from strakes.base.units import format_bytes

    facts = known.facts
    inodes = (
        f"{facts.free_inodes:,} free of {facts.total_inodes:,}"
        if facts.total_inodes
        else "this file system does not count inodes"
    )
    return [
        ("directory", click.format_filename(facts.path)),
        ("file system", f"{facts.file_system} ({_where(known)})"),
        ("device", facts.device),
        ("mounted on", click.format_filename(facts.mount_point)),
        ("mount options", ",".join(facts.mount_options)),
        ("space", f"{format_bytes(facts.free_bytes)} free of {format_bytes(facts.total_bytes)}"),
        ("inodes", inodes),
        *(("quota", text) for text in facts.quotas),
        ("block", format_bytes(facts.block_bytes)),
        ("direct I/O", "not tested (a survey tests it in its own directory)"),
    ]


def _device_rows(device: BlockDevice) -> list[_Row]:
    from strakes.base.units import format_bytes

    kind = "rotational" if device.rotational else "not rotational"
    rows = [
        ("block device", f"{device.name}, {format_bytes(device.total_bytes)}, {kind} (according to the kernel)"),
        ("I/O scheduler", device.scheduler),
        ("read-ahead", format_bytes(device.read_ahead_bytes)),
        ("write cache", device.write_cache),
    ]
    if device.raid or device.members:
        rows.append(("made of", f"{device.raid} {', '.join(device.members)}".strip()))
    return [*rows, ("backing file", click.format_filename(device.backing_file))] if device.backing_file else rows


def _where(known: Knowledge) -> str:
    """Return a phrase for its servers: this machine, others, or both."""
    if not known.facts.remote:
        return "on this machine"
    servers, own = known.description.servers, known.description.network
    here = [server for server in servers if server.address in own]
    if not here:
        return "on other machines"
    return "on this machine" if len(here) == len(servers) else "on this machine and others"


def _told(known: Knowledge) -> Iterator[_Row]:
    """Yield the file system's own description, without its servers and targets."""
    description = known.description
    if description.file_system_name != known.facts.device:
        yield "name", description.file_system_name
    if description.version:
        yield "version", description.version
    if description.pools:
        yield "pools", ", ".join(description.pools)
    if description.network:
        yield "network", ", ".join(description.network)
    for key, value in description.client.items():
        if key != "mount options":
            yield key, value
    if known.layout is not None:
        yield "layout here", layout_text(known.layout)
    if known.placement is not None:
        yield "placement here", placement_text(known.placement)


def layout_text(layout: Layout) -> str:
    """Return a layout as text."""
    from strakes.base.units import counted, format_bytes

    parts = [
        f"stripe count {layout.stripe_count}" if layout.stripe_count is not None else "",
        f"stripe size {format_bytes(layout.stripe_size_bytes)}" if layout.stripe_size_bytes is not None else "",
        f"objects of {format_bytes(layout.object_bytes)}" if layout.object_bytes is not None else "",
        f"first target {layout.first_target}" if layout.first_target is not None else "",
        f"pool {layout.pool}" if layout.pool else "",
        layout.pattern,
        f"{counted(len(layout.components), 'component')}" if layout.components else "",
    ]
    return ", ".join(part for part in parts if part) or "the file system's default"


def placement_text(placement: Placement) -> str:
    """Return a placement as text."""
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
    return ", ".join(
        part for part in (how, placement.hash, "also for subdirectories" if placement.inherited else "") if part
    )


def _tables(description: Description) -> Iterator[str]:
    if description.servers:
        rows = [(server.name, server.role, server.address, server.state) for server in description.servers]
        yield from _table("Servers", ("name", "role", "address", "state"), rows)
    yield from _target_table("Metadata targets", description.metadata_targets)
    yield from _target_table("Data targets", description.data_targets)


def _target_table(title: str, targets: Sequence[DataTarget] | Sequence[MetadataTarget]) -> Iterator[str]:
    from strakes.base.units import format_bytes

    if not targets:
        return
    rows = []
    for target in targets:
        space = (
            f"{format_bytes(target.free_bytes)} of {format_bytes(target.total_bytes)}" if target.total_bytes else "-"
        )
        inodes = f"{target.free_inodes:,} of {target.total_inodes:,}" if target.total_inodes else "-"
        rows.append(
            (
                target.name,
                target.server or "-",
                target.state or "-",
                space,
                inodes,
                ", ".join(getattr(target, "pools", ())) or "-",
            )
        )
    yield from _table(title, ("name", "server", "state", "free", "free inodes", "pools"), rows)


def _table(title: str, head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield the lines of a table, without columns that have only dashes."""
    kept = [column for column in range(len(head)) if any(row[column] not in ("", "-") for row in rows)]
    shown = (head, *rows)
    widths = {column: max(columns(row[column]) for row in shown) for column in kept}
    yield from ("", title)
    for row in shown:
        yield f"  {'  '.join(padded(row[column], widths[column]) for column in kept)}".rstrip()


def _sentences(known: Knowledge) -> Iterator[str]:
    limits = [f"{limit.what}: {limit.why}" for limit in known.limits]
    controls = known.controls or ("no layouts of files; for settings see: strakes knobs list DIR",)
    for title, lines in (
        ("Check before you trust figures", known.unlike),
        ("Notes", (*known.facts.notes, *known.description.notes)),
        ("strakes can change", controls),
        ("strakes cannot change, and why", limits),
    ):
        if lines:
            yield from ("", title)
            yield from (f"  {line}" for line in lines)
