"""JuiceFS: the volume and the client's settings (``.config`` of the mount, for root) and its counters (``.stats``)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from strakes.base.errors import MeasurementError, StrakesError
from strakes.base.units import format_bytes, format_seconds
from strakes.targets.description import CLIENT, SINCE, Description, Observation
from strakes.targets.remote import RemoteTarget, add_up
from strakes.targets.target import said

_LIMIT_BYTES = 1 << 20
_ANSWER_S = 5.0
_BYTES = {
    "data.read_bytes": "juicefs_fuse_read_size_bytes_sum",
    "data.write_bytes": "juicefs_fuse_written_size_bytes_sum",
}
_OPERATION = "juicefs_fuse_ops_total_"
_STARTED = "juicefs_process_start_time_seconds"


def _nanoseconds(value: float) -> str:
    return format_seconds(value / 1e9)


def _yes_or_no(value: object) -> str:
    return "yes" if value else "no"


# Option of juicefs format or mount, its path in .config, and its format.
_SETTINGS: tuple[tuple[str, tuple[str, ...], Callable[[Any], str]], ...] = (
    ("storage", ("Format", "Storage"), str),
    ("block-size", ("Chunk", "BlockSize"), format_bytes),
    ("compress", ("Format", "Compression"), str),
    ("trash-days", ("Format", "TrashDays"), str),
    ("buffer-size", ("Chunk", "BufferSize"), format_bytes),
    ("cache-size", ("Chunk", "CacheSize"), format_bytes),
    ("writeback", ("Chunk", "Writeback"), _yes_or_no),
    ("max-readahead", ("Chunk", "Readahead"), format_bytes),
    ("prefetch", ("Chunk", "Prefetch"), str),
    ("max-uploads", ("Chunk", "MaxUpload"), str),
    ("max-downloads", ("Chunk", "MaxDownload"), str),
    ("attr-cache", ("AttrTimeout",), _nanoseconds),
    ("entry-cache", ("EntryTimeout",), _nanoseconds),
    ("dir-entry-cache", ("DirEntryTimeout",), _nanoseconds),
    ("open-cache", ("Meta", "OpenCache"), _nanoseconds),
)


class JuiceFsTarget(RemoteTarget):
    """A JuiceFS mount. Only the client is queried, because the addresses of servers contain passwords."""

    file_systems = ("fuse.juicefs",)
    cannot = (
        ("describe servers", "the metadata engine and the object store are separate systems"),
        ("set the layout of files", "the size of objects is chosen when the volume is made (juicefs format)"),
        ("place directories", "one metadata engine has all directories"),
        ("read counters of servers", "only the counters of this client are read"),
    )

    def describe(self) -> Description:
        """Return the settings of the volume; if this user may not read them, a note has the reason."""
        told = replace(super().describe(), file_system_name=self.mount.source)
        try:
            volume = settings(self._internal("config"))
        except StrakesError as error:
            return replace(told, notes=(f"{said(error)} (only root may read it).",))
        version = volume.pop("version", "")
        return replace(told, version=version, client={**told.client, **volume})

    def observe(self) -> Observation:
        """Return the counters of this mount's client."""
        try:
            counted = counters(self._internal("stats"))
        except StrakesError:
            return {}
        return {"client": counted} if counted else {}

    def _internal(self, name: str) -> str:
        """Return the text of an internal file, which only the root of a mount has. Raises MeasurementError."""
        why = ""
        # The second name is that in a mount with --prefix-internal.
        for file in (f".{name}", f".jfs.{name}"):
            path = str(Path(self.mount.mount_point) / file)
            done = self.run(("head", "-c", str(_LIMIT_BYTES), path), _ANSWER_S)
            if done.status == 0:
                return done.stdout
            why = why or done.stderr.strip().rpartition(": ")[2] or f"exit status {done.status}"
        raise MeasurementError("a file of the mount cannot be read", where=f"{self.mount.mount_point}/.{name}", why=why)


def settings(text: str) -> dict[str, str]:
    """Return version and settings of a mount from ``.config``, without addresses, which may contain a password.

    Raises MeasurementError if the text is not a ``.config`` file.

    >>> settings('{"Version": "1.4", "Chunk": {"Writeback": true, "BufferSize": 314572800}, "Format": {"Bucket": "x"}}')
    {'version': '1.4', 'buffer-size': '300 MiB', 'writeback': 'yes'}
    """
    try:
        document = json.loads(text)
        told = {"version": str(document["Version"]).partition("+")[0]}
        for name, keys, write in _SETTINGS:
            value = _value(document, keys)
            if value is not None:
                told[name] = write(value)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise MeasurementError(
            "the settings of the mount are not understood",
            where=repr(text[:80]),
            remedy="Please report it with the output of: juicefs version",
        ) from error
    return told


def _value(document: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    for key in keys[:-1]:
        document = document.get(key, {})
    return document.get(keys[-1])


def counters(text: str) -> dict[str, float]:
    r"""Return the client's counters under the common names. Calls that were never made have no line.

    >>> counters("juicefs_fuse_ops_total_create 2\njuicefs_fuse_ops_total_mknod 1\n")["client.md.create"]
    3.0
    """
    counted: dict[str, float] = {}
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        try:
            counted[name] = float(value)
        except ValueError:
            continue
    if not any(name.startswith("juicefs_fuse_") for name in counted):
        return {}
    calls = {name.removeprefix(_OPERATION): count for name, count in counted.items() if name.startswith(_OPERATION)}
    common = add_up(calls)
    common |= {name: counted.get(own, 0.0) for name, own in _BYTES.items()}
    common |= {SINCE: counted[_STARTED]} if _STARTED in counted else {}
    return {CLIENT + name: value for name, value in common.items()}
