"""``strakes run dlio CONFIG.yaml``: translate a configuration of DLIO into a plan of samples, epochs and checkpoints.

Every rank is an accelerator. The samples are dropped from the page cache before the first epoch only; warnings name
later epochs that find them there.
"""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import yaml

from strakes.errors import BadInputError
from strakes.file_kinds import OTHER_KINDS, refuse_other_kind
from strakes.files import read_regular
from strakes.interop.commands.configuration import Configuration, Entry, help_of_keys, keys_of
from strakes.interop.commands.words import GivenCommand, Tool, Translation, plan_of, ranks_of, table_of, wrong
from strakes.units import MIB, counted

_MOST_BYTES = 1 << 20
_MOST_PHASES = 64
_MOST_STEP_S = 86400
_SHUFFLES = ("off", "false", "seed", "random")
_FORMATS = ("npz", "npy", "tfrecord", "hdf5", "csv", "jpeg", "png", "indexed_binary", "mmap_indexed_binary")
_LOADERS = ("pytorch", "tensorflow", "dali", "native_dali")
# Defaults of DLIO.
_RECORD_BYTES, _MODEL_BYTES, _TRANSFER_BYTES, _PREFETCH_BATCHES = 65536, 10240, 262144, 2
_USAGE = """strakes run [-n ACCELERATORS] [OPTION...] dlio CONFIG.yaml

Runs the training and the checkpoints of a configuration of DLIO without an accelerator."""


def read_configuration(path: Path) -> Configuration:
    """Read a configuration of DLIO. Raises BadInputError for invalid YAML, unknown keys and unsupported values."""
    refuse_other_kind(path, "dlio", OTHER_KINDS["dlio"].name)
    remedy = "Give the name of an existing file."
    content = read_regular(path, _MOST_BYTES, "the configuration cannot be read", remedy)
    configuration = Configuration("dlio", path, "{}.{}")
    try:
        root = yaml.compose(content.decode("utf-8"), Loader=yaml.BaseLoader)
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        why = " ".join(str(error).split())
        raise BadInputError("the configuration is not YAML", where=str(path), why=why) from error
    sections = _pairs(configuration, root, "the configuration")
    if len(sections) == 1 and sections[0][0] == "workload":
        sections = _pairs(configuration, sections[0][1], "workload")
    configuration.fill(entry for name, node in sections for entry in _entries(configuration, name, node))
    return configuration


def _entries(configuration: Configuration, name: str, node: yaml.Node) -> Iterator[Entry]:
    """Yield the values of a section. Lists, and mappings that DLIO does not have, count as one value."""
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
        raise BadInputError(f"{what} is not a list of KEY: VALUE", where=where, remedy="Give a configuration of DLIO.")
    if not all(isinstance(key, yaml.ScalarNode) for key, _ in node.value):
        raise BadInputError(f"a key of {what} is not a word", where=where)
    return [(key.value, value) for key, value in node.value]


def _value(node: yaml.Node) -> str:
    """Return a value as text; "" if it is null or empty."""
    if isinstance(node, yaml.ScalarNode):
        return "" if node.value in ("null", "~") else str(node.value)
    brackets = "{}" if isinstance(node, yaml.MappingNode) else "[]"
    return "...".join(brackets) if node.value else ""


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def translate(
    words: Sequence[str], asked_ranks: int | None, seed: int, _ranks_per_node: int | None = None
) -> Translation:
    """Translate ``CONFIG.yaml`` into a plan. Raises BadInputError that names the line at fault."""
    if len(words) != 1 or not words[0]:
        remedy = "Give one file: strakes run -n 4 dlio unet3d.yaml"
        raise wrong("dlio", "dlio takes a configuration and nothing else", remedy=remedy)
    configuration = read_configuration(Path(words[0]))
    command = GivenCommand("dlio", notes=list(dict.fromkeys(configuration.notes)))
    ranks = ranks_of("dlio", asked_ranks, 0, command)
    work = _Work(configuration, ranks, command)
    directory = work.directory()
    phases = work.phases()
    if len(phases) > _MOST_PHASES:
        problem = f"makes {len(phases)} phases with the checkpoints; a plan has at most {_MOST_PHASES}"
        raise configuration.fault("train", "epochs", problem, "Give fewer epochs.")
    names = [str(phase["name"]) for phase in phases]
    measured = tuple(name for name in names if name != "generate" or work.generates)
    if not measured:
        remedy = "Give True to generate_data, train or checkpoint."
        raise configuration.fault("workflow", "train", "nothing to do", remedy)
    plan = plan_of("dlio", ranks, seed, phases)
    waits_s = work.computes_s()
    # Allow half of the computing time and a minute for I/O.
    budget_s = 60.0 + 1.5 * waits_s
    return Translation(
        "dlio", plan, directory, measured, notes=tuple(command.notes), budget_s=budget_s, waits_s=waits_s
    )


