"""Parse the command lines of other tools with tables of their options."""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from getopt import GetoptError, getopt
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from strakes.base.errors import BadInputError, nearest_word
from strakes.base.units import parse_bytes
from strakes.model.phases import MetadataPhase, TransferPhase
from strakes.model.plan import Phase, Plan
from strakes.model.plan_read import plan_from_json
from strakes.studies.plan_run import Fit

Fate = Literal["used", "quiet", "noted", "refused"]
# Minimum similarity of a name to the suggested name. ior-rnd and ior-hard are different phases, but 80 % similar.
NEAR = 0.85
DIRECTIVE = "directive."  # Prefix of IOR's script directives in the table of options.
_ORDER = (
    "Options of strakes, such as -n 4 and --budget 60s, go before the word {tool}. For those of {tool}, see: "
    "strakes run {tool} --help"
)
_LAUNCHED = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS")


@dataclass(frozen=True)
class ForeignOption:
    """An option of another tool. ``words``: description in the help. ``takes``: whether the option takes a value.

    ``fate``: used, quiet (ignored), noted (ignored with a note) or refused. ``says``: the note, or the remedy.
    """

    words: str
    takes: bool = False
    fate: Fate = "used"
    says: str = ""


@cache
def table_of(tool: str) -> dict[str, Any]:
    """Return the table of a tool's command-line options, or of the keys of its configuration file."""
    return tomllib.loads(Path(__file__).with_name("tables").joinpath(f"{tool}.toml").read_text(encoding="utf-8"))


def options_of(tool: str) -> dict[str, ForeignOption]:
    """Return the command-line options of a tool by name."""
    return {name: ForeignOption(**entry) for name, entry in table_of(tool)["options"].items()}


def wrong(tool: str, what: str, why: str = "", remedy: str = "") -> BadInputError:
    """Return an error about the command line of a tool."""
    return BadInputError(what, where=f"strakes run {tool}", why=why, remedy=remedy)


@dataclass(frozen=True)
class Translation:
    """A plan that does what another tool's command does. Ranks alternate between ``directory`` and ``beside``.

    ``measured``: phases that the tool would report. ``notes``: how strakes differs from the tool. ``fit``: function
    that reduces the plan to the capacity of the file system. ``budget_s``: duration of one run, if known.
    """

    plan: Plan
    directory: Path
    measured: tuple[str, ...]
    keep: bool = False
    notes: tuple[str, ...] = ()
    fit: Fit | None = None
    budget_s: float | None = None
    beside: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Tool:
    """A tool whose command lines strakes can run. ``translate``: function from a command line to its plan."""

    options: Mapping[str, ForeignOption]
    translate: Callable[..., Translation]
    help: Callable[[], str]


def tool_of(name: str) -> Tool:
    """Return the tool named ior, mdtest or io500. Only its module is imported."""
    tool = import_module(f"strakes.interop.command_{name}").TOOL
    assert isinstance(tool, Tool)
    return tool


@dataclass
class GivenCommand:
    """A parsed command line: the last value and the number of occurrences of each option, and notes for the user."""

    tool: str
    values: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def paths(self, name: str, default: str) -> tuple[Path, ...]:
        """Return the paths in an option, which are separated by @. Raises BadInputError for an empty path."""
        texts = self.text(name, default).split("@")
        if not all(texts):
            raise wrong(self.tool, f"{shown(name)} is empty", remedy=f"Give a name: {shown(name)} {default}")
        return tuple(map(Path, texts))

    def flag(self, name: str) -> bool:
        """Return whether the option was given."""
        return name in self.counts

    def text(self, name: str, default: str) -> str:
        """Return the value of an option as typed, or the default."""
        return self.values.get(name, default)

    def whole(self, name: str, default: int, least: int = 0) -> int:
        """Return the value of an option as a whole number. Raises BadInputError that names the option."""
        text = self.values.get(name, str(default))
        if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) < least:
            raise wrong(self.tool, f"{shown(name)} {text}: not a whole number of at least {least}")
        return int(text)

    def size(self, name: str, default: str) -> int:
        """Return the value of an option, such as 4k, 2m or 1g, in bytes.

        Raises BadInputError that names the option.
        """
        text = self.values.get(name, default)
        try:
            return bytes_of_ior(text)
        except BadInputError as error:
            raise wrong(self.tool, f"{shown(name)} {text}: {error.what}", remedy=error.remedy) from error

    def note(self, text: str) -> None:
        """Add a note on a difference between strakes and the original tool, unless it is already there."""
        if text not in self.notes:
            self.notes.append(text)


