"""``strakes run dlio CONFIG.yaml``: translate a configuration of DLIO into a plan of samples, epochs and checkpoints.

Every rank is an accelerator. The samples are dropped from the page cache before the first epoch only; warnings name
later epochs that find them there.
"""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strakes.interop.commands.configuration import Configuration, help_of_keys
from strakes.interop.commands.dlio_file import KEYS, NOT_SUPPORTED, QUIET, read_configuration
from strakes.interop.commands.words import GivenCommand, Tool, Translation, plan_of, ranks_of, wrong
from strakes.units import MIB, counted

_MOST_PHASES = 64
_SHUFFLES = ("off", "seed", "random")
_FORMATS = ("npz", "npy", "tfrecord", "hdf5", "csv", "jpeg", "png", "indexed_binary", "mmap_indexed_binary")
_LOADERS = ("pytorch", "tensorflow", "dali", "native_dali")
# Defaults of DLIO.
_RECORD_BYTES, _MODEL_BYTES, _TRANSFER_BYTES, _PREFETCH = 65536, 10240, 262144, 2


def help_text() -> str:
    """Return the text of ``strakes run dlio --help``: usage, and the keys of a configuration."""
    head = [
        "strakes run [-n ACCELERATORS] [OPTION...] dlio CONFIG.yaml",
        "",
        "Runs the training and the checkpoints of a configuration of DLIO without an accelerator.",
        "",
        "Accepted, but without effect:",
    ]
    remarks = {f"{section}.{key}": remark for section, keys in KEYS.items() for key, remark in keys.items()}
    head += [f"  {name.rstrip('.')}: {remark}" for name, remark in remarks.items() if remark not in ("", QUIET)]
    refused = {f"{section}.{key}": remedy for (section, key), (_, remedy) in NOT_SUPPORTED.items()}
    return help_of_keys(head, KEYS, refused, [key for _, key in NOT_SUPPORTED])


