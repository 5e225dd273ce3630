"""``strakes run dlio CONFIG.yaml``: translate a configuration of DLIO into a plan of samples, epochs and checkpoints.

Every rank acts as an accelerator. Samples are dropped from the page cache only before the first epoch, so later epochs
may read cached samples. Warnings name these epochs.
"""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import yaml

from strakes.base.errors import BadInputError
from strakes.base.units import MIB, counted
from strakes.interop.command_configuration import Configuration, Entry, file_of, help_of_keys, keys_of
from strakes.interop.command_options import Tool, Translation, plan_of, ranks_of, table_of

_MOST_PHASES = 64  # the engine's limit (engine/plan/parse.cpp); it refuses twice the number
_MOST_STEP_S = 86400
_Value = TypeVar("_Value")


def read_configuration(path: Path) -> Configuration:
    """Read a configuration of DLIO. Raises BadInputError for invalid YAML, unknown keys and unsupported values."""
    configuration, content = Configuration.of_file("dlio", path, "{}.{}")
    try:
        root = yaml.compose(content, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError) as error:
        why = " ".join(str(error).split())
        raise BadInputError("the configuration is not YAML", where=str(path), why=why) from error
    sections = _pairs(configuration, root, "the configuration")
    if len(sections) == 1 and sections[0][0] == "workload":
        sections = _pairs(configuration, sections[0][1], "workload")
    configuration.fill(entry for name, node in sections for entry in _entries(configuration, name, node))
    return configuration


def _entries(configuration: Configuration, name: str, node: yaml.Node) -> Iterator[Entry]:
    """Yield the values of a section. A list counts as one value, and so does a mapping that DLIO does not know."""
    keys, older = keys_of("dlio"), table_of("dlio")["older"]
    section = "reader" if name == "data_reader" else name
    if section in ("model", "framework") and isinstance(node, yaml.ScalarNode):
        yield Entry(section, "name" if section == "model" else "", _value(node), _line(node))
        return
    if section in keys and _value(node) == "":
        return
    for given, child in _pairs(configuration, node, name):
        place, _, key = older.get(f"{section}.{given}", f"{section}.{given}").partition(".")
        known = keys.get(section, {})
        if isinstance(child, yaml.MappingNode) and any(key.startswith(f"{given}.") for key in known):
            for part, value in _pairs(configuration, child, given):
                yield Entry(section, f"{given}.{part}", _value(value), _line(value))
        else:
            yield Entry(place, key, _value(child), _line(child))


def _pairs(configuration: Configuration, node: yaml.Node | None, what: str) -> list[tuple[str, yaml.Node]]:
    where = configuration.at(_line(node) if node else None)
    if not isinstance(node, yaml.MappingNode):
        raise BadInputError(f"{what} must be a list of KEY: VALUE", where=where, remedy="Give a configuration of DLIO.")
    if not all(isinstance(key, yaml.ScalarNode) for key, _ in node.value):
        raise BadInputError(f"a key of {what} is a list or a mapping, not a word", where=where)
    return [(key.value, value) for key, value in node.value]


def _value(node: yaml.Node) -> str:
    """Return a value as text, or "" if it is null or empty."""
    if isinstance(node, yaml.ScalarNode):
        return "" if node.value in ("null", "~") else str(node.value)
    brackets = "{}" if isinstance(node, yaml.MappingNode) else "[]"
    return "...".join(brackets) if node.value else ""


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def translate(
    words: Sequence[str], asked_ranks: int | None, seed: int, _ranks_per_node: int | None = None
) -> Translation:
    """Return the translation of a DLIO configuration. Raises BadInputError with the line of an invalid value."""
    configuration = read_configuration(file_of("dlio", words, "unet3d.yaml"))
    ranks = ranks_of("dlio", asked_ranks, 0, configuration.note)
    work = _work(configuration, ranks)
    directory = _directory(work)
    phases = _phases(work)
    if len(phases) > _MOST_PHASES:
        problem = f"makes {len(phases)} phases, checkpoints included; a plan can have at most {_MOST_PHASES}"
        raise configuration.fault("train", "epochs", problem, "Give fewer epochs.")
    names = [str(phase["name"]) for phase in phases]
    measured = tuple(name for name in names if name != "generate" or work.switches["generates"])
    if not measured:
        remedy = "Set generate_data, train or checkpoint to True."
        raise configuration.fault("workflow", "train", "nothing to do", remedy)
    plan = plan_of("dlio", ranks, seed, phases)
    # The steps compute for this time, however fast the file system is.
    waits_s = work.steps * work.compute_s[0] * work.numbers["epochs"] if work.switches["trains"] else 0.0
    # Allow I/O half of the computing time, plus one minute.
    budget_s = 60.0 + 1.5 * waits_s
    return Translation(plan, directory, measured, notes=tuple(configuration.notes), budget_s=budget_s, waits_s=waits_s)


