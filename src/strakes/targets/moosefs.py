"""MooseFS: master, chunkservers and goals from ``mfscli`` and ``mfsgetsclass``, and counters of the client."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from strakes.base.errors import EnvironmentLacksError, MeasurementError, StrakesError
from strakes.base.finite import whole
from strakes.targets.answers import MOST_VALUES, limit_values, understood
from strakes.targets.command import Command, Completed
from strakes.targets.description import CLIENT, Description, Observation, Server, StorageTarget
from strakes.targets.mountinfo import Mount
from strakes.targets.remote import RemoteTarget, add_up
from strakes.targets.target import said

# Source of a mount by mfsmount(8): "HOST:PORT" with type fuse.mfs, or "mfs#HOST:PORT", and a subdirectory if mounted.
_SOURCE = re.compile(r"(mfs#)?(?P<host>(?!-)[\w.-]+)(:(?P<port>\d+))?(/.*)?", re.DOTALL)
_GOAL = re.compile(r": (?:goal: )?(\S+)\s*$")


def mfscli(host: str, port: str, data: str) -> Command[tuple[tuple[str, ...], ...]]:
    """Return the command that prints a table of the MooseFS master. ``data``: name of the table, such as IN.

    The command yields rows that begin with a title, such as "master info:", or raises EnvironmentLacksError.
    """

    def read(done: Completed) -> tuple[tuple[str, ...], ...]:
        with understood("mfscli", done.stdout):
            limit_values(done.stdout, "|", MOST_VALUES, ends="|\n")
        rows = tuple(tuple(line.split("|")) for line in done.stdout.splitlines() if "|" in line)
        if done.status != 0 or not rows:
            what, remedy = "strakes cannot query the MooseFS master", "Check that mfscli is installed."
            raise EnvironmentLacksError(what, where=f"{host}:{port}", why=done.last_line, remedy=remedy)
        return rows

    return Command(("mfscli", "-H", host, "-P", port, "-n", "-p", "-s", "|", f"-S{data}"), read)


def goal(path: str) -> Command[str]:
    """Return the command that prints the goal (number of copies) or storage class of a file or directory."""

    def read(done: Completed) -> str:
        match = _GOAL.search(done.stdout.strip())
        if done.status != 0 or match is None:
            raise MeasurementError("the MooseFS goal of the path cannot be read", where=path, why=done.last_line)
        return match[1]

    return Command(("mfsgetsclass", path), read)  # MooseFS 4 has no mfsgetgoal.


class MooseFsTarget(RemoteTarget):
    """A MooseFS mount. The master is queried over the network with a time limit."""

    cannot = (
        ("set the layout of files", "MooseFS cuts files into chunks of 64 MiB; goals set only the number of copies"),
        ("place directories", "one master has all directories"),
        ("read counters of servers", "servers keep charts per minute, not counters; strakes reads the client's"),
    )

    @classmethod
    def claims(cls, mount: Mount) -> bool:
        match = _SOURCE.fullmatch(mount.source)
        return match is not None and (mount.file_system != "fuse" or match[1] is not None)

    def _parts(self, known: Description) -> Description:
        match = _SOURCE.fullmatch(self.mount.source)
        assert match is not None
        host, port = match["host"], match["port"] or "9421"
        return describe(host, port, *(mfscli(host, port, data).ask(self.run_near_servers) for data in ("IN", "CS")))

    def describe(self) -> Description:
        told = super().describe()
        try:
            return replace(told, client={**told.client, "goal here": goal(str(self.path)).ask(self.run_near_servers)})
        except StrakesError as error:
            return replace(told, notes=(*told.notes, said(error)))

    def observe(self) -> Observation:
        try:
            done = self.run(("head", "-c", "65536", str(Path(self.mount.mount_point) / ".stats")), 5.0)
            return {"client": counters(done.stdout)} if done.status == 0 else {}
        except StrakesError:
            return {}


@understood("mfscli")
def describe(
    host: str, port: str, master: Sequence[Sequence[str]], chunkservers: Sequence[Sequence[str]]
) -> Description:
    """Return the description of the file system from the tables IN (``master``) and CS (``chunkservers``) of mfscli."""
    info = {row[1]: row[2] for row in master if len(row) > 2}
    targets = []
    tables = [row for row in chunkservers if row[0].lower().replace(" ", "").endswith("chunkservers:")]
    for _, address, own_port, number, *row in (row for row in tables if len(row) > 3):
        # MooseFS 4 has one more column before this. mfscli prints no sizes for a disconnected chunkserver.
        at = next((at for at, text in enumerate(row) if text.startswith("maintenance")), len(row))
        maintenance, _, used, total = (*row[at : at + 4], *[""] * 4)[:4]
        sizes = (whole(total), max(whole(total) - whole(used), 0)) if total.isdecimal() and used.isdecimal() else (0, 0)
        index = whole(number) if number.isdecimal() else None
        state = maintenance.replace("maintenance_off", "online").replace("_", " ") if sizes[0] else "disconnected"
        targets.append(StorageTarget(f"{address}:{own_port}", index, address, state, *sizes))
    name = f"{host}:{port}"
    hosts = Counter(target.server for target in targets)
    return Description(
        file_system_name=f"mfs#{name}",
        version=info.get("master version", ""),
        servers=(
            Server(name, "master", name, "answers"),
            *(Server(host, "chunkserver", host, f"{number} chunkservers") for host, number in hosts.items()),
        ),
        data_targets=tuple(targets),
        metadata_targets=(StorageTarget("master", None, name, "online"),),
    )


@understood("the file .stats of MooseFS")
def counters(text: str) -> dict[str, float]:
    """Return the counters (``md.open``, ...) in the text of the file ``.stats`` of a MooseFS mount."""
    pairs = (line.partition(": ")[::2] for line in text.splitlines())
    own = {
        name.removeprefix("fuse_ops."): float(whole(value))
        for name, value in pairs
        if name.startswith("fuse_ops.") and value.isdecimal()
    }
    return {CLIENT + name: count for name, count in add_up(own).items()}