def translate(
    words: Sequence[str], asked_ranks: int | None, seed: int, _ranks_per_node: int | None = None
) -> Translation:
    """Translate ``CONFIG.yaml`` into a plan. Raises BadInputError that names the line at fault."""
    if len(words) != 1 or not words[0]:
        remedy = "Give one file: strakes run -n 4 dlio unet3d.yaml"
        raise wrong("dlio", "dlio takes a configuration and nothing else", remedy=remedy)
    configuration, notes = read_configuration(Path(words[0]))
    command = GivenCommand("dlio", notes=list(dict.fromkeys(notes)))
    ranks = ranks_of("dlio", asked_ranks, 0, command)
    work = _Work(configuration, ranks, command)
    directory = work.directory()
    phases, measured = work.phases()
    if len(phases) > _MOST_PHASES:
        problem = f"makes {len(phases)} phases with the checkpoints; a plan has at most {_MOST_PHASES}"
        raise configuration.fault("train", "epochs", problem, "Give fewer epochs.")
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

    def directory(self) -> Path:
        """Return data_folder, or the nearest existing directory above it. Raises BadInputError."""
        wanted, place = self._folder("dataset", "data_folder", "./data/")
        if place != wanted:
            self.command.note(f"dataset.data_folder: {wanted} does not exist, so {place} is measured")
        if self._checkpoints():
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
        text = str(self.configuration.get(section, key, default))
        wanted = Path(text).absolute()
        place = _nearest(wanted)
        if "${" in text:
            raise self.configuration.fault(section, key, f"{text} refers to another value", "Give a path.")
        if text.startswith("/") and place not in (wanted, wanted.parent):
            remedy = f"Give a directory that exists, or make it: mkdir -p {shlex.quote(str(wanted))}"
            raise self.configuration.fault(section, key, f"the directory {wanted.parent} does not exist", remedy)
        return wanted, place

    def computes_s(self) -> float:
        """Return the computing time of one run in seconds, which is a lower bound of its duration."""
        mean_s, _ = self._compute()
        steps = self._steps() if self._trains() else 0
        return steps * mean_s * self._epochs()

    def phases(self) -> tuple[list[dict[str, object]], tuple[str, ...]]:
        """Return all phases, and the names of the measured ones."""
        phases: list[dict[str, object]] = []
        generates = self.configuration.flag("workflow", "generate_data", default=False)
        if generates or self._trains():
            phases.append({**self._samples(), "name": "generate", "operation": "generate"})
        if self._trains():
            phases += self._training(generates)
        elif self._checkpoints():
            writes = self.configuration.whole("checkpoint", "num_checkpoints_write", 1)
            reads = self.configuration.whole("checkpoint", "num_checkpoints_read", 1, least=0)
            phases += [self._checkpoint(number, "write") for number in range(1, writes + 1)]
            phases += [self._checkpoint(number, "read") for number in range(1, reads + 1)]
        names = [str(phase["name"]) for phase in phases]
        return phases, tuple(name for name in names if name != "generate" or generates)

    def _training(self, generates: bool) -> list[dict[str, object]]:
        if not generates:
            self.command.note(
                "workflow.generate_data: the samples are generated beforehand, and not measured: strakes reads no "
                "files but its own"
            )
        self.command.note("before the first epoch the samples are dropped from the page cache of the nodes")
        phases: list[dict[str, object]] = []
        first = self.configuration.whole("checkpoint", "checkpoint_after_epoch", 1)
        between = self.configuration.whole("checkpoint", "epochs_between_checkpoints", 1)
        saved = 0
        for epoch in range(1, min(self._epochs(), _MOST_PHASES) + 1):
            phases.append(self._epoch(epoch))
            if self._checkpoints() and epoch >= first and (epoch - first) % between == 0:
                saved += 1
                phases.append(self._checkpoint(saved, "write"))
        if saved:
            self.command.note("the last checkpoint is read at the end, as by a restart")
            phases.append(self._checkpoint(saved, "read"))
        return phases

    def _trains(self) -> bool:
        return self.configuration.flag("workflow", "train", default=True)

    def _checkpoints(self) -> bool:
        return self.configuration.flag("workflow", "checkpoint", default=False)

    def _epochs(self) -> int:
        return self.configuration.whole("train", "epochs", 1)

    def _samples(self) -> dict[str, object]:
        configuration = self.configuration
        form = configuration.word("dataset", "format", "tfrecord", _FORMATS)
        self.command.note(f"dataset.format: files of {form} are files of samples, one after the other, without headers")
        return {
            "kind": "training",
            "file_count": configuration.whole("dataset", "num_files_train", 8),
            "samples_per_file": configuration.whole("dataset", "num_samples_per_file", 1),
            "sample_bytes": configuration.whole("dataset", "record_length_bytes", _RECORD_BYTES, most=2**50),
            "sample_stdev_bytes": self._deviation(),
            "subdirectories": configuration.whole("dataset", "num_subfolders_train", 0, least=0, most=65536),
            "transfer_bytes": configuration.whole("reader", "transfer_size", _TRANSFER_BYTES, most=2**50),
        }

    def _deviation(self) -> int:
        """Return the standard deviation of sample sizes in bytes, at most their mean, so that no sample is empty."""
        average = self.configuration.whole("dataset", "record_length_bytes", _RECORD_BYTES, most=2**50)
        deviation = self.configuration.whole("dataset", "record_length_bytes_stdev", 0, least=0, most=2**50)
        if deviation > average:
            self.command.note(
                f"dataset.record_length_bytes_stdev: {average}, the average, instead of {deviation}: no sample is empty"
            )
        return min(deviation, average)

    def _epoch(self, number: int) -> dict[str, object]:
        configuration = self.configuration
        configuration.word("reader", "data_loader", "pytorch", _LOADERS)
        samples = configuration.word("reader", "sample_shuffle", "off", _SHUFFLES) != "off"
        files = configuration.word("reader", "file_shuffle", "off", _SHUFFLES) != "off"
        readers = configuration.whole("reader", "read_threads", 1, least=0, most=1024)
        prefetched = configuration.whole("reader", "prefetch_size", _PREFETCH, least=0, most=65536)
        mean_s, stdev_s = self._compute()
        return {
            **self._samples(),
            "name": f"epoch-{number}",
            "operation": "train",
            "batch_samples": self._batch(),
            "readers": readers,
            # DLIO replaces 0 by 2. Without readers the value has no effect.
            "prefetch_batches": (prefetched if readers else 0) or _PREFETCH,
            "compute_ns": round(1e9 * mean_s),
            "compute_stdev_ns": round(1e9 * stdev_s),
            "steps": self._steps(),
            "shuffle": "samples" if samples else "files" if files else "none",
            "cache": "drop" if number == 1 else "as-is",
        }

    def _batch(self) -> int:
        return self.configuration.whole("reader", "batch_size", 1)

    def _steps(self) -> int:
        """Return the steps of an epoch. Raises BadInputError for too few samples for one or for the requested steps."""
        samples = self.configuration.whole("dataset", "num_files_train", 8) * self.configuration.whole(
            "dataset", "num_samples_per_file", 1
        )
        most = samples // self._batch() // self.ranks
        if not most:
            needed, team = counted(self._batch() * self.ranks, "sample"), counted(self.ranks, "accelerator")
            problem = f"a step of {team} needs {needed}; there are {samples}"
            raise self.configuration.fault("reader", "batch_size", problem, "Give more files, or fewer accelerators.")
        asked = self.configuration.get("train", "total_training_steps", -1)
        if self.configuration.number("train", "total_training_steps", asked, -1) <= 0:
            return most
        steps = self.configuration.whole("train", "total_training_steps", most)
        if steps > most:
            problem = f"{counted(steps, 'step')}; there are samples for {most}"
            raise self.configuration.fault("train", "total_training_steps", problem, "Give fewer steps or more files.")
        return steps

    def _compute(self) -> tuple[float, float]:
        """Return mean and standard deviation of the computing time of a step in seconds."""
        configuration = self.configuration
        value: Any = configuration.get("train", "computation_time", 0.0)
        stdev: Any = configuration.get("train", "computation_time_stdev", 0.0)
        if isinstance(value, dict):
            unknown = sorted(set(value) - {"mean", "stdev", "type"})
            if unknown or value.get("type", "normal") != "normal":
                problem = f"{unknown[0] if unknown else value['type']} is not supported"
                remedy = "Give a number, or {mean: ..., stdev: ...}."
                raise configuration.fault("train", "computation_time", problem, remedy)
            value, stdev = value.get("mean", 0.0), value.get("stdev", stdev)
        mean_s = configuration.number("train", "computation_time", value)
        stdev_s = configuration.number("train", "computation_time", stdev)
        if max(mean_s, stdev_s) > 86400:
            raise configuration.fault("train", "computation_time", "more than a day", "Give seconds of one step.")
        return mean_s, stdev_s

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


def _nearest(wanted: Path) -> Path:
    """Return the path or the nearest existing directory above it."""
    return next(path for path in (wanted, *wanted.parents) if path.is_dir())


TOOL = Tool({}, translate, help_text)
