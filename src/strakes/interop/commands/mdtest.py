"""Command lines of mdtest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from strakes.interop.commands.io500 import fit_amounts
from strakes.interop.commands.words import (
    ForeignOption,
    GivenCommand,
    Translation,
    check_shifts,
    given,
    noted,
    place_of,
    plan_of,
    quiet,
    ranks_of,
    refused,
    wrong,
)
from strakes.units import counted

_REPEATED = (
    "strakes repeats until the intervals are narrow enough or --budget is spent (put --precision and "
    "--budget before the word mdtest)"
)
_UNVERIFIED = (
    "strakes does not verify data in this phase, only in transfers and pools of small files; the rate is measured"
)
_ONE_TEAM = "Run strakes once for each number of ranks: strakes run -n RANKS mdtest ..."
OPTIONS: dict[str, ForeignOption] = {
    "n": ForeignOption("items of each task", takes=True),
    "I": ForeignOption("items of each directory of the tree", takes=True),
    "b": ForeignOption("branching factor of the tree", takes=True),
    "z": ForeignOption("depth of the tree", takes=True),
    "L": ForeignOption("items in the leaves only"),
    "u": ForeignOption("a tree for each task"),
    "d": ForeignOption("the directory to test in, or several, A@B@C, which tasks take in turn", takes=True),
    "F": ForeignOption("files only"),
    "D": ForeignOption("directories only"),
    "C": ForeignOption("create"),
    "T": ForeignOption("stat"),
    "E": ForeignOption("read"),
    "r": ForeignOption("remove"),
    "U": ForeignOption("rename directories"),
    "w": ForeignOption("bytes written to each file", takes=True),
    "e": ForeignOption("bytes read of each file", takes=True),
    "N": ForeignOption("how many tasks away: stat N, read 2N, remove 3N", takes=True),
    "k": ForeignOption("create with mknod"),
    "y": ForeignOption("fsync of each file after it is written"),
    "W": ForeignOption("seconds after which no task begins another item", takes=True),
    "a": ForeignOption("interface: POSIX", takes=True),
    "i": noted("iterations", _REPEATED, takes=True),
    "x": noted("stonewall status file", "not written: one command runs all phases on the files it created", takes=True),
    "p": noted("seconds before an iteration", "strakes does not wait between repetitions", takes=True),
    "t": noted("time the creation of the trees", "strakes times only the operations"),
    "saveRankPerformanceDetails": noted("details per rank", "every sample is in the store: strakes export", takes=True),
    "savePerOpDataCSV": noted(
        "details per call", "strakes keeps a histogram of latencies; see strakes export", takes=True
    ),
    "v": quiet("more output"),
    "V": quiet("how much output", takes=True),
    "P": quiet("print rates and times"),
    "Z": quiet("print times"),
    "G": quiet("offset of the data", takes=True),
    "print-all-procs": quiet("all processes print"),
    "showRankStatistics": quiet("statistics per rank"),
    "warningAsErrors": quiet("warnings are errors"),
    "B": refused("no barriers", "Phases begin together. Leave it out.", takes=True),
    "c": refused("task 0 creates everything", "The nearest equivalent is strakes run -n 1 mdtest."),
    "R": ForeignOption("stat in random order"),
    "random-seed": quiet("seed of -R", takes=True),
    "S": refused("one shared file", "The nearest equivalent is strakes run ior without -F."),
    "X": noted("verify what is read", _UNVERIFIED),
    "verify-read": noted("verify what is read", _UNVERIFIED),
    "verify-write": refused("verify what was written", "The nearest equivalent is strakes run ior -W."),
    "Y": refused("sync after every phase", "Leave it out."),
    "f": refused("smallest number of tasks", _ONE_TEAM, takes=True),
    "l": refused("largest number of tasks", _ONE_TEAM, takes=True),
    "s": refused("stride of tasks", _ONE_TEAM, takes=True),
    "g": refused("default layout of the directories", "Set the layout of the directory beforehand: lfs setstripe -d."),
    "dataPacketType": refused("kind of data", "Leave it out.", takes=True),
    "run-cmd-before-phase": refused("a command before each phase", "Leave it out.", takes=True),
    "run-cmd-after-phase": refused("a command after each phase", "Leave it out.", takes=True),
    "posix.odirect": refused("O_DIRECT", "The nearest equivalent is strakes run ior -F --posix.odirect."),
}
# As the plan's schema: branch ^ depth.
_MOST_DIRECTORIES = 65536


def translate(words: Sequence[str], asked_ranks: int | None, seed: int) -> Translation:
    """Translate an mdtest command line into a plan. Raises BadInputError that names the option at fault.

    >>> translation = translate(["-d", "/tmp", "-n", "100", "-F", "-u"], 2, seed=1)
    >>> translation.measured
    ('file-creation', 'file-stat', 'file-read', 'file-removal')
    """
    command = read(words)
    if command.flag("F") and command.flag("D"):
        remedy = "Give one of them, or neither for both."
        raise wrong("mdtest", "-F and -D together leave nothing to do", remedy=remedy)
    if command.text("a", "POSIX").upper() != "POSIX":
        raise wrong("mdtest", f"-a {command.text('a', '')}: no such interface", remedy="One of: POSIX.")
    ranks = ranks_of("mdtest", asked_ranks, 0, command)
    common, items = _common(command)
    wanted = [flag for flag in "CTErU" if command.flag(flag)] or list("CTErU")
    phases: list[dict[str, object]] = []
    measured: list[str] = []
    for kind in ("directory", "file"):
        if (kind == "directory" and command.flag("F")) or (kind == "file" and command.flag("D")):
            continue
        for flag, name, phase in _phases(command, kind, ranks, items):
            # Nothing can be looked at or removed that was not created before.
            if flag in wanted or flag == "C":
                phases.append({**common, "name": name, "files": "items" if kind == "file" else "directories", **phase})
            if flag in wanted:
                measured.append(name)
    if "C" not in wanted:
        command.note("without -C there would be nothing to work on, so strakes creates first without reporting it")
    if not measured:
        remedy = "mdtest reads files, not directories: leave out -D or -E."
        raise wrong("mdtest", "this command line measures nothing", remedy=remedy)
    directory, *beside = _directories(command)
    check_shifts("mdtest", "-N", phases, ranks, (directory, *beside))
    # With -W, -n is only more than can be done in that time.
    fit = fit_amounts if "stop" in common else None
    return Translation(
        "mdtest",
        plan_of("mdtest", ranks, seed, phases),
        directory,
        tuple(measured),
        notes=tuple(command.notes),
        fit=fit,
        beside=tuple(beside),
    )


def read(words: Sequence[str]) -> GivenCommand:
    """Read the options. Raises BadInputError for one that is unknown or not supported."""
    return given("mdtest", OPTIONS, words)


def _phases(command: GivenCommand, kind: str, ranks: int, items: int) -> list[tuple[str, str, dict[str, object]]]:
    """Return the phases of one kind of item: the option that asks for each, its name, and its keys in a plan."""
    stride = command.whole("N", 0)

    def shift(times: int) -> dict[str, object]:
        distance = times * stride % ranks
        return {"rank_shift": distance} if distance else {}

    order = {"order": "random"} if command.flag("R") else {}
    if kind == "directory":
        phases: list[tuple[str, str, dict[str, object]]] = [
            ("C", "directory-creation", {"operation": "dir-create"}),
            ("T", "directory-stat", {"operation": "dir-stat", **shift(1), **order}),
            ("U", "directory-rename", {"operation": "dir-rename"}),
            ("r", "directory-removal", {"operation": "dir-remove", **shift(3)}),
        ]
        # mdtest gives each directory the name of the next one.
        return [phase for phase in phases if phase[0] != "U" or items > 1]
    written, read = command.size("w", "0"), command.size("e", "0")
    size = {"file_bytes": written} if written else {}
    # As mdtest opens files, to read them, too.
    opened = {"open_mode": "read-write"}
    reading = "file-read" if read else "file-open-close"
    if read and read != written:
        why = f"-w {written}, -e {read}"
        remedy = f"Give -e {written}."
        raise wrong("mdtest", "-e must equal -w, or be 0", why=why, remedy=remedy)
    if not read and (command.flag("E") or not any(command.flag(flag) for flag in "CTrU")):
        command.note("without -e, reading is opening and closing, as in mdtest")
    how = ({"create_with": "mknod"} if command.flag("k") else opened) | ({"fsync": True} if command.flag("y") else {})
    return [
        ("C", "file-creation", {"operation": "file-create", **size, **how}),
        ("T", "file-stat", {"operation": "file-stat", **size, **shift(1), **order}),
        ("E", "file-read", {"operation": reading, **size, **opened, **shift(2)}),
        ("r", "file-removal", {"operation": "file-remove", **size, **shift(3)}),
    ]


def _common(command: GivenCommand) -> tuple[dict[str, object], int]:
    depth, branch = command.whole("z", 0), command.whole("b", 1, least=1)
    directories = sum(branch**level for level in range(min(depth, 17) + 1))
    leaves = branch ** min(depth, 17)
    if depth > 16 or directories > _MOST_DIRECTORIES:
        why = f"more than {_MOST_DIRECTORIES} directories"
        raise wrong("mdtest", f"-z {depth} -b {branch}: the tree is too large", why=why)
    items = _items(command, leaves if command.flag("L") else directories)
    common: dict[str, object] = {
        "kind": "metadata",
        # By full paths, which are walked in every call; plans of our own measure without that.
        "paths": "mdtest",
        "directory": "unique" if command.flag("u") else "shared",
        "items": items,
        "depth": depth,
        "branch": branch,
    }
    if depth and not command.flag("L"):
        command.note(
            "items are spread over the leaves of the tree (mdtest puts some into its inner directories, but for -L)"
        )
    if seconds := command.whole("W", 0):
        common["stop"] = {"rule": "wear-out", "seconds": seconds}
    return common, items


def _items(command: GivenCommand, directories: int) -> int:
    """Return the items of each task; like mdtest, the same number in each directory."""
    wanted, each_directory = command.whole("n", 0), command.whole("I", 0)
    if wanted and each_directory:
        raise wrong("mdtest", "-n and -I together are not supported", remedy="Give -n, or -I with -z and -b.")
    items = each_directory * directories if each_directory else wanted // directories * directories
    if items < 1:
        why = (
            f"{counted(wanted, 'item')} in {counted(directories, 'directory', 'directories')}"
            if wanted
            else "neither -n nor -I is given"
        )
        raise wrong("mdtest", "there is no item to work on", why=why, remedy="Give -n ITEMS or -I ITEMS.")
    if wanted and items != wanted:
        command.note(f"-n {wanted}: {items} items, the same number in each directory, as mdtest does")
    return items


def _directories(command: GivenCommand) -> list[Path]:
    paths = command.paths("d", ".")
    # mdtest makes its directory, but none above it. The one above may stand for a directory, but not for two.
    places = [place_of("mdtest", path if path.exists() else path.absolute().parent) for path in paths]
    return [
        place_of("mdtest", path) if places.count(place) > 1 else place
        for path, place in zip(paths, places, strict=True)
    ]