@dataclass(frozen=True)
class _Work:
    """The values of a configuration, by their names in the table of DLIO.

    ``compute_s``: mean and standard deviation of a step's computing time. ``steps``: number of steps in an epoch, 0
    without training.
    """

    configuration: Configuration
    ranks: int
    numbers: Mapping[str, int]
    words: Mapping[str, str]
    switches: Mapping[str, bool]
    compute_s: tuple[float, float]
    steps: int = 0


def _work(configuration: Configuration, ranks: int) -> _Work:
    seconds = partial(configuration.number, "train", most=_MOST_STEP_S)
    mean_s = seconds("computation_time.mean", default=seconds("computation_time", default=0.0))
    stdev_s = seconds("computation_time.stdev", default=seconds("computation_time_stdev", default=0.0))
    numbers, words = _values("numbers", configuration.whole), _values("words", configuration.word)
    switches = _values("switches", configuration.flag)
    work = _Work(configuration, ranks, numbers, words, switches, (mean_s, stdev_s))
    return replace(work, steps=_steps(work)) if work.switches["trains"] else work


def _values(kind: str, read: Callable[..., _Value]) -> dict[str, _Value]:
    """Return the values of the keys in one table of DLIO by name. ``read``: function that reads a value."""
    return {name: read(**entry) for name, entry in table_of("dlio")[kind].items()}


def _steps(work: _Work) -> int:
    """Return the number of steps in an epoch. Raises BadInputError if there are too few samples."""
    batch, steps = work.numbers["batch_samples"], work.numbers["steps"]
    samples = work.numbers["file_count"] * work.numbers["samples_per_file"]
    most = samples // batch // work.ranks
    if not most:
        needed, team = counted(batch * work.ranks, "sample"), counted(work.ranks, "accelerator")
        problem = f"a step of {team} needs {needed}; there are only {samples}"
        raise work.configuration.fault("reader", "batch_size", problem, "Give more files, or fewer accelerators.")
    if steps > most:
        problem = f"{counted(steps, 'step')}; there are only samples for {most}"
        raise work.configuration.fault("train", "total_training_steps", problem, "Give fewer steps or more files.")
    return steps if steps > 0 else most


def _directory(work: _Work) -> Path:
    """Return the directory to measure in: data_folder or its nearest existing ancestor. Raises BadInputError."""
    wanted, place = _folder(work.configuration, "dataset", "data_folder", "./data/")
    if place != wanted:
        work.configuration.note(f"dataset.data_folder: {wanted} does not exist, so {place} is measured")
    if work.switches["checkpoints"]:
        _, other = _folder(work.configuration, "checkpoint", "checkpoint_folder", "./checkpoints/")
        if os.stat(other).st_dev != os.stat(place).st_dev:
            problem = f"{other} is on a different file system from {place}"
            remedy = "Run training and checkpoints separately: strakes measures one file system at a time."
            raise work.configuration.fault("checkpoint", "checkpoint_folder", problem, remedy)
    return place


def _folder(configuration: Configuration, section: str, key: str, default: str) -> tuple[Path, Path]:
    """Return the path of a configured directory, and its nearest existing ancestor (or the directory itself).

    Raises BadInputError if the path is absolute and the directory and its parent are missing, because higher
    directories may be on another file system.
    """
    text = configuration.text(section, key, default)
    wanted = Path(text).absolute()
    place = next(path for path in (wanted, *wanted.parents) if path.is_dir())
    if "${" in text:
        raise configuration.fault(section, key, f"{text} refers to another value", "Give a path.")
    if text.startswith("/") and place not in (wanted, wanted.parent):
        remedy = f"Give a directory that exists, or make it: mkdir -p {shlex.quote(str(wanted))}"
        raise configuration.fault(section, key, f"the directory {wanted.parent} does not exist", remedy)
    return wanted, place


