"""``strakes target DIR``: what is known about the file system under DIR, and what strakes can change there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from strakes.targets.base import TargetFacts
    from strakes.targets.block_device import BlockDevice


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def command(directory: Path, as_json: bool) -> None:
    """Show what is known about the file system under DIR; writes nothing there."""
    from strakes.targets.registry import detect

    target = detect(directory)
    facts = target.facts()
    if as_json:
        import json
        from dataclasses import asdict

        click.echo(json.dumps({**asdict(facts), "path": str(facts.path), "controls": target.controls()}, indent=1))
        return
    rows = [*_rows(facts), *(_device_rows(facts.block_device) if facts.block_device else [])]
    controls = "; ".join(target.controls()) or f"nothing yet: strakes has no settings for {facts.file_system}"
    rows += [("note", note) for note in facts.notes] + [("strakes can change", controls)]
    width = max(len(label) for label, _ in rows)
    for label, text in rows:
        click.echo(f"{label:<{width}}  {text}")


def _rows(facts: TargetFacts) -> list[tuple[str, str]]:
    from strakes.units import format_bytes

    inodes = f"{facts.free_inodes:,} free of {facts.total_inodes:,}" if facts.total_inodes else "not counted by this file system"
    return [
        ("directory", click.format_filename(facts.path)),
        ("file system", f"{facts.file_system} ({'on other machines' if facts.remote else 'on this machine'})"),
        ("device", facts.device),
        ("mounted on", click.format_filename(facts.mount_point)),
        ("mount options", ",".join(facts.mount_options)),
        ("space", f"{format_bytes(facts.free_bytes)} free of {format_bytes(facts.total_bytes)}"),
        ("inodes", inodes),
        ("block", format_bytes(facts.block_bytes)),
        ("direct I/O", "not tried here (a survey tries it in its own directory)"),
    ]


def _device_rows(device: BlockDevice) -> list[tuple[str, str]]:
    from strakes.units import format_bytes

    kind = "rotational" if device.rotational else "not rotational"
    rows = [
        ("block device", f"{device.name}, {format_bytes(device.total_bytes)}, {kind} (as the kernel was told)"),
        ("I/O scheduler", device.scheduler),
        ("read-ahead", format_bytes(device.read_ahead_bytes)),
        ("write cache", device.write_cache),
    ]
    return [*rows, ("backing file", click.format_filename(device.backing_file))] if device.backing_file else rows
