"""``strakes doctor --hosts``: check nodes before a measurement."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strakes.base.errors import EnvironmentLacksError
from strakes.base.foreign_text import for_terminal
from strakes.base.units import counted
from strakes.cli.options import Output, write_json

if TYPE_CHECKING:
    from strakes.runs.choice import Launch
    from strakes.runs.node_facts import CheckedNode, Difference

_TOKEN = "token"


def examine_nodes(launch: Launch, directory: Path | None, json: Output | None) -> int:
    """Print the properties of the nodes and their differences; return the exit status."""
    from strakes.base.interrupts import interrupts_deferred
    from strakes.runs.node_facts import examine
    from strakes.targets.directory import require_directory
    from strakes.targets.workspace import Workspace

    with ExitStack() as stack:
        if directory is None:
            nodes, differences = examine(launch)
        else:
            directory = require_directory(directory)
            with interrupts_deferred():
                workspace = stack.enter_context(Workspace.create(directory, f"doctor-{secrets.token_hex(4)}"))
            token = secrets.token_hex(8)
            workspace.write_file(_TOKEN, token)
            nodes, differences = examine(launch, str(directory), f"{workspace.path.name}/{_TOKEN}", token)
    wrong = any(difference.wrong for difference in differences)
    if write_json(json, _document(nodes, differences)):
        _print(nodes, differences, directory)
    return EnvironmentLacksError.exit_status if wrong else 0


def _document(nodes: list[CheckedNode], differences: list[Difference]) -> dict[str, object]:
    return {
        "schema": 1,
        "ok": not any(difference.wrong for difference in differences),
        "nodes": [asdict(node) for node in nodes],
        "differences": [asdict(difference) for difference in differences],
    }


def _print(nodes: list[CheckedNode], differences: list[Difference], directory: Path | None) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from strakes.base.units import format_bytes

    columns = ("host", "strakes", "clock", "processors", "free memory", "directory")
    table = Table(*columns, box=box.SIMPLE_HEAD, show_edge=False)
    for node in nodes:
        clock = f"{node.clock_ahead_s:+.1f} s" if node.clock_ahead_s else "agrees"
        seen: Mapping[str, Any] = node.seen or {}
        where = str(seen.get("why", "")) or (f"{seen['file_system']} {seen['source']}" if seen else "not checked")
        memory = format_bytes(node.memory_available_bytes)
        cells = (node.host, node.strakes, clock, str(node.cpus), memory, where)
        table.add_row(*map(for_terminal, cells))
    console = Console(markup=False, highlight=False, width=None if sys.stdout.isatty() else 160)
    console.print(table)
    console.print("\nclock: its wall clock, compared with this host's while the launcher ran")
    if directory is None:
        console.print("add DIR to check whether all nodes see it")
    for difference in differences:
        remedy = f". {difference.remedy}" if difference.remedy else ""
        label = "wrong" if difference.wrong else "note"
        console.print(for_terminal(f"{label}  {difference.host}: {difference.what}{remedy}"))
    if any(difference.wrong for difference in differences):
        hosts = ", ".join(dict.fromkeys(difference.host for difference in differences if difference.wrong))
        console.print(f"\n{for_terminal(hosts)}: do not measure with these nodes.")
    else:
        console.print(
            f"\n{counted(len(nodes), 'node')} {'are alike' if not differences else 'can be measured together'}."
        )
