"""``strakes run io500 CONFIG.ini``: translate an IO500 configuration into a plan of its phases, in IO500's order.

IO500's rules apply. Writing phases have a stonewall of 300 s; after it all ranks continue to the amount of the fastest.
A run with a shorter stonewall, with a missing phase, or with a phase that ends before the stonewall is INVALID.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from strakes.errors import BadInputError
from strakes.file_kinds import OTHER_KINDS, refuse_other_kind
from strakes.files import read_regular
from strakes.interop.commands.configuration import Configuration, at, help_of_keys, unknown_name
from strakes.interop.commands.words import (
    GivenCommand,
    Tool,
    Translation,
    place_of,
    plan_of,
    ranks_of,
    table_of,
    wrong,
)
from strakes.plan import MetadataPhase, Phase, Plan, TransferPhase

# Stonewall of a valid run in seconds. IO500's sizes of ior-hard writes, small files and random reads in bytes.
VALID_STONEWALL_S = 300
_HARD_BYTES, _SMALL_FILE_BYTES, _RANDOM_BYTES = 47008, 3901, 4096
_MOST_STONEWALL_S = 86400
_MOST_BYTES = 1 << 20
# The only option of the interface POSIX that IO500 accepts in API and that is supported here.
_DIRECT_OPTION = "--posix.odirect"
_NONE = ("false", "0", "no", "off")

_IGNORED = "changes nothing here"
SECTIONS: Mapping[str, Mapping[str, str]] = table_of("io500")["sections"]
_NOT_SUPPORTED: Mapping[str, str] = table_of("io500")["not-supported"]
# Sections of the extended mode. They have no score, and IO500 skips them in a standard run as well.
_EXTENDED = re.compile(r"^(find-(easy|hard)|mdworkbench(-\w+)?|ior-rnd(4k|1mb)(-(write|read))?|concurrent|timestamp)$")


def _asks_direct(configuration: Configuration, sections: Sequence[str]) -> tuple[str, str] | None:
    """Return the section and key that ask for O_DIRECT, by posix.odirect or by an option of the API, or None."""
    section, value = _first(configuration, sections, "posix.odirect")
    if value:
        asked = configuration.flag(section, "posix.odirect", default=False)
        return (section, "posix.odirect") if asked else None
    section, api = _first(configuration, (*sections, "global"), "api")
    return (section, "api") if _DIRECT_OPTION in api.split() else None


def _first(configuration: Configuration, sections: Sequence[str], key: str) -> tuple[str, str]:
    """Return the first of the sections that has a value for the key, and the value; "" if none has."""
    return next(((one, text) for one in sections if (text := configuration.text(one, key))), (sections[-1], ""))


def _runs(configuration: Configuration, phase: str) -> bool:
    """Return whether a phase is enabled, both in its own section and in the section of its test."""
    test = phase.rpartition("-")[0]
    return configuration.flag(test, "run", default=True) and configuration.flag(phase, "run", default=True)


def read_configuration(path: Path) -> tuple[Configuration, list[str]]:
    """Return the configuration in an ini file of IO500 and the remarks on its keys.

    Raises BadInputError for a file that is not ini, for unknown sections and keys, and for unsupported values.
    """
    refuse_other_kind(path, "io500", OTHER_KINDS["io500"].name)
    what, remedy = "the configuration cannot be read", "Give the name of an existing file."
    try:
        content = read_regular(path, _MOST_BYTES, what, remedy).decode()
    except UnicodeDecodeError as error:
        raise BadInputError("the configuration is not text", where=str(path), why=str(error)) from error
    configuration, notes, section = Configuration(path, "[{}] {}"), [], ""
    for number, line in enumerate(content.splitlines(), start=1):
        plain = re.sub(r"(^|\s)[#;].*", "", line).strip()
        if not plain:
            continue
        if heading := re.fullmatch(r"\[\s*(.*?)\s*\]", plain):
            section = heading[1].lower()
            if _EXTENDED.match(section):
                notes.append(f"[{heading[1]}] belongs to the extended mode, and is not run")
            elif section not in SECTIONS:
                raise unknown_name(f"section [{heading[1]}]", section, SECTIONS, at(path, number))
            continue
        key, equals, value = (part.strip() for part in plain.partition("="))
        if not equals or not section or not key:
            problem = "this line is neither [SECTION] nor KEY = VALUE" if section else "no [SECTION] precedes this line"
            raise BadInputError(problem, where=at(path, number), why=plain)
        name = key.lower()
        known = SECTIONS.get(section)
        if known is not None and name not in known:
            raise unknown_name(f"key {key} in [{section}]", name, known, at(path, number))
        configuration.values[section, name] = value
        configuration.lines[section, name] = number
        if known and value and (says := known[name]) and says != _IGNORED:
            notes.append(f"[{section}] {key}: {says}")
    _refuse_unsupported(configuration)
    return configuration, list(dict.fromkeys(notes))


def help_text() -> str:
    """Return the text of ``strakes run io500 --help``: usage, and the keys of a configuration."""
    head = (
        "strakes run [-n RANKS] [OPTION...] io500 CONFIG.ini",
        "",
        "Runs the phases of a configuration of IO500 by the rules of IO500: once, or repeatedly within --budget.",
    )
    sections = {f"[{section}]": keys for section, keys in SECTIONS.items()}
    return help_of_keys(head, sections, _NOT_SUPPORTED, tuple(_NOT_SUPPORTED))


def _refuse_unsupported(configuration: Configuration) -> None:
    for (section, key), value in configuration.values.items():
        if section not in SECTIONS:
            continue
        if key in _NOT_SUPPORTED and value and value.lower() not in _NONE:
            raise configuration.fault(section, key, f"{value!r} is not supported", _NOT_SUPPORTED[key])
        interface, *options = value.split() if key == "api" and value else ["POSIX"]
        if interface.upper() != "POSIX" or set(options) - {_DIRECT_OPTION}:
            remedy = f"Give POSIX, or POSIX {_DIRECT_OPTION}."
            raise configuration.fault(section, key, f"{value!r} is not supported", remedy)


def translate(
    words: Sequence[str], asked_ranks: int | None, seed: int, ranks_per_node: int | None = None
) -> Translation:
    """Translate ``CONFIG.ini`` into a plan. Raises BadInputError that names the line at fault."""
    if len(words) != 1 or not words[0]:
        remedy = "Give one file: strakes run -n 4 io500 config.ini"
        raise wrong("io500", "io500 takes a configuration and nothing else", remedy=remedy)
    configuration, notes = read_configuration(Path(words[0]))
    command = GivenCommand("io500", notes=notes)
    ranks = ranks_of("io500", asked_ranks, 0, command)
    stonewall_s = configuration.whole("debug", "stonewall-time", VALID_STONEWALL_S, most=_MOST_STONEWALL_S)
    if stonewall_s < VALID_STONEWALL_S:
        command.note(f"a stonewall of {stonewall_s} s instead of {VALID_STONEWALL_S} s: IO500 calls the run INVALID")
    work = _Work(configuration, ranks, stonewall_s, ranks_per_node or ranks)
    documents = work.phases()
    measured = tuple(str(phase["name"]) for phase in documents if _runs(configuration, str(phase["name"])))
    # Keep unmeasured phases only if they create files that a measured phase uses.
    needed = [phase for phase in documents if phase["name"] in measured or _serves(phase, documents, measured)]
    if not measured:
        raise BadInputError("every phase is disabled", where=str(configuration.path), remedy="Give run = TRUE to some.")
    for phase in needed:
        if phase["name"] not in measured:
            command.note(f"{phase['name']} is run because later phases need it, and not reported")
    directory = place_of("io500", Path(configuration.text("global", "datadir", "./datafiles")))
    plan = plan_of("io500", ranks, seed, needed)
    budget_s = float(stonewall_s * (len(needed) + 1))
    return Translation(
        "io500", plan, directory, measured, notes=tuple(command.notes), fit=fit_amounts, budget_s=budget_s
    )


def _serves(phase: Mapping[str, object], phases: Sequence[Mapping[str, object]], measured: Sequence[str]) -> bool:
    """Return whether the phase creates files that a measured phase uses."""
    makes = phase["operation"] in ("write", "file-create")
    return makes and any(one["name"] in measured and one["files"] == phase["files"] for one in phases)


@dataclass(frozen=True)
class _Work:
    """The phases of a configuration, as keys of a plan."""

    configuration: Configuration
    ranks: int
    stonewall_s: int
    node: int

    def phases(self) -> list[dict[str, object]]:
        """Return the phases in IO500's order."""
        easy, hard = self._easy(), self._hard()
        easy_files, hard_files = self._files("mdtest-easy"), self._files("mdtest-hard")
        # Tasks read data of the next node (IOR -C -Q 1), and look up and remove files of the next task (mdtest -N 1).
        shift = {"rank_shift": 1} if self.ranks > 1 else {}
        read_shift = {"rank_shift": self.node} if self.node < self.ranks else {}
        stop = {"stop": {"rule": "wear-out", "seconds": self.stonewall_s}}
        written = {"sync": "fsync", **stop}
        phases: list[dict[str, object]] = [
            {**easy, **self._direct("ior-easy", "write"), "name": "ior-easy-write", "operation": "write", **written},
            {**easy_files, "name": "mdtest-easy-write", "operation": "file-create", **stop},
            {**hard, **self._direct("ior-hard", "write"), "name": "ior-hard-write", "operation": "write", **written},
            {**hard_files, "name": "mdtest-hard-write", "operation": "file-create", **stop},
            {
                **hard_files,
                "name": "find",
                "operation": "find",
                "paths": "relative",
                "find_name": "01",
                "find_bytes": _SMALL_FILE_BYTES,
                "find_all": True,
            },
            self._read(easy, "ior-easy", read_shift),
            {**easy_files, "name": "mdtest-easy-stat", "operation": "file-stat", **shift},
            self._read(hard, "ior-hard", read_shift),
            {**hard_files, "name": "mdtest-hard-stat", "operation": "file-stat", **shift},
            {**easy_files, "name": "mdtest-easy-delete", "operation": "file-remove", **shift},
            {**hard_files, "name": "mdtest-hard-read", "operation": "file-read", **shift},
            {**hard_files, "name": "mdtest-hard-delete", "operation": "file-remove", **shift},
        ]
        if any(section == "ior-rnd4k-easy-read" for section, _ in self.configuration.values):
            phases.append(self._random())
        return phases

    def _easy(self) -> dict[str, object]:
        configuration = self.configuration
        transfer = configuration.size("ior-easy", "transfersize", "2m")
        block = configuration.size("ior-easy", "blocksize", "9920000m")
        if block % transfer:
            remedy = "Give a multiple of transferSize."
            raise configuration.fault("ior-easy", "blocksize", f"{block} is not a multiple of {transfer}", remedy)
        each = configuration.flag("ior-easy", "fileperproc", default=True)
        apart = configuration.flag("ior-easy", "uniquedir", default=False)
        return {
            "kind": "transfer",
            "files": "ior-easy",
            "layout": "file-per-process" if each else "shared-file",
            "access": "segmented",
            "transfer_bytes": transfer,
            "block_bytes": block,
            "segments": 1,
            # IOR ignores it for a shared file.
            **({"own_directory": True} if apart and each else {}),
        }

    def _hard(self) -> dict[str, object]:
        return {
            "kind": "transfer",
            "files": "ior-hard",
            "layout": "shared-file",
            "access": "strided",
            "transfer_bytes": _HARD_BYTES,
            "block_bytes": _HARD_BYTES,
            "segments": self.configuration.whole("ior-hard", "segmentcount", 10_000_000),
        }

    def _files(self, test: str) -> dict[str, object]:
        hard = test == "mdtest-hard"
        for section in (test, *(f"{test}-{part}" for part in ("write", "stat", "read", "delete"))):
            place = _asks_direct(self.configuration, (section, test))
            if place and _runs(self.configuration, section):
                remedy = "Leave it out: files this small are read and written through the page cache."
                raise self.configuration.fault(*place, "O_DIRECT is not supported for files", remedy)
        return {
            "kind": "metadata",
            "files": test,
            "directory": "shared" if hard else "unique",
            "items": self.configuration.whole(test, "n", 1_000_000),
            "file_bytes": _SMALL_FILE_BYTES if hard else 0,
            "paths": "mdtest",
        }

    def _direct(self, test: str, part: str) -> dict[str, object]:
        place = _asks_direct(self.configuration, (f"{test}-{part}", test))
        transfer = _HARD_BYTES if test == "ior-hard" else self.configuration.size(test, "transfersize", "2m")
        if place and transfer % 512 and _runs(self.configuration, f"{test}-{part}"):
            remedy = "Leave it out: O_DIRECT needs multiples of 512 bytes."
            raise self.configuration.fault(*place, f"O_DIRECT is not possible with calls of {transfer} bytes", remedy)
        return {"direct": place is not None and not transfer % 512, **self._cache()}

    def _cache(self) -> dict[str, object]:
        """Return the key that drops the caches before a data phase, if drop-caches is set."""
        return {"cache": "drop-system"} if self.configuration.flag("global", "drop-caches", default=False) else {}

    def _read(self, geometry: Mapping[str, object], test: str, shift: Mapping[str, object]) -> dict[str, object]:
        """Return the phase that reads and verifies what a test wrote."""
        read = {"name": f"{test}-read", "operation": "read", "verify": True}
        return {**geometry, **self._direct(test, "read"), **read, **shift}

    def _random(self) -> dict[str, object]:
        """Return the reads of 4 KiB in random order from the files of ior-easy, for the seconds of the stonewall."""
        name = "ior-rnd4k-easy-read"
        key = "direct" if self.configuration.text(name, "direct") else "posix.odirect"
        place = _asks_direct(self.configuration, (name, "ior-easy"))
        direct = self.configuration.flag(name, key, default=place is not None)
        easy = self._easy()
        size = int(str(easy["block_bytes"])) // _RANDOM_BYTES * _RANDOM_BYTES
        if not size or int(str(easy["transfer_bytes"])) % _RANDOM_BYTES:
            problem = f"needs transfers of ior-easy that are multiples of {_RANDOM_BYTES} bytes"
            raise self.configuration.fault(name, "run", problem, "Leave it out, or choose another transferSize.")
        return {
            **easy,
            "access": "random",
            "transfer_bytes": _RANDOM_BYTES,
            "block_bytes": size,
            "name": name,
            "operation": "read",
            "direct": direct,
            **self._cache(),
            "stop": {"rule": "stonewall", "seconds": self.stonewall_s},
        }


