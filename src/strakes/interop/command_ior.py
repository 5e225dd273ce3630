"""Translate command lines of IOR into plans."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from strakes.base.errors import did_you_mean
from strakes.base.files import read_regular
from strakes.base.machine import memory_sizes
from strakes.base.units import format_bytes
from strakes.interop import command_options as options

OPTIONS = options.options_of("ior")
_DIRECTIVES: dict[str, str] = options.table_of("ior")["directives"]
_BACKENDS = {"POSIX": "posix", "MMAP": "mmap", "MPIIO": "mpiio", "HDF5": "hdf5", "NCMPI": "pnetcdf", "CEPHFS": "cephfs"}
_WEAR_OUT = "stonewallingwearout"
_LIBRARIES = ("MPIIO", "HDF5", "NCMPI")
_LAYOUT_DIRECTIVES = ("lustre", "gpfs", "beegfs")
_MOST_SCRIPT_BYTES = 1 << 20
# IOR's option -M may occupy this percentage of the available memory. The engine refuses more than 80 %.
_OCCUPIED_PERCENT = 75
_MOST_SHOWN = 3  # Maximum number of tests that an error message lists. The message grows in proportion.


def translate(
    words: Sequence[str], asked_ranks: int | None, seed: int, ranks_per_node: int | None = None
) -> options.Translation:
    """Return the plan for an IOR command line. Raises BadInputError that names the invalid option.

    >>> translation = translate(["-F", "-t", "1m", "-b", "16m", "-o", "/tmp/file"], 4, seed=1)
    >>> translation.measured, translation.plan.ranks, translation.plan.bytes_on_target() // 2**20
    (('write', 'read'), 4, 64)
    """
    command = read(words)
    ranks = options.ranks_of("ior", asked_ranks, command.whole("N", 0), command.note)
    node = ranks_per_node or ranks
    common = _common(command)
    operations = [flag for flag in "wrWR" if command.flag(flag)] or ["w", "r"]
    if "w" not in operations:
        command.note("without -w there is nothing to read, so strakes first writes the files, without reporting this")
    # As in IOR, fill the buffer again before each call only if the data are verified.
    pattern = "stamped" if {"W", "R"} & {*operations} else "once"
    sync = "fsync-each" if command.flag("Y") else "fsync" if command.flag("e") else "close"
    written = {"sync": sync, "preallocate": command.flag("p"), "pattern": pattern}
    phases = [{**common, "name": "write", "operation": "write", **written}]
    if "W" in operations:
        shift = _shift(command, ranks, node, further=1, seed=seed)
        phases.append({**common, "name": "write-check", "operation": "read", "verify": True, **shift})
    if {"r", "R"} & {*operations}:
        shift = _shift(command, ranks, node, further=0, seed=seed)
        phases.append({**common, "name": "read", "operation": "read", "verify": "R" in operations, **shift})
    measured = ["write"] * ("w" in operations) + ["read"] * (phases[-1]["name"] == "read")
    held = {"memory_hog_bytes": _memory(command)} if command.flag("M") else {}
    plan = options.plan_of("ior", ranks, seed, phases, **held)
    # With -D, a time limit ends the test and the block size is only an upper bound.
    fit = options.fit_amounts if "stop" in common else None
    directories, moving, keep = _directories(command), "-Z" if command.flag("Z") else "-C", command.flag("k")
    return options.translated(command, plan, directories, measured or ["write-check"], fit, shift=moving, keep=keep)


def read(words: Sequence[str]) -> options.GivenCommand:
    """Parse the options of IOR. Raises BadInputError for an unknown or unsupported option."""
    command = options.given("ior", OPTIONS, words, _expanded)
    if command.counts.get("C", 0) > 1:
        command.note("-C twice: the same as once")
    return command


def _common(command: options.GivenCommand) -> dict[str, object]:
    transfer, block = command.size("t", "256k"), command.size("b", "1m")
    if transfer < 1 or block % transfer:
        why, remedy = f"{block} % {transfer}", f"For example: -b {max(1, block // max(1, transfer)) * max(1, transfer)}"
        what = "the block size (-b) must be a multiple of the transfer size (-t)"
        raise options.wrong("ior", what, why=why, remedy=remedy)
    api = command.text("a", "POSIX").strip().split(" ")[0].upper()
    if api not in _BACKENDS:
        raise options.wrong("ior", f"-a {api}: no such interface", remedy=f"One of: {', '.join(_BACKENDS)}.")
    direct = any(command.flag(name) for name in ("B", "posix.odirect"))
    if direct and transfer % 512:
        why = f"-t {transfer}"
        raise options.wrong("ior", "O_DIRECT needs a transfer size (-t) that is a multiple of 512", why=why)
    per_process = command.flag("F")
    segments = command.whole("s", 1, least=1)
    access = "random" if command.flag("z") else ("segmented" if per_process else "strided")
    if access == "random":
        if command.counts["z"] > 1:
            command.note("-z twice: strakes uses every offset exactly once, in random order")
        if segments > 1 and not per_process:
            command.note("-z with -s in a shared file: the data of a task is one region, not one block in each segment")
    common: dict[str, object] = {
        "kind": "transfer",
        "backend": _BACKENDS[api],
        "layout": "file-per-process" if per_process else "shared-file",
        "access": access,
        "transfer_bytes": transfer,
        "block_bytes": block,
        "segments": segments,
        "direct": direct,
        "own_directory": command.flag("u") and per_process,
        "collective": command.flag("c") or command.flag("collective"),
    }
    if seconds := command.whole("D", 0):
        wears_out = command.text(f"{options.DIRECTIVE}{_WEAR_OUT}", "0").strip() not in ("0", "")
        if wears_out and api in _LIBRARIES:
            command.note(f"-O {_WEAR_OUT} with -a {api} has no effect: tasks end at the deadline")
        rule = "wear-out" if wears_out and api not in _LIBRARIES else "stonewall"
        common["stop"] = {"rule": rule, "seconds": seconds}
    return common


def _memory(command: options.GivenCommand) -> int:
    """Return the bytes of memory to occupy (option -M), given as a size or a percentage of the node's memory.

    If too little memory is available, a percentage is reduced and a size raises BadInputError.
    """
    text = command.text("M", "").strip()
    share = re.fullmatch(r"(\d{1,2}|100) ?%", text)
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    wanted = int(share[1]) * total // 100 if share else command.size("M", "0")
    available = memory_sizes().get("MemAvailable", total)
    most = available // 100 * _OCCUPIED_PERCENT
    if wanted <= most:
        return wanted
    why = f"{format_bytes(available)} are available, and -M may use {_OCCUPIED_PERCENT} % of it"
    if share is None:
        remedy = "Give -M (memoryPerNode) a smaller size, or a share of the memory, such as -M 50%."
        raise options.wrong("ior", f"-M {text}: the memory to occupy is not available", why=why, remedy=remedy)
    command.note(f"-M {text}: {format_bytes(most)} instead of {format_bytes(wanted)}, because {why}")
    return most


def _shift(command: options.GivenCommand, ranks: int, node: int, *, further: int, seed: int) -> dict[str, object]:
    """Return the plan's key rank_shift: the distance in ranks between the writer and the reader of the same data.

    With -C, it spans as many nodes as -Q says, and ``further`` nodes for the check by -W. With -Z, it is random.
    """
    if command.flag("Z") and ranks > 1:
        twice = " twice" if command.counts["Z"] > 1 else ""
        command.note(f"-Z{twice}: one random distance between writer and reader for all tasks, not one for each")
        drawn = seed if command.text("X", "0").startswith("-") else seed + command.whole("X", 0)
        return {"rank_shift": 1 + drawn % (ranks - 1)}
    return {"rank_shift": (command.whole("Q", 1) + further) * node % ranks if command.flag("C") else 0}


def _directories(command: options.GivenCommand) -> list[Path]:
    paths = command.paths("o", "testFile")
    if len(paths) > 1 and not command.flag("F"):
        remedy = "Give -F (one file for each task), or measure one file at a time."
        raise options.wrong("ior", "-o names several files, but without -F all tasks share one file", remedy=remedy)
    places = [options.place_of("ior", path.parent) for path in paths]
    different = list(dict.fromkeys(places))
    return different if len(different) == 1 else places


def _expanded(name: str, value: str) -> Iterator[tuple[str, str]]:
    if name not in ("O", "f"):
        yield name, value
        return
    for directive in (_script(Path(value)) if name == "f" else value).split(","):
        key, equals, text = directive.partition("=")
        plain = key.strip().lower()
        if not equals:
            raise options.wrong("ior", f"-O {directive}: not KEY=VALUE")
        if f"{options.DIRECTIVE}{plain}" in OPTIONS:
            yield f"{options.DIRECTIVE}{plain}", text
        elif plain not in _DIRECTIVES:
            remedy = did_you_mean(plain, _DIRECTIVES, cutoff=options.NEAR)
            if plain.startswith(_LAYOUT_DIRECTIVES):
                remedy = "Set the layout of the directory beforehand, such as with lfs setstripe."
            raise options.wrong("ior", f"unknown directive -O {key}", remedy=remedy)
        elif option := _DIRECTIVES[plain]:
            count = 1 if OPTIONS[option].takes else {"": 0, "0": 0, "2": 2}.get(text.strip(), 1)
            yield from [(option, text)] * count


def _script(path: Path) -> str:
    text = read_regular(path, _MOST_SCRIPT_BYTES, "the script of IOR cannot be read").decode(errors="replace")
    body = re.search(r"(?ims)^[ \t]*ior start[ \t\r]*$(.*?)(?:^[ \t]*ior stop[ \t\r]*$|\Z)", text)
    if body is None:
        raise options.wrong("ior", "-f: this is not a script of IOR", why=f"{path} has no line IOR START")
    tests = [""]
    for line in re.sub(r"#.*", "", body[1]).splitlines():
        if line.strip().lower() == "run":
            tests.append(tests[-1])
        elif line.strip():
            tests[-1] += "," + "=".join(map(str.strip, line.split("=")))
    tests = tests[:-1] or tests
    if len(tests) > 1:
        shown = "; ".join(f"strakes run ior -O {shlex.quote(test[1:])}" for test in tests[:_MOST_SHOWN])
        remedy = f"Run each test: {shown}{'; ...' if len(tests) > _MOST_SHOWN else ''}"
        raise options.wrong(
            "ior", f"-f {path}: the script has {len(tests)} tests", why="a run has one test", remedy=remedy
        )
    return tests[0][1:]


TOOL = options.Tool(OPTIONS, translate, partial(options.help_text, "ior", OPTIONS))
