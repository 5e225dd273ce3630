"""Snapshots of behaviour that users rely on, compared with the files in ``data``.

``./dev freeze`` writes the files again; review the difference and name it in the commit.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from strakes.base.finite import finite
from strakes.base.units import GIB, KIB
from strakes.cli.main import cli
from strakes.failover.check import check
from strakes.failover.plan import write_plan
from strakes.failover.setup import read_plan
from strakes.model.cell import Cell
from strakes.runs.engine import find_engine
from strakes.runs.published import PublishedRun
from strakes.studies.registry import studies
from strakes.targets.description import Description, StorageTarget, Striping
from strakes.targets.lustre_target import layout_kinds
from strakes.tuning.portraits import build_portrait
from studies import world

ROOT = Path(__file__).parents[2]
DATA = Path(__file__).with_name("data")

_TARGETS = Description(
    "lab",
    "1",
    data_targets=tuple(
        StorageTarget(f"ost{n}", n, f"oss{n}", "active", GIB, GIB, 1000, 1000, (f"pool{n}", "all")) for n in range(4)
    ),
    metadata_targets=tuple(StorageTarget(f"mdt{n}", n, f"mds{n}", "active", 0, 0, 0, 0) for n in range(2)),
    pools=("pool0", "all"),
)
_CONTEXTS = {
    "xfs": world.context(cpus=4, description=None, striping=None),
    "lustre": world.context(
        cpus=4,
        file_system="lustre",
        remote=True,
        max_bytes=100 * GIB,
        description=_TARGETS,
        striping=Striping(4, 64 * KIB, layout_kinds(4)),
        nodes={"n1": 4, "n2": 4, "n3": 4},
        most_ranks=12,
    ),
}


def plans() -> str:
    """Return a line for each cell: team and phases. A phase is what differs from an earlier one."""
    lines = []
    first: dict[str, dict[str, Any]] = {}
    for study in studies():
        last: dict[str, dict[str, Any]] = {}
        for name, context in _CONTEXTS.items():
            for cell in (one for one in study.cells(context) if isinstance(one, Cell)):
                plan: Any = cell.plan.to_json()
                phases = [f"{phase['name']} {_compact(_changed(phase, last, first))}" for phase in plan["phases"]]
                lines.append(" ".join([name, cell.key, _compact(plan["team"]), *phases]))
    return "\n".join(lines) + "\n"


def _changed(phase: dict[str, Any], last: dict[str, Any], first: dict[str, Any]) -> dict[str, Any]:
    """Compare a phase with the last one of its name in the study, or with the first one of its kind."""
    name, kind = phase.pop("name"), phase["kind"]
    before = last.get(name) or first.get(kind) or {}
    last[name] = phase
    first.setdefault(kind, phase)
    return {key: phase.get(key) for key in {**before, **phase} if phase.get(key) != before.get(key)}


def commands() -> str:
    pages = []
    for path, command in _commands("strakes", cli):
        with click.Context(command, info_name=path, terminal_width=100, **cli.context_settings) as context:
            pages.append(f"$ {path} --help\n{command.get_help(context)}\n")
    return "\n".join(pages)


def _commands(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        with click.Context(command) as context:
            for name in command.list_commands(context):
                if member := command.get_command(context, name):
                    yield from _commands(f"{path} {name}", member)


def checks() -> str:
    """Return the findings of ``failover check`` on the plans of all examples and on three good configurations."""
    lines = []
    with tempfile.TemporaryDirectory() as directory:
        for example in sorted((ROOT / "examples" / "failover").glob("*.toml")):
            write_plan(example, Path(directory) / example.stem, replace=False)
            lines += _checked(example.stem, Path(directory) / example.stem)
    for name in ("lustre-four-nodes", "nfs-lvm-multipath-sbd", "zfs-nfs"):
        lines += _checked(name, ROOT / "tests" / "failover" / "good" / name)
    return "\n".join(lines) + "\n"


def _checked(name: str, directory: Path) -> list[str]:
    result = check(read_plan(directory))
    rows = [f"  {one.severity} {one.rule}: {place}" for one in result.findings for place in one.places]
    return [f"{name}: {len(rows)} findings", *sorted(rows)]


def decisions() -> str:
    paths = sorted((ROOT / "tests" / "runs" / "stored").glob("*.json.gz"))
    return "".join(
        f"{path.name.removesuffix('.json.gz')} {finding['id']} {direction}\n"
        for path in paths
        for finding in sorted(
            finite(asdict(build_portrait(PublishedRun(path))))["findings"], key=lambda one: str(one["id"])
        )
        if (direction := _direction(finding))
    )


def _direction(finding: Mapping[str, Any]) -> str:
    interval = finding["interval"]
    if finding["verdict"] in ("holds", "does-not"):
        return str(finding["verdict"])
    if not interval or interval["unit"] != "times":
        return ""
    return "greater" if interval["low"] > 1 else "less" if interval["high"] < 1 else ""


def samples() -> str:
    lines = []
    with tempfile.TemporaryDirectory() as directory, chdir(directory):
        Path(".strakes-marker").touch()
        for path in sorted((ROOT / "tests" / "plans" / "good").glob("*.json")):
            plan = json.loads(path.read_text())
            if _is_small(plan):
                lines += [f"{path.stem} {_compact(_masked(message))}" for message in _messages(plan)]
    return "\n".join(lines) + "\n"


def _is_small(plan: Any) -> bool:
    kinds = {phase["kind"] for phase in plan["phases"]}
    backends = {phase.get("backend", "posix") for phase in plan["phases"]}
    timed = any("stop" in phase for phase in plan["phases"])
    return (
        not timed and plan["team"]["ranks"] <= 8 and backends <= {"posix", "stdio"} and not kinds & {"probe", "mixed"}
    )


def _messages(plan: Any) -> list[dict[str, Any]]:
    request = {"type": "plan", "version": 1, "id": "p", "directory": str(Path.cwd()), "plan": plan, "limit_s": 20}
    answer = subprocess.run([find_engine()], input=json.dumps(request), capture_output=True, text=True, timeout=60)
    return [message for line in answer.stdout.splitlines() if (message := json.loads(line))["type"] in _KEPT]


_KEPT = ("sample", "done", "error")
# Keys whose values depend on the machine and the load.
_VARYING = {"host", "counters", "nodes", "cache", "begun", "ranks", "file_system", "remedy", "why", "what"}


def _masked(message: dict[str, Any]) -> Any:
    timed = message.get("stopped_by", "amount") != "amount"
    return {key: "*" if key in _VARYING else _without_times(value, timed) for key, value in message.items()}


def _without_times(value: Any, timed: bool) -> Any:
    if isinstance(value, dict):
        if "buckets" in value:
            return "*" if timed else sum(count for _, count in value["buckets"])
        return {key: _without_times(one, timed) for key, one in value.items()}
    if isinstance(value, list):
        return [_without_times(one, timed) for one in value]
    return "*" if isinstance(value, float) or (timed and isinstance(value, int)) else value


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


SNAPSHOTS: dict[str, Callable[[], str]] = {
    "plans": plans,
    "commands": commands,
    "checks": checks,
    "decisions": decisions,
    "samples": samples,
}


def path_of(name: str) -> Path:
    return DATA / f"{name}.txt"


if __name__ == "__main__":
    # With an argument, print the snapshot of that name; otherwise write the files of all snapshots.
    if sys.argv[1:]:
        sys.stdout.write(SNAPSHOTS[sys.argv[1]]())
    else:
        for name, make in SNAPSHOTS.items():
            path_of(name).write_text(make())