def given(
    tool: str,
    options: Mapping[str, ForeignOption],
    words: Sequence[str],
    expand: Callable[[str, str], Iterable[tuple[str, str]]] = lambda *pair: [pair],
) -> GivenCommand:
    """Parse a command line with the tool's table. Raises BadInputError for an unknown or unsupported option.

    ``expand``: function from an (option, value) pair to the pairs that replace it, such as those in a script.

    >>> table = {"t": ForeignOption("transfer size", takes=True), "F": ForeignOption("file per process")}
    >>> command = given("ior", table, ["-F", "-t=1m"])
    >>> command.flag("F"), command.size("t", "256k")
    (True, 1048576)
    """
    command = GivenCommand(tool)
    for name, value in (pair for found in _pairs(tool, options, words) for pair in expand(*found)):
        option = options[name]
        if option.fate == "refused":
            raise wrong(tool, f"{tool} {shown(name)} ({option.words}) is not supported", remedy=option.says)
        if option.fate == "noted":
            command.note(f"{shown(name)}{f' {value}' if option.takes else ''}: {option.says}")
        command.counts[name] = command.counts.get(name, 0) + 1
        command.values[name] = value
    return command


def _pairs(tool: str, options: Mapping[str, ForeignOption], words: Sequence[str]) -> Iterator[tuple[str, str]]:
    # Reject abbreviated names, which getopt() accepts.
    names = (word[2:].partition("=")[0] for word in words if word.startswith("--"))
    if strange := next((name for name in names if name and name not in options), ""):
        raise unknown(tool, options, f"--{strange}")
    short = "".join(f"{name}:" if option.takes else name for name, option in options.items() if len(name) == 1)
    long = [f"{name}=" if option.takes else name for name, option in options.items() if len(name) > 1]
    try:
        found, rest = getopt(list(words), short, long)
    except GetoptError as error:
        option = options.get(error.opt)
        if option is None:
            raise unknown(tool, options, f"-{error.opt}") from error
        takes = f"needs a value ({option.words})" if option.takes else "takes no value"
        raise wrong(tool, f"{shown(error.opt)} {takes}") from error
    if rest:
        raise wrong(tool, f"{rest[0]!r} is not an option of {tool}", remedy=_ORDER.format(tool=tool))
    for name, value in found:
        yield name.lstrip("-"), value if name.startswith("--") else value.removeprefix("=")


def unknown(tool: str, options: Mapping[str, ForeignOption], word: str) -> BadInputError:
    """Return the error for an unknown option. It suggests the most similar supported option."""
    name = word.lstrip("-").partition("=")[0]
    usable = [name for name, option in options.items() if option.fate != "refused"]
    other_case = name.swapcase()
    near = other_case if other_case in usable else nearest_word(name, usable, cutoff=NEAR)
    nearest = f"The nearest supported one is {shown(near)} ({options[near].words}). " if near else ""
    return wrong(tool, f"unknown option {word}", remedy=nearest + _ORDER.format(tool=tool))


def shown(name: str) -> str:
    """Return an option as it is typed.

    >>> shown("b"), shown("posix.odirect"), shown("directive.summaryfile")
    ('-b', '--posix.odirect', '-O summaryfile')
    """
    if name.startswith(DIRECTIVE):
        return f"-O {name.removeprefix(DIRECTIVE)}"
    return f"-{name}" if len(name) == 1 else f"--{name}"


def help_text(tool: str, options: Mapping[str, ForeignOption]) -> str:
    """Return the text of ``strakes run TOOL --help``: supported, ignored and refused options."""
    titles = {
        "used": "Supported",
        "noted": "Accepted, but works differently",
        "quiet": "Accepted without effect",
        "refused": "Refused",
    }
    lines = [f"strakes run [-n RANKS] [OPTION...] {tool} [{tool.upper() if tool == 'ior' else tool} OPTION...]"]
    for fate, title in titles.items():
        chosen = [
            (shown(name) + ("" if not option.takes else "=VALUE" if name.startswith(DIRECTIVE) else " VALUE"), option)
            for name, option in options.items()
            if option.fate == fate
        ]
        lines += ["", f"{title}:"] if chosen else []
        lines += [f"  {name:<26}  {option.words}{f': {option.says}' if option.says else ''}" for name, option in chosen]
    return "\n".join(lines)


def bytes_of_ior(text: str) -> int:
    """Return a size in bytes. As in IOR, k, kb and kB are all 1024 bytes. Raises BadInputError.

    >>> bytes_of_ior("4MB"), bytes_of_ior("64k"), bytes_of_ior("47008")
    (4194304, 65536, 47008)
    """
    return parse_bytes(re.sub(r"(?i)(?<=[kmgt])b$", "", text))


