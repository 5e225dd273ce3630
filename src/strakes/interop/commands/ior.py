"""Command lines of IOR."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from strakes.errors import nearest_word
from strakes.interop.commands.io500 import fit_amounts
from strakes.interop.commands.words import (
    DIRECTIVE,
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

_REPEATED = (
    "strakes repeats until the intervals are narrow enough or --budget is spent (put --precision and "
    "--budget before the word ior)"
)
_IN_STORE = "every sample is in the store: strakes export"
_OWN_FILES = (
    "strakes works only on files that it makes itself. Leave this option out; -r alone reads what strakes has just "
    "written."
)
OPTIONS: dict[str, ForeignOption] = {
    "a": ForeignOption("interface: POSIX, MMAP, MPIIO, HDF5, NCMPI, CEPHFS", takes=True),
    "b": ForeignOption("contiguous bytes of each task in a segment", takes=True),
    "t": ForeignOption("bytes per call", takes=True),
    "s": ForeignOption("segments", takes=True),
    "F": ForeignOption("a file for each task"),
    "u": ForeignOption("with -F: a directory for each file"),
    "w": ForeignOption("write"),
    "r": ForeignOption("read"),
    "W": ForeignOption("read back after writing and verify"),
    "R": ForeignOption("verify while reading"),
    "e": ForeignOption("fsync at the end of the write"),
    "c": ForeignOption("collective calls"),
    "C": ForeignOption("tasks read what their neighbours wrote"),
    "Q": ForeignOption("with -C: how many nodes away", takes=True),
    "Z": ForeignOption("tasks read what other tasks, chosen at random, wrote"),
    "X": ForeignOption("seed of -Z", takes=True),
    "z": ForeignOption("calls in random order"),
    "D": ForeignOption("seconds after which no task begins another transfer", takes=True),
    "k": ForeignOption("keep the files"),
    "o": ForeignOption(
        "the test file; strakes works beside it; with -F several, A/F@B/F, which tasks take in turn", takes=True
    ),
    "N": ForeignOption("tasks", takes=True),
    "M": ForeignOption("memory to occupy on each node meanwhile, as a size", takes=True),
    "O": ForeignOption("settings, KEY=VALUE,...", takes=True),
    "p": ForeignOption("allocate the file before writing"),
    "B": ForeignOption("O_DIRECT, in older versions of IOR"),
    "posix.odirect": ForeignOption("O_DIRECT"),
    "collective": ForeignOption("the same as -c"),
    "i": noted("repetitions", _REPEATED, takes=True),
    "d": noted("seconds between repetitions", "strakes does not wait between repetitions", takes=True),
    "T": noted("time limit in minutes", "give the time to strakes as --budget, before the word ior", takes=True),
    "g": noted(
        "barriers between open, transfer and close",
        "strakes has a barrier between phases, not between open and transfer",
    ),
    "j": noted("warn of outliers", "strakes keeps outliers, and its intervals allow for them", takes=True),
    "m": quiet("new files for every repetition"),
    "v": quiet("more output"),
    "q": quiet("stop at an error"),
    "x": quiet("one attempt per transfer"),
    "H": quiet("show hints"),
    "K": quiet("keep files with errors"),
    "A": quiet("reference number", takes=True),
    "G": quiet("signature of the data", takes=True),
    "E": refused("use an existing file", _OWN_FILES),
    "f": refused(
        "script of tests",
        "Give the options of each test as a command of its own, or write a plan (examples/).",
        takes=True,
    ),
    "l": refused("kind of data", "A plan has compressible_percent and duplicate_percent (examples/).", takes=True),
    "dataPacketType": refused(
        "kind of data", "A plan has compressible_percent and duplicate_percent (examples/).", takes=True
    ),
    "U": refused("file of hints", "A plan takes hints where the engine was built with MPI-IO.", takes=True),
    "y": refused("two mounts", "Name a file in each of them: -F -o A/FILE@B/FILE."),
    "Y": refused("fsync after every write", "The nearest equivalent is -e: fsync at the end of the write."),
    "J": refused("HDF5 alignment", "Leave it out.", takes=True),
    "I": refused("a data set for each task", "The nearest equivalent is -F."),
    "n": refused("no fill in HDF5", "Leave it out."),
    "P": refused("shared file pointer", "Leave it out."),
    "S": refused("strided data type", "Leave it out; -s with a shared file is strided."),
    "V": refused("file view", "Leave it out."),
}
_BACKENDS = {"POSIX": "posix", "MMAP": "mmap", "MPIIO": "mpiio", "HDF5": "hdf5", "NCMPI": "pnetcdf", "CEPHFS": "cephfs"}
# Directives that are options by another name; those in _QUIET change nothing here.
_DIRECTIVES = {
    "api": "a",
    "blocksize": "b",
    "transfersize": "t",
    "segmentcount": "s",
    "fileperproc": "F",
    "writefile": "w",
    "readfile": "r",
    "checkwrite": "W",
    "checkread": "R",
    "fsync": "e",
    "collective": "c",
    "reordertasksconstant": "C",
    "reordertasks": "C",
    "taskpernodeoffset": "Q",
    "reordertasksrandom": "Z",
    "reordertasksrandomseed": "X",
    "randomoffset": "z",
    "deadlineforstonewalling": "D",
    "keepfile": "k",
    "testfile": "o",
    "numtasks": "N",
    "useo_direct": "B",
    "repetitions": "i",
    "intertestdelay": "d",
    "maxtimeduration": "T",
    "intratestbarriers": "g",
    "outlierthreshold": "j",
    "useexistingtestfile": "E",
    "fsyncperwrite": "Y",
    "memorypernode": "M",
    "uniquedir": "u",
}
_QUIET_DIRECTIVES = (
    "verbose",
    "refnum",
    "settimestampsignature",
    "multifile",
    "singlexferattempt",
    "keepfilewitherror",
    "summaryalways",
)
_OUTPUT_DIRECTIVES = ("summaryfile", "summaryformat", "saverankperformancedetailscsv", "saveperopdatacsv")
_STONEWALL_DIRECTIVES = ("stonewallingwearoutiterations", "mintimeduration")
_WEAR_OUT = "stonewallingwearout"
# What was written a later phase knows without it.
_STATUS_FILE = "stonewallingstatusfile"
_LIBRARIES = ("MPIIO", "HDF5", "NCMPI")


def translate(words: Sequence[str], asked_ranks: int | None, seed: int) -> Translation:
    """Translate an IOR command line into a plan. Raises BadInputError that names the option at fault.

    >>> translation = translate(["-F", "-t", "1m", "-b", "16m", "-o", "/tmp/file"], 4, seed=1)
    >>> translation.measured, translation.plan.ranks, translation.plan.bytes_on_target() // 2**20
    (('write', 'read'), 4, 64)
    """
    command = read(words)
    ranks = ranks_of("ior", asked_ranks, command.whole("N", 0), command)
    common = _common(command)
    operations = [flag for flag in "wrWR" if command.flag(flag)] or ["w", "r"]
    measured = []
    phases = [{**common, "name": "write", "operation": "write", **_of_write(command)}]
    if "w" in operations:
        measured.append("write")
    else:
        command.note("without -w there is nothing to read: strakes writes first, and does not report that")
    if "W" in operations:
        phases.append(
            {
                **common,
                "name": "write-check",
                "operation": "read",
                "verify": True,
                **_shift(command, ranks, further=1, seed=seed),
            }
        )
    if "r" in operations or "R" in operations:
        verify = {"verify": True} if "R" in operations else {}
        phases.append(
            {**common, "name": "read", "operation": "read", **verify, **_shift(command, ranks, further=0, seed=seed)}
        )
        measured.append("read")
    held = {"memory_hog_bytes": command.size("M", "0")} if command.flag("M") else {}
    plan = plan_of("ior", ranks, seed, phases, **held)
    # With -D, the blocks are only more than can be done in that time.
    fit = fit_amounts if "stop" in common else None
    measured_phases = tuple(measured) or ("write-check",)
    directory, *beside = _directories(command)
    check_shifts("ior", "-Z" if command.flag("Z") else "-C", phases, ranks, (directory, *beside))
    return Translation(
        "ior",
        plan,
        directory,
        measured_phases,
        command.flag("k"),
        tuple(command.notes),
        fit,
        beside=tuple(beside),
    )


def read(words: Sequence[str]) -> GivenCommand:
    """Read the options. Raises BadInputError for one that is unknown or not supported."""
    return given("ior", OPTIONS, _without_directives(words))


def _common(command: GivenCommand) -> dict[str, object]:
    """Return the keys that all phases share."""
    transfer, block = command.size("t", "256k"), command.size("b", "1m")
    if transfer < 1 or block % transfer:
        why = f"{block} % {transfer}"
        raise wrong("ior", "the block size (-b) must be a multiple of the transfer size (-t)", why=why)
    api = command.text("a", "POSIX").split()[0].upper()
    if api not in _BACKENDS:
        raise wrong("ior", f"-a {api}: no such interface", remedy=f"One of: {', '.join(_BACKENDS)}.")
    direct = any(command.flag(name) for name in ("B", "posix.odirect"))
    if direct and transfer % 512:
        why = f"-t {transfer}"
        raise wrong("ior", "O_DIRECT needs a transfer size (-t) that is a multiple of 512", why=why)
    per_process = command.flag("F")
    segments = command.whole("s", 1, least=1)
    access = "random" if command.flag("z") else ("segmented" if per_process else "strided")
    if access == "random":
        if command.counts["z"] > 1:
            command.note("-z twice: strakes visits every offset once, in random order")
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
    }
    if command.flag("u") and per_process:
        common["own_directory"] = True
    elif command.flag("u"):
        command.note("-u has no effect without -F, as in IOR")
    if command.flag("c") or command.flag("collective"):
        common["collective"] = True
    if seconds := command.whole("D", 0):
        wears_out = command.text(f"{DIRECTIVE}{_WEAR_OUT}", "0").strip() not in ("0", "")
        if wears_out and api in _LIBRARIES:
            command.note(f"-O {_WEAR_OUT} with -a {api}: tasks end at the deadline")
        rule = "wear-out" if wears_out and api not in _LIBRARIES else "stonewall"
        common["stop"] = {"rule": rule, "seconds": seconds}
    return common


def _of_write(command: GivenCommand) -> dict[str, object]:
    # Like IOR, data are made anew for each call only where they will be verified.
    pattern = "stamped" if command.flag("W") or command.flag("R") else "once"
    return {"sync": "fsync" if command.flag("e") else "close", "preallocate": command.flag("p"), "pattern": pattern}


def _shift(command: GivenCommand, ranks: int, *, further: int, seed: int) -> dict[str, object]:
    """Return whose data is read: with -C a constant shift (one more to check a write, as IOR does), with -Z one from
    the seed.
    """
    if ranks == 1:
        return {}
    if command.flag("Z"):
        command.note("-Z: all tasks read at one distance drawn from the seed, not each at its own")
        return {
            "rank_shift": 1
            + (seed + command.whole("X", 0) if not command.text("X", "0").startswith("-") else seed) % (ranks - 1)
        }
    if command.flag("C"):
        command.note("-C: the distance is counted in tasks (IOR counts nodes, and with one node does not shift at all)")
        return {"rank_shift": (command.whole("Q", 1) + further) % ranks}
    return {}


def _directories(command: GivenCommand) -> list[Path]:
    paths = command.paths("o", "testFile")
    if len(paths) > 1 and not command.flag("F"):
        remedy = "Give -F, for a file for each task, or measure one file at a time."
        raise wrong("ior", "-o names several files, and tasks share one", remedy=remedy)
    places = [place_of("ior", path.parent) for path in paths]
    # Files of one directory are no different places.
    different = list(dict.fromkeys(places))
    return different if len(different) == 1 else places


def _without_directives(words: Sequence[str]) -> list[str]:
    """``-O KEY=VALUE,...`` as the options they stand for."""
    plain: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "-O" and rest:
            text = rest.pop(0)
        elif word.startswith("-O") and "=" in word:
            text = word[2:].removeprefix("=")
        else:
            plain.append(word)
            # A value that happens to look like -O is a value.
            if len(word) == 2 and word[1] in OPTIONS and OPTIONS[word[1]].takes and rest:
                plain.append(rest.pop(0))
            continue
        for directive in text.split(","):
            plain += _as_option(directive)
    return plain


def _as_option(directive: str) -> list[str]:
    key, equals, value = directive.partition("=")
    name = key.strip().lower()
    if not equals:
        raise wrong("ior", f"-O {directive}: not KEY=VALUE")
    if name in _QUIET_DIRECTIVES:
        return []
    if name in (*_OUTPUT_DIRECTIVES, *_STONEWALL_DIRECTIVES, _WEAR_OUT, _STATUS_FILE):
        return [f"--{DIRECTIVE}{name}={value}"]
    letter = _DIRECTIVES.get(name)
    if letter is None:
        near = nearest_word(name, _DIRECTIVES, cutoff=0.4)
        nearest = f"The nearest supported one is {near}." if near else f"One of: {', '.join(_DIRECTIVES)}."
        raise wrong("ior", f"unknown directive -O {key}", remedy=nearest)
    if OPTIONS[letter].takes:
        return [f"-{letter}", value]
    return [f"-{letter}"] if value.strip() not in ("0", "") else []


OPTIONS |= {f"{DIRECTIVE}{name}": noted("where results go", _IN_STORE, takes=True) for name in _OUTPUT_DIRECTIVES}
OPTIONS |= {
    f"{DIRECTIVE}{name}": noted(
        "other ways to end a phase than -D",
        "tasks end at the deadline, and the rate is that of what they did until then",
        takes=True,
    )
    for name in _STONEWALL_DIRECTIVES
}
OPTIONS[f"{DIRECTIVE}{_WEAR_OUT}"] = ForeignOption(
    "after -D all tasks go on until they have done as much as the fastest", takes=True
)
OPTIONS[f"{DIRECTIVE}{_STATUS_FILE}"] = quiet("file with the progress of the tasks", takes=True)