@dataclass(frozen=True)
class _Work:
    """The phases of a configuration, as keys of a plan."""

    configuration: Configuration
    ranks: int
    command: GivenCommand

    @property
    def generates(self) -> bool:
        """Whether the generation of the samples is measured."""
        return self.configuration.flag("workflow", "generate_data", default=False)

    @property
    def _trains(self) -> bool:
        return self.configuration.flag("workflow", "train", default=True)

    @property
    def _checkpoints(self) -> bool:
        return self.configuration.flag("workflow", "checkpoint", default=False)

    @property
    def _epochs(self) -> int:
        return self.configuration.whole("train", "epochs", 1)

    def directory(self) -> Path:
        """Return data_folder, or the nearest existing directory above it. Raises BadInputError."""
        wanted, place = self._folder("dataset", "data_folder", "./data/")
        if place != wanted:
            self.command.note(f"dataset.data_folder: {wanted} does not exist, so {place} is measured")
        if self._checkpoints:
            _, other = self._folder("checkpoint", "checkpoint_folder", "./checkpoints/")
            if os.stat(other).st_dev != os.stat(place).st_dev:
                problem = f"{other} is on a different file system from {place}"
                remedy = "Run training and checkpoints separately: strakes measures one file system at a time."
                raise self.configuration.fault("checkpoint", "checkpoint_folder", problem, remedy)
        return place

    def _folder(self, section: str, key: str, default: str) -> tuple[Path, Path]:
        """Return a folder, and itself or the nearest existing directory above it.

        Raises BadInputError if an absolute path and its parent do not exist, because a directory further up may be on
        another file system.
        """
        text = self.configuration.text(section, key, default)
        wanted = Path(text).absolute()
        place = next(path for path in (wanted, *wanted.parents) if path.is_dir())
        if "${" in text:
            raise self.configuration.fault(section, key, f"{text} refers to another value", "Give a path.")
        if text.startswith("/") and place not in (wanted, wanted.parent):
            remedy = f"Give a directory that exists, or make it: mkdir -p {shlex.quote(str(wanted))}"
            raise self.configuration.fault(section, key, f"the directory {wanted.parent} does not exist", remedy)
        return wanted, place

    def computes_s(self) -> float:
        """Return the computing time of one run in seconds, which is a lower bound of its duration."""
        return self._steps() * self._compute_s()[0] * self._epochs if self._trains else 0.0

    def phases(self) -> list[dict[str, object]]:
        """Return all phases in their order."""
        phases: list[dict[str, object]] = []
        if self.generates or self._trains:
            phases.append({**self._samples(), "name": "generate", "operation": "generate"})
        if self._trains:
            return phases + self._training()
        if self._checkpoints:
            for operation in ("write", "read"):
                count = self.configuration.whole("checkpoint", f"num_checkpoints_{operation}", 1, least=0)
                phases += [self._checkpoint(number, operation) for number in range(1, count + 1)]
        return phases

    def _training(self) -> list[dict[str, object]]:
        if not self.generates:
            self.command.note(
                "workflow.generate_data: the samples are generated beforehand, and not measured: strakes reads no "
                "files but its own"
            )
        self.command.note("before the first epoch the samples are dropped from the page cache of the nodes")
        phases: list[dict[str, object]] = []
        first = self.configuration.whole("checkpoint", "checkpoint_after_epoch", 1)
        between = self.configuration.whole("checkpoint", "epochs_between_checkpoints", 1)
        saved = 0
        for epoch in range(1, min(self._epochs, _MOST_PHASES) + 1):
            phases.append(self._epoch(epoch))
            if self._checkpoints and epoch >= first and (epoch - first) % between == 0:
                saved += 1
                phases.append(self._checkpoint(saved, "write"))
        if saved:
            self.command.note("the last checkpoint is read at the end, as by a restart")
            phases.append(self._checkpoint(saved, "read"))
        return phases

    def _samples(self) -> dict[str, object]:
        configuration = self.configuration
        form = configuration.word("dataset", "format", "tfrecord", _FORMATS)
        self.command.note(f"dataset.format: files of {form} are files of samples, one after the other, without headers")
        average = configuration.whole("dataset", "record_length_bytes", _RECORD_BYTES, most=2**50)
        deviation = configuration.whole("dataset", "record_length_bytes_stdev", 0, least=0, most=2**50)
        if deviation > average:
            self.command.note(
                f"dataset.record_length_bytes_stdev: {average}, the average, instead of {deviation}: no sample is empty"
            )
        return {
            "kind": "training",
            "file_count": configuration.whole("dataset", "num_files_train", 8),
            "samples_per_file": configuration.whole("dataset", "num_samples_per_file", 1),
            "sample_bytes": average,
            "sample_stdev_bytes": min(deviation, average),
            "subdirectories": configuration.whole("dataset", "num_subfolders_train", 0, least=0, most=65536),
            "transfer_bytes": configuration.whole("reader", "transfer_size", _TRANSFER_BYTES, most=2**50),
        }

    def _epoch(self, number: int) -> dict[str, object]:
        configuration = self.configuration
        configuration.word("reader", "data_loader", "pytorch", _LOADERS)
        shuffles = {
            kind: configuration.word("reader", f"{kind}_shuffle", "off", _SHUFFLES) not in ("off", "false")
            for kind in ("sample", "file")
        }
        readers = configuration.whole("reader", "read_threads", 1, least=0, most=1024)
        prefetched = configuration.whole("reader", "prefetch_size", _PREFETCH_BATCHES, least=0, most=65536)
        mean_s, stdev_s = self._compute_s()
        return {
            **self._samples(),
            "name": f"epoch-{number}",
            "operation": "train",
            "batch_samples": self._batch(),
            "readers": readers,
            # DLIO replaces 0 by 2. Without readers the value has no effect.
            "prefetch_batches": (prefetched if readers else 0) or _PREFETCH_BATCHES,
            "compute_ns": round(1e9 * mean_s),
            "compute_stdev_ns": round(1e9 * stdev_s),
            "steps": self._steps(),
            "shuffle": "samples" if shuffles["sample"] else "files" if shuffles["file"] else "none",
            "cache": "drop" if number == 1 else "as-is",
        }

    def _batch(self) -> int:
        return self.configuration.whole("reader", "batch_size", 1)

    def _steps(self) -> int:
        """Return the steps of an epoch. Raises BadInputError for too few samples for one or for the requested steps."""
        configuration = self.configuration
        files = configuration.whole("dataset", "num_files_train", 8)
        samples = files * configuration.whole("dataset", "num_samples_per_file", 1)
        most = samples // self._batch() // self.ranks
        if not most:
            needed, team = counted(self._batch() * self.ranks, "sample"), counted(self.ranks, "accelerator")
            problem = f"a step of {team} needs {needed}; there are {samples}"
            raise configuration.fault("reader", "batch_size", problem, "Give more files, or fewer accelerators.")
        steps = configuration.whole("train", "total_training_steps", -1, least=-1)
        if steps > most:
            problem = f"{counted(steps, 'step')}; there are samples for {most}"
            raise configuration.fault("train", "total_training_steps", problem, "Give fewer steps or more files.")
        return steps if steps > 0 else most

    def _compute_s(self) -> tuple[float, float]:
        """Return mean and standard deviation of the computing time of a step in seconds."""
        number = partial(self.configuration.number, "train", most=_MOST_STEP_S)
        mean_s = number("computation_time.mean", default=number("computation_time", default=0.0))
        return mean_s, number("computation_time.stdev", default=number("computation_time_stdev", default=0.0))

    def _checkpoint(self, number: int, operation: str) -> dict[str, object]:
        configuration = self.configuration
        size = configuration.whole("model", "model_size_bytes", _MODEL_BYTES, most=2**50)
        transfer = min(MIB, size)
        block = math.ceil(size / transfer) * transfer
        if block != size:
            self.command.note(f"model.model_size_bytes: {block}, whole MiB, instead of {size}")
        alone = configuration.word("checkpoint", "type", "rank_zero", ("rank_zero", "all_ranks")) == "rank_zero"
        common: dict[str, object] = {
            "kind": "transfer",
            "name": f"checkpoint-{number}-{operation}",
            "operation": operation,
            "files": "checkpoint",
            "layout": "file-per-process",
            "access": "segmented",
            "transfer_bytes": transfer,
            "block_bytes": block,
            "segments": 1,
        }
        if operation == "read":
            return {**common, "cache": "drop"}
        synchronises = configuration.flag("checkpoint", "fsync", default=False)
        first_ranks = 1 if alone and self.ranks > 1 else 0
        return {**common, "first_ranks": first_ranks, "sync": "fsync" if synchronises else "close"}


TOOL = Tool({}, translate, partial(help_of_keys, "dlio", _USAGE, "{}"))