# Launchers of MPI programs, and their options for the number of ranks.
_LAUNCHERS = frozenset({"mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "srun", "aprun", "jsrun", "ibrun"})
_RANKS = re.compile(r"(?:^| )(?:-np?|-c|--np|--ntasks)[ =]?([0-9]+)\b")


def refuse_launcher(before: Sequence[str], words: Sequence[str], at: int) -> None:
    """Raise BadInputError if the command line ``words`` begins with a launcher, such as mpirun.

    ``before``: options of strakes. ``at``: index of the tool's name in ``words``.

    >>> refuse_launcher(["-q"], "mpirun -np 4 ior -F".split(), 3)
    Traceback (most recent call last):
    strakes.base.errors.BadInputError: strakes starts the ranks itself; where: mpirun; next: strakes run -q -n 4 ior -F
    """
    launcher = words[0].rpartition("/")[2]
    if launcher in _LAUNCHERS:
        found = _RANKS.search(" ".join(words[1:at]))
        own = () if {"-n", "--ranks"} & {*before} else ("-n", found[1] if found else "RANKS")
        remedy = shlex.join(["strakes", "run", *before, *own, words[at].rpartition("/")[2].lower(), *words[at + 1 :]])
        raise BadInputError("strakes starts the ranks itself", where=launcher, remedy=remedy)


def ranks_of(tool: str, asked: int | None, stated: int, note: Callable[[str], None]) -> int:
    """Return the number of ranks: the smaller of ``asked`` (-n) and ``stated`` (the tool's option), by default 1.

    Raises BadInputError if a launcher started strakes several times.
    """
    for name in _LAUNCHED:
        size = os.environ.get(name, "1")
        if re.fullmatch(r"[0-9]{1,18}", size) and int(size) > 1:
            raise BadInputError(
                "a launcher started strakes several times, but strakes starts the ranks itself",
                where=f"{name}={size}",
                remedy=f"Start strakes only once: strakes run -n {size} {tool} ...",
            )
    if asked is not None and stated > asked:
        note(f"fewer ranks than tasks, because strakes run -n {asked} takes precedence")
    if asked is None and not stated:
        note(f"one rank; for more, use strakes run -n RANKS {tool} ...")
    return min((number for number in (asked, stated) if number), default=1)


def place_of(tool: str, path: Path) -> Path:
    """Return the absolute path of the directory to measure in. Raises BadInputError if it does not exist."""
    place = path.absolute()
    if not place.is_dir():
        what = "this is not a directory" if place.exists() else "no such directory"
        remedy = f"Give a directory that exists, or make it: mkdir -p {shlex.quote(str(place))}"
        raise BadInputError(what, where=f"strakes run {tool}: {place}", remedy=remedy)
    return place


def translated(
    command: GivenCommand,
    plan: Plan,
    directories: Sequence[Path],
    measured: Sequence[str],
    fit: Fit | None,
    *,
    shift: str,
    keep: bool = False,
) -> Translation:
    """Return a command line's translation. ``shift``: option that makes ranks use other ranks' files, such as -C.

    Raises BadInputError if a rank would need files in the directory of another rank.
    """
    shifts = {getattr(phase, "rank_shift", 0) for phase in plan.phases}
    turns = len(directories)
    if any(distance % plan.ranks and (plan.ranks % turns or distance % turns) for distance in shifts):
        what = f"{shift} makes tasks use files of tasks in another directory"
        raise wrong(command.tool, what, remedy=f"Leave out {shift}, or give one directory.")
    first, *beside = directories
    return Translation(plan, first, tuple(measured), keep, tuple(command.notes), fit, beside=tuple(beside))


def plan_of(tool: str, ranks: int, seed: int, phases: Sequence[Mapping[str, object]], **team: int) -> Plan:
    """Return a plan of the phases. Raises BadInputError if the engine cannot run it."""
    document = {"schema": 1, "seed": seed, "team": {"ranks": ranks, **team}, "phases": list(phases)}
    try:
        return plan_from_json(document)
    except BadInputError as error:
        what, remedy = f"strakes cannot run this {tool} command line", f"See: strakes run {tool} --help"
        raise BadInputError(what, where=error.where, why=error.what, remedy=remedy) from error


def fit_amounts(plan: Plan, most_bytes: int, most_items: int) -> Plan:
    """Return a plan reduced to at most ``most_bytes`` of data and ``most_items`` files.

    A configuration of IO500 requests more work than fits, because a stonewall ends the phases. Each rank keeps at least
    one transfer, and one file of each kind.
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
        fitted: Phase = phase
        if isinstance(phase, MetadataPhase):
            share = min(items_share, bytes_share) if phase.file_bytes else items_share
            fitted = replace(phase, items=max(1, int(phase.items * share)))
        elif isinstance(phase, TransferPhase):
            # Phases on the same files must transfer the same amount of data.
            share_bytes = int(phase.segments * phase.block_bytes * bytes_share)
            fitted = _of_bytes(phase, written.get(phase.files, share_bytes))
            written.setdefault(fitted.files, fitted.segments * fitted.block_bytes)
        phases.append(fitted)
    return replace(plan, phases=tuple(phases))


def _of_bytes(phase: TransferPhase, most: int) -> TransferPhase:
    if phase.segments > 1:
        return replace(phase, segments=max(1, min(phase.segments, most // phase.block_bytes)))
    transfers = max(1, min(phase.block_bytes, most) // phase.transfer_bytes)
    return replace(phase, block_bytes=transfers * phase.transfer_bytes)