def fit_amounts(plan: Plan, most_bytes: int, most_items: int) -> Plan:
    """Return the plan with amounts reduced to the given bytes and items.

    IO500's amounts are larger than a stonewall allows to write. Each rank keeps at least one transfer and one file of
    each kind.
    """
    if plan.bytes_on_target() <= most_bytes and plan.inodes_on_target() <= most_items:
        return plan
    least = _shrunk(plan, 0.0, 0.0)
    bytes_share = (most_bytes - least.bytes_on_target()) / max(1, plan.bytes_on_target())
    items_share = (most_items - least.inodes_on_target()) / max(1, plan.inodes_on_target())
    return _shrunk(plan, min(1.0, max(0.0, bytes_share)), min(1.0, max(0.0, items_share)))


def _shrunk(plan: Plan, bytes_share: float, items_share: float) -> Plan:
    phases: list[Phase] = []
    written: dict[str, int] = {}
    for phase in plan.phases:
        if isinstance(phase, MetadataPhase):
            share = min(items_share, bytes_share) if phase.file_bytes else items_share
            phases.append(replace(phase, items=max(1, int(phase.items * share))))
        elif isinstance(phase, TransferPhase):
            # Later phases on the same files process the written amount.
            share_bytes = int(phase.segments * phase.block_bytes * bytes_share)
            fitted = _of_bytes(phase, written.get(phase.files, share_bytes))
            written.setdefault(phase.files, fitted.segments * fitted.block_bytes)
            phases.append(fitted)
        else:
            phases.append(phase)
    return replace(plan, phases=tuple(phases))


def _of_bytes(phase: TransferPhase, most: int) -> TransferPhase:
    """Return the phase with at most ``most`` bytes per rank, but at least one transfer."""
    if phase.segments > 1:
        return replace(phase, segments=max(1, min(phase.segments, most // phase.block_bytes)))
    transfers = max(1, min(phase.block_bytes, most) // phase.transfer_bytes)
    return replace(phase, block_bytes=transfers * phase.transfer_bytes)


TOOL = Tool({}, translate, help_text)
