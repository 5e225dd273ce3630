"""``strakes run io500 CONFIG.ini``: translate an IO500 configuration into a plan of its phases, in IO500's order.

IO500's rules apply. A writing phase has a stonewall: after 300 s, ranks only catch up with the amount of the fastest
rank. A run is INVALID if the stonewall is shorter, a phase is missing, or a phase ends before its stonewall.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from strakes.base.errors import BadInputError
from strakes.interop import command_options as options
from strakes.interop.command_configuration import Configuration, Entry, file_of, help_of_keys, keys_of, unknown_name

# Minimum time limit (stonewall) of a valid IO500 run, in seconds.
VALID_STONEWALL_S = 300
_MOST_STONEWALL_S = 86400
# Name of each phase that IO500 scores, in IO500's order -> keys of the phase in a plan.
PHASES: Mapping[str, Mapping[str, object]] = options.table_of("io500")["phases"]
_TESTS: Mapping[str, Mapping[str, object]] = options.table_of("io500")["tests"]
# A phase without a score. It runs only if the configuration contains its section.
RANDOM = "ior-rnd4k-easy-read"
_RANDOM_BYTES = 4096
# Sections of the extended mode, which standard runs of IO500 skip.
_EXTENDED = re.compile(r"^(find-(easy|hard)|mdworkbench(-\w+)?|ior-rnd\w*(-(write|read))?|concurrent|timestamp)$")
_DIRECT_OPTION = "--posix.odirect"  # In the key "API", strakes supports only this word after POSIX.


def read_configuration(path: Path) -> Configuration:
    """Read an ini file of IO500. Raises BadInputError for other formats, unknown keys and unsupported values."""
    configuration, content = Configuration.of_file("io500", path, "[{}] {}")
    configuration.fill(_entries(configuration, content))
    for entry in configuration.entries.values():
        interface, *further = entry.value.split() if entry.key == "api" and entry.value else ["POSIX"]
        if interface.upper() != "POSIX" or set(further) - {_DIRECT_OPTION}:
            # Only ior-easy supports O_DIRECT.
            direct = f", or POSIX {_DIRECT_OPTION}" if entry.section.startswith("ior-easy") else ""
            remedy = f"Give POSIX{direct}."
            raise configuration.fault(entry.section, "api", f"{entry.value!r} is not supported", remedy)
    return configuration


def _entries(configuration: Configuration, content: str) -> Iterator[Entry]:
    section = ""
    for number, line in enumerate(content.splitlines(), start=1):
        plain = re.sub(r"(^|\s)[#;].*", "", line).strip()
        if plain.startswith("[") and plain.endswith("]"):
            heading = plain[1:-1].strip()
            section = heading.lower()
            if _EXTENDED.match(section):
                configuration.note(f"[{heading}] belongs to the extended mode, which strakes does not run")
            elif section not in keys_of("io500"):
                known = keys_of("io500")
                raise unknown_name(f"section [{heading}]", section, known, configuration.at(number))
            continue
        key, equals, value = (part.strip() for part in plain.partition("="))
        if plain and not (equals and section and key):
            problem = "this line is neither [SECTION] nor KEY = VALUE" if section else "no [SECTION] precedes this line"
            raise BadInputError(problem, where=configuration.at(number), why=plain)
        if plain and not _EXTENDED.match(section):
            yield Entry(section, key.lower(), value, number)


def translate(
    words: Sequence[str], asked_ranks: int | None, seed: int, ranks_per_node: int | None = None
) -> options.Translation:
    """Return the plan for an IO500 configuration. Raises BadInputError that names the line of an invalid value."""
    configuration = read_configuration(file_of("io500", words, "config.ini"))
    ranks = options.ranks_of("io500", asked_ranks, 0, configuration.note)
    stonewall_s = configuration.whole("debug", "stonewall-time", VALID_STONEWALL_S, most=_MOST_STONEWALL_S)
    if stonewall_s < VALID_STONEWALL_S:
        configuration.note(
            f"a stonewall of {stonewall_s} s instead of {VALID_STONEWALL_S} s: IO500 calls the run INVALID"
        )
    phases = list(_phases(configuration, ranks, ranks_per_node or ranks, stonewall_s))
    measured = tuple(str(phase["name"]) for phase in phases if _runs(configuration, str(phase["name"])))
    if not measured:
        raise BadInputError(
            "every phase is disabled", where=str(configuration.path), remedy="Set run = TRUE for a phase."
        )
    # Also keep unmeasured phases that create files for measured ones.
    used = {phase["files"] for phase in phases if phase["name"] in measured}
    creates = [phase for phase in phases if phase["operation"] in ("write", "file-create") and phase["files"] in used]
    needed = [phase for phase in phases if phase["name"] in measured or phase in creates]
    for phase in needed:
        if phase["name"] not in measured:
            configuration.note(f"{phase['name']} is run because later phases need its files, but is not reported")
    directory = options.place_of("io500", Path(configuration.text("global", "datadir", "./datafiles")))
    plan = options.plan_of("io500", ranks, seed, needed)
    budget_s = float(stonewall_s * (len(needed) + 1))
    return options.Translation(
        plan, directory, measured, notes=tuple(configuration.notes), fit=options.fit_amounts, budget_s=budget_s
    )


def _runs(configuration: Configuration, phase: str) -> bool:
    """Return whether the configuration enables a phase: key run, or until 2020 its opposite, noRun."""
    return all(
        configuration.flag(section, "run", default=True) and not configuration.flag(section, "norun", default=False)
        for section in (phase.rpartition("-")[0], phase)
    )


def _phases(configuration: Configuration, ranks: int, node: int, stonewall_s: int) -> Iterator[dict[str, object]]:
    geometry = {test: {**keys, "files": test, **_amounts(configuration, test)} for test, keys in _TESTS.items()}
    cache = {"cache": "drop-system"} if configuration.flag("global", "drop-caches", default=False) else {}
    for name, keys in PHASES.items():
        test = "mdtest-hard" if name == "find" else name.rpartition("-")[0]
        phase: dict[str, object] = {**geometry[test], **keys, "name": name}
        if phase["kind"] == "transfer":
            phase |= cache
        # In IO500, IOR reads what the next node wrote (-C -Q 1), and mdtest uses the files of the next task (-N 1).
        distance = node if phase["kind"] == "transfer" else 1
        if name.endswith("-write"):
            phase["stop"] = {"rule": "wear-out", "seconds": stonewall_s}
        elif name != "find" and distance < ranks:
            phase["rank_shift"] = distance
        yield phase if name == "find" else phase | _direct(configuration, name, test, phase)
    if any(section == RANDOM for section, _ in configuration.entries):
        stop = {"rule": "stonewall", "seconds": stonewall_s}
        yield {**geometry["ior-easy"], **_random(configuration, geometry["ior-easy"]), **cache, "stop": stop}


def _amounts(configuration: Configuration, test: str) -> dict[str, object]:
    if test == "ior-hard":
        return {"segments": configuration.whole(test, "segmentcount", 10_000_000)}
    if test != "ior-easy":
        return {"items": configuration.whole(test, "n", 1_000_000)}
    transfer = configuration.size(test, "transfersize", "2m")
    block = configuration.size(test, "blocksize", "9920000m")
    if block % transfer:
        remedy = "Give a multiple of transferSize."
        raise configuration.fault(test, "blocksize", f"{block} is not a multiple of {transfer}", remedy)
    each = configuration.flag(test, "fileperproc", default=True)
    own_directory = configuration.flag(test, "uniquedir", default=False)
    layout = {"layout": "file-per-process" if each else "shared-file"}
    # IOR ignores uniqueDir for a shared file.
    directory = {"own_directory": True} if own_directory and each else {}
    return {**layout, **directory, "transfer_bytes": transfer, "block_bytes": block}


def _asks_direct(configuration: Configuration, phase: str, test: str) -> tuple[str, str] | None:
    for section in (phase, test):
        if configuration.text(section, "posix.odirect"):
            asked = configuration.flag(section, "posix.odirect", default=False)
            return (section, "posix.odirect") if asked else None
    section = next((one for one in (phase, test) if configuration.text(one, "api")), "global")
    return (section, "api") if _DIRECT_OPTION in configuration.text(section, "api").split() else None


def _direct(configuration: Configuration, name: str, test: str, phase: Mapping[str, object]) -> dict[str, object]:
    place = _asks_direct(configuration, name, test)
    transfer = phase.get("transfer_bytes")
    possible = isinstance(transfer, int) and transfer % 512 == 0
    if place and not possible and _runs(configuration, name):
        if transfer is None:
            remedy = "Give it in [ior-easy] only: files this small are read and written through the page cache."
            raise configuration.fault(*place, "O_DIRECT is not supported for files", remedy)
        remedy = "Give it in [ior-easy] only: O_DIRECT needs multiples of 512 bytes."
        raise configuration.fault(*place, f"O_DIRECT is not possible with calls of {transfer} bytes", remedy)
    return {} if transfer is None else {"direct": place is not None and possible}


def _random(configuration: Configuration, easy: Mapping[str, object]) -> dict[str, object]:
    key = "direct" if configuration.text(RANDOM, "direct") else "posix.odirect"
    direct = configuration.flag(RANDOM, key, default=_asks_direct(configuration, RANDOM, "ior-easy") is not None)
    size = int(str(easy["block_bytes"])) // _RANDOM_BYTES * _RANDOM_BYTES
    if not size or int(str(easy["transfer_bytes"])) % _RANDOM_BYTES:
        problem = f"needs a transferSize of ior-easy that is a multiple of {_RANDOM_BYTES} bytes"
        raise configuration.fault(RANDOM, "run", problem, "Leave it out, or give another transferSize.")
    amounts = {"transfer_bytes": _RANDOM_BYTES, "block_bytes": size}
    return {"name": RANDOM, "operation": "read", "access": "random", **amounts, "direct": direct}


TOOL = options.Tool({}, translate, partial(help_of_keys, "io500", "[{}]"))
