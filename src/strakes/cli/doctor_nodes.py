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
    from strakes.runs.nodes_check import Alignment, CheckedNode, Difference

_TOKEN = "token"


def examine_nodes(launch: Launch, directory: Path | None, json: Output | None) -> int:
    """Print the properties of the nodes and their differences; return the exit status."""
    from strakes.base.interrupts import interrupts_deferred
    from strakes.runs.nodes_check import examine, measure_alignment
    from strakes.targets.directory import require_directory
    from strakes.targets.workspace import Workspace

    with ExitStack() as stack:
        aligned = None
        if directory is None:
            nodes, differences = examine(launch)
        else:
            directory = require_directory(directory)
            with interrupts_deferred():
                workspace = stack.enter_context(Workspace.create(directory, f"doctor-{secrets.token_hex(4)}"))
            token = secrets.token_hex(8)
            workspace.write_file(_TOKEN, token)
            nodes, differences = examine(launch, str(directory), f"{workspace.path.name}/{_TOKEN}", token)
            if not any(difference.wrong for difference in differences):
                aligned = measure_alignment(launch, len(nodes), workspace.path)
    wrong = any(difference.wrong for difference in differences)
    if write_json(json, _document(nodes, differences, aligned)):
        _print(nodes, differences, aligned, directory)
    return EnvironmentLacksError.exit_status if wrong else 0


def _document(nodes: list[CheckedNode], differences: list[Difference], aligned: Alignment | None) -> dict[str, object]:
    return {
        "schema": 1,
        "ok": not any(difference.wrong for difference in differences),
        "nodes": [asdict(node) for node in nodes],
        "differences": [asdict(difference) for difference in differences],
        "alignment": None if aligned is None else asdict(aligned),
    }


def _print(
    nodes: list[CheckedNode], differences: list[Difference], aligned: Alignment | None, directory: Path | None
) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from strakes.base.units import format_bytes, format_seconds, format_value

    table = Table(
        "host",
        "strakes",
        "clock",
        "processors",
        "free memory",
        "link",
        "directory",
        box=box.SIMPLE_HEAD,
        show_edge=False,
    )
    for node in nodes:
        clock = f"{node.clock_ahead_s * 1e3:+.2f} ms ± {node.clock_uncertainty_s * 1e3:.2f}"
        link = "not measured" if node.link is None else format_value(node.link, "B/s")
        seen: Mapping[str, Any] = node.seen or {}
        where = str(seen.get("why", "")) or (f"{seen['file_system']} {seen['source']}" if seen else "not checked")
        memory = format_bytes(node.memory_available_bytes)
        cells = (node.host, node.strakes, clock, str(node.cpus), memory, link, where)
        table.add_row(*map(for_terminal, cells))
    console = Console(markup=False, highlight=False, width=None if sys.stdout.isatty() else 160)
    console.print(table)
    console.print("\nclock: ahead of this host's wall clock. link: TCP with several streams, to or from a neighbour")
    if aligned is not None:
        worst = f"median of {len(aligned.spreads_s)}, at worst {format_seconds(max(aligned.spreads_s))}"
        console.print(f"phases start within {format_seconds(aligned.usual_s)} of each other on all nodes ({worst});")
        console.print(f"their clocks are compared to within {format_seconds(aligned.clock_uncertainty_s)}")
        if aligned.crowded:
            console.print(
                "some nodes share a machine with fewer processors than nodes; if all of them compute, they cannot "
                "start at the same moment"
            )
    elif directory is None:
        console.print("add DIR to check whether all nodes see it and how closely together phases start")
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