def _phases(work: _Work) -> list[dict[str, object]]:
    """Return the phases of the plan in the order in which they run."""
    generates, trains, checkpoints = (work.switches[name] for name in ("generates", "trains", "checkpoints"))
    phases: list[dict[str, object]] = []
    if generates or trains:
        phases.append({**_samples(work), "name": "generate", "operation": "generate"})
    if not trains and checkpoints:
        for operation in ("write", "read"):
            count = work.numbers[f"{operation}_checkpoints"]
            phases += [_checkpoint(work, number, operation) for number in range(1, count + 1)]
    if not trains:
        return phases
    if not generates:
        work.configuration.note(
            "workflow.generate_data: the samples are generated first, unmeasured, because strakes reads only "
            "files that it created"
        )
    work.configuration.note("before the first epoch the samples are dropped from the page cache of the nodes")
    first, between = work.numbers["first_checkpoint"], work.numbers["epochs_between_checkpoints"]
    saved = 0
    for epoch in range(1, min(work.numbers["epochs"], _MOST_PHASES) + 1):
        phases.append(_epoch(work, epoch))
        if checkpoints and epoch >= first and (epoch - first) % between == 0:
            saved += 1
            phases.append(_checkpoint(work, saved, "write"))
    if saved:
        work.configuration.note("the last checkpoint is read at the end, as after a restart")
        phases.append(_checkpoint(work, saved, "read"))
    return phases


def _samples(work: _Work) -> dict[str, object]:
    form, average, deviation = work.words["form"], work.numbers["sample_bytes"], work.numbers["sample_stdev_bytes"]
    work.configuration.note(
        f"dataset.format: instead of files of {form}, strakes writes plain samples one after another, without headers"
    )
    if deviation > average:
        work.configuration.note(
            f"dataset.record_length_bytes_stdev: {average} (the mean) instead of {deviation}: no sample may be empty"
        )
    names = ("file_count", "samples_per_file", "sample_bytes", "subdirectories", "transfer_bytes")
    numbers = {name: work.numbers[name] for name in names}
    return {"kind": "training", **numbers, "sample_stdev_bytes": min(deviation, average)}


def _epoch(work: _Work, number: int) -> dict[str, object]:
    shuffled = [kind for kind in ("sample", "file") if work.words[f"{kind}_shuffle"] not in ("off", "false")]
    readers, prefetched = work.numbers["readers"], work.numbers["prefetch_batches"]
    mean_s, stdev_s = work.compute_s
    return {
        **_samples(work),
        "name": f"epoch-{number}",
        "operation": "train",
        "batch_samples": work.numbers["batch_samples"],
        "readers": readers,
        # As in DLIO, 0 means 2. Without readers the value has no effect.
        "prefetch_batches": (prefetched if readers else 0) or 2,
        "compute_ns": round(1e9 * mean_s),
        "compute_stdev_ns": round(1e9 * stdev_s),
        "steps": work.steps,
        "shuffle": f"{shuffled[0]}s" if shuffled else "none",
        "cache": "drop" if number == 1 else "as-is",
    }


def _checkpoint(work: _Work, number: int, operation: str) -> dict[str, object]:
    size = work.numbers["checkpoint_bytes"]
    transfer = min(MIB, size)
    block = math.ceil(size / transfer) * transfer
    if block != size:
        work.configuration.note(f"model.model_size_bytes: {block} (rounded to whole MiB) instead of {size}")
    name = {"name": f"checkpoint-{number}-{operation}", "operation": operation}
    common = {**table_of("dlio")["checkpoint"], **name, "transfer_bytes": transfer, "block_bytes": block}
    if operation == "read":
        return {**common, "cache": "drop"}
    first_ranks = 1 if work.words["checkpoint_type"] == "rank_zero" and work.ranks > 1 else 0
    return {**common, "first_ranks": first_ranks, "sync": "fsync" if work.switches["fsync"] else "close"}


TOOL = Tool({}, translate, partial(help_of_keys, "dlio", "{}"))
