"""BeeGFS: stripe pattern and targets through ``beegfs-ctl`` (version 7), as its public documentation has them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from strakes.base.errors import BadInputError, EnvironmentLacksError, MeasurementError
from strakes.base.units import KIB, parse_bytes
from strakes.targets.command import Command, Completed
from strakes.targets.description import DataTarget, Description, Layout, Limit, Placement, Striping
from strakes.targets.remote import RemoteTarget

_CTL = "beegfs-ctl"
_PATTERN = re.compile(r"^\+ (?P<key>[^:]+): (?P<value>.*)$", re.MULTILINE)
_METADATA_NODE = re.compile(r"^Metadata node: .*\[ID: (\d+)\]", re.MULTILINE)
_TARGET = re.compile(r"^\s*(\d+)\s+(\S+)\s+(\S+)\s+(\d+)\s*$", re.MULTILINE)
_DESIRED = re.compile(r"desired: (\d+)|^(\d+)")
# Chunk sizes are powers of two, of at least this.
_CHUNK_BYTES = 64 * KIB


class BeeGfsTarget(RemoteTarget):
    """A file's chunks go round the storage targets that it was given when it was made."""

    file_systems = ("beegfs", "beegfs_nodev")
    cannot = (
        (
            "place directories",
            (
                "BeeGFS chooses the metadata target of a new directory itself; only root may choose it, with "
                "beegfs-ctl --createdir"
            ),
        ),
        ("read counters of servers", "beegfs-ctl --serverstats shows only rates, not counters"),
    )

    def controls(self) -> tuple[str, ...]:
        return (
            (
                "number of storage targets and chunk size of new files (beegfs-ctl --setpattern; root, or where the "
                "site allows it)"
            ),
        )

    def _parts(self, known: Description) -> Description:
        words = (_CTL, "--listtargets", "--nodetype=storage", "--state", self._mount)
        return replace(known, data_targets=Command(words, _read_targets).ask(self.run))

    def layout(self, path: Path) -> Layout | None:
        try:
            return Command((_CTL, "--getentryinfo", self._mount, str(path)), read_pattern).ask(self.run)
        except EnvironmentLacksError:
            return None  # limits() says why

    def set_layout(self, directory: Path, wanted: Layout) -> Layout:
        count = [f"--numtargets={wanted.stripe_count}"] if wanted.stripe_count and wanted.stripe_count > 0 else []
        size = [f"--chunksize={wanted.stripe_size_bytes}"] if wanted.stripe_size_bytes else []
        if not count and not size:
            raise BadInputError(
                "the layout is empty", where=str(directory), remedy="Give a stripe count or a stripe size."
            )
        words = (_CTL, "--setpattern", *count, *size, self._mount, str(directory))
        _checked(self.run(words), "no layout was set")
        return self.layout(directory) or Layout()

    def striping(self) -> Striping | None:
        count = len(self.describe().data_targets)
        return Striping(count, _CHUNK_BYTES) if count else None

    def placement(self, directory: Path) -> Placement | None:
        try:
            done = self.run((_CTL, "--getentryinfo", self._mount, str(directory)))
            text = _checked(done, "beegfs-ctl gives no information")
        except EnvironmentLacksError:
            return None
        match = _METADATA_NODE.search(text)
        return Placement("inherit", (int(match[1]),)) if match else None

    def limits(self) -> tuple[Limit, ...]:
        told = self.describe()
        lacking = (Limit("set the layout of files", told.notes[0]),) if told.notes else ()
        return (*lacking, *super().limits())

    @property
    def _mount(self) -> str:
        return f"--mount={self.mount.mount_point}"


def read_pattern(done: Completed) -> Layout:
    """Return the pattern in the answer to --getentryinfo."""
    fields = {
        match["key"]: match["value"].strip() for match in _PATTERN.finditer(_checked(done, "the layout cannot be read"))
    }
    count = _DESIRED.search(fields.get("Number of storage targets", ""))
    if "Chunksize" not in fields or count is None:
        raise MeasurementError("the output of beegfs-ctl is not understood", where=repr(done.stdout[:200]))
    # "512K": binary, as everywhere in BeeGFS.
    size = parse_bytes(fields["Chunksize"] + ("iB" if fields["Chunksize"][-1:].isalpha() else "B"))
    pool = fields.get("Storage Pool", "")
    return Layout(size, int(count[1] or count[2]), pool=pool, pattern=fields.get("Type", "").lower())


def _read_targets(done: Completed) -> tuple[DataTarget, ...]:
    rows = _TARGET.findall(_checked(done, "the storage targets cannot be listed"))
    return tuple(
        DataTarget(
            f"target {number}",
            int(number),
            state=reachable.lower() if state == "Good" else f"{reachable.lower()}, {state.lower()}",
        )
        for number, reachable, state, _ in rows
    )


def _checked(done: Completed, what: str) -> str:
    if done.status == 0:
        return done.stdout
    why = (done.stderr.strip() or done.stdout.strip() or f"exit status {done.status}").splitlines()[-1]
    raise EnvironmentLacksError(
        what, where=" ".join(done.argv), why=why, remedy="Run strakes as root, or ask your administrator to allow it."
    )
