"""Translate command lines of mdtest into plans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from strakes.base.units import counted
from strakes.interop import command_options as options

OPTIONS = options.options_of("mdtest")
# Maximum number of directories in a tree. The time to make and remove a tree grows in proportion.
_MOST_DIRECTORIES = 65536


def translate(
    words: Sequence[str], asked_ranks: int | None, seed: int, _ranks_per_node: int | None = None
) -> options.Translation:
    """Return the plan for an mdtest command line. Raises BadInputError that names the invalid option.

    >>> translation = translate(["-d", "/tmp", "-n", "100", "-F", "-u"], 2, seed=1)
    >>> translation.measured
    ('file-creation', 'file-stat', 'file-read', 'file-removal')
    """
    command = read(words)
    if command.flag("F") and command.flag("D"):
        remedy = "Give -F for files, -D for directories, or neither for both."
        raise options.wrong("mdtest", "-F and -D together leave nothing to do", remedy=remedy)
    if command.text("a", "POSIX").upper() != "POSIX":
        raise options.wrong("mdtest", f"-a {command.text('a', '')}: no such interface", remedy="One of: POSIX.")
    ranks = options.ranks_of("mdtest", asked_ranks, 0, command.note)
    common, items = _common(command)
    wanted = [flag for flag in "CTErU" if command.flag(flag)] or list("CTErU")
    # Create the items even without -C, because the other phases need them.
    chosen = [(option, phase) for option, phase in _phases(command, ranks, items) if option in [*wanted, "C"]]
    phases = [{**common, **phase} for _, phase in chosen]
    measured = tuple(str(phase["name"]) for option, phase in chosen if option in wanted)
    if "C" not in wanted:
        command.note("without -C there are no items, so strakes first creates them, without reporting this")
    if not measured:
        remedy = "mdtest reads files, not directories: leave out -D or -E."
        raise options.wrong("mdtest", "this command line measures nothing", remedy=remedy)
    plan = options.plan_of("mdtest", ranks, seed, phases)
    # With -W, a time limit ends each phase and the number of items is only an upper bound.
    fit = options.fit_amounts if "stop" in common else None
    return options.translated(command, plan, _directories(command), measured, fit, shift="-N")


def read(words: Sequence[str]) -> options.GivenCommand:
    """Parse the options of mdtest. Raises BadInputError for an unknown or unsupported option."""
    return options.given("mdtest", OPTIONS, words)


def _phases(command: options.GivenCommand, ranks: int, items: int) -> Iterator[tuple[str, dict[str, object]]]:
    written, read, stride = command.size("w", "0"), command.size("e", "0"), command.whole("N", 0)
    if read and read != written and not command.flag("D"):
        raise options.wrong(
            "mdtest", "-e must equal -w, or be 0", why=f"-w {written}, -e {read}", remedy=f"Give -e {written}."
        )
    # mdtest opens files read-write even if it only reads them.
    opened: dict[str, object] = {"open_mode": "read-write"}
    created = {"create_with": "mknod"} if command.flag("k") else opened
    own = {
        "file-creation": created | ({"fsync": True} if command.flag("y") else {}),
        "file-read": opened | ({"operation": "file-read"} if read else {}),
    }
    for name, entry in options.table_of("mdtest")["phases"].items():
        files = name.startswith("file-")
        # mdtest renames each directory to the name of the next one, so this phase needs two or more directories.
        if command.flag("D" if files else "F") or (name == "directory-rename" and items < 2):
            continue
        phase = {"name": name, "files": "items" if files else "directories", "operation": entry["operation"]}
        if distance := entry["shift"] * stride % ranks:
            phase["rank_shift"] = distance
        if command.flag("R") and name.endswith("-stat"):
            phase["order"] = "random"
        if files and written:
            phase["file_bytes"] = written
        yield entry["option"], {**phase, **own.get(name, {})}


def _common(command: options.GivenCommand) -> tuple[dict[str, object], int]:
    depth = command.whole("z", 0)
    branch = max(command.whole("b", 1, least=1 if depth else 0), 1)
    directories = sum(branch**level for level in range(min(depth, 17) + 1))
    leaves = branch ** min(depth, 17)
    if depth > 16 or directories > _MOST_DIRECTORIES:
        why = f"more than {_MOST_DIRECTORIES} directories"
        raise options.wrong("mdtest", f"-z {depth} -b {branch}: the tree is too large", why=why)
    items = _items(command, leaves if command.flag("L") else directories)
    common: dict[str, object] = {
        "kind": "metadata",
        # like mdtest, pass whole paths to the kernel
        "paths": "mdtest",
        "directory": "unique" if command.flag("u") else "shared",
        "items": items,
        "depth": depth,
        "branch": branch,
    }
    if depth and not command.flag("L"):
        command.note(
            "items are spread over the leaves of the tree (without -L, mdtest puts some into its inner directories)"
        )
    if seconds := command.whole("W", 0):
        common["stop"] = {"rule": "wear-out", "seconds": seconds}
    return common, items


def _items(command: options.GivenCommand, directories: int) -> int:
    """Return the number of items per task. As in mdtest, each directory gets the same number of items."""
    wanted, each_directory = command.whole("n", 0), command.whole("I", 0)
    if wanted and each_directory:
        raise options.wrong("mdtest", "-n and -I together are not supported", remedy="Give -n, or -I with -z and -b.")
    items = each_directory * directories if each_directory else wanted // directories * directories
    if items < 1:
        tree = counted(directories, "directory", "directories")
        why = f"{counted(wanted, 'item')} in {tree}" if wanted else "neither -n nor -I is given"
        raise options.wrong("mdtest", "no item to work on", why=why, remedy="Give -n ITEMS or -I ITEMS.")
    return items


def _directories(command: options.GivenCommand) -> list[Path]:
    paths = command.paths("d", ".")
    # mdtest creates a missing directory. strakes measures in the parent directory instead.
    places = [options.place_of("mdtest", path if path.exists() else path.absolute().parent) for path in paths]
    return [
        options.place_of("mdtest", path) if places.count(place) > 1 else place
        for path, place in zip(paths, places, strict=True)
    ]


TOOL = options.Tool(OPTIONS, translate, partial(options.help_text, "mdtest", OPTIONS))
