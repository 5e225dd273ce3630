"""A configuration of DLIO: its sections and keys, what each of them does here, and the values with their lines.

The keys are those of DLIO's documentation (docs/source/config.rst of argonne-lcf/dlio_benchmark) and of its older
configurations.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from strakes.errors import BadInputError, nearest_word
from strakes.file_kinds import OTHER_KINDS, refuse_other_kind
from strakes.files import read_regular

_MOST_BYTES = 1 << 20
# In one value, each as often as aliases repeat it.
_MOST_VALUES = 100_000
# What a key without effect is said to be; "" for one that is used, QUIET for one of which nothing need be said.
QUIET = "changes nothing here"
_OWN = "strakes reads and writes plain files with its own calls, without a framework"
KEYS: Mapping[str, Mapping[str, str]] = {
    "model": {
        "name": QUIET,
        "type": QUIET,
        "model_size_bytes": "",
        "model_datatype": QUIET,
        "optimizer_datatype": QUIET,
        "optimization_groups": "",
        "num_layers": "",
        "layer_parameters": "",
        "parallelism": "",
        "transformer": "",
    },
    "framework": {"": _OWN},
    "workflow": {
        "generate_data": "",
        "train": "",
        "checkpoint": "",
        "evaluation": "",
        "profiling": QUIET,
        "debug": QUIET,
    },
    "dataset": {
        "data_folder": "",
        "format": "",
        "num_files_train": "",
        "num_samples_per_file": "",
        "record_length_bytes": "",
        "record_length_bytes_stdev": "",
        "record_length_bytes_resize": "samples are not transformed",
        "num_subfolders_train": "",
        "num_files_eval": QUIET,
        "num_subfolders_eval": QUIET,
        "file_prefix": "strakes chooses the names of files",
        "compression": "",
        "compression_level": QUIET,
        "enable_chunking": "",
        "chunk_size": QUIET,
        "keep_files": "strakes run --keep keeps the files",
        "generation_buffer_size": QUIET,
        "record_dims": "",
        "record_element_bytes": QUIET,
        "record_element_type": QUIET,
        "hdf5": "",
    },
    "reader": {
        "batch_size": "",
        "read_threads": "",
        "prefetch_size": "",
        "file_shuffle": "",
        "sample_shuffle": "",
        "transfer_size": "",
        "data_loader": "",
        "odirect": "",
        "preprocess_time": "",
        "preprocess_time_stdev": "",
        "file_access": "",
        "read_type": "",
        "data_loader_classname": "",
        "reader_classname": "",
        "batch_size_eval": QUIET,
        "computation_threads": "samples are not transformed",
        "data_loader_sampler": QUIET,
        "dont_use_mmap": QUIET,
        "multiprocessing_context": "readers are threads",
        "pin_memory": QUIET,
        "shuffle_size": "all samples are shuffled",
        "transformed_record_dims": "samples are not transformed",
        "transformed_record_element_type": QUIET,
    },
    "train": {
        "epochs": "",
        "computation_time": "",
        "computation_time_stdev": "",
        "total_training_steps": "",
        "seed": "strakes run --seed decides the order",
        "seed_change_epoch": "",
    },
    "evaluation": {
        "eval_time": QUIET,
        "eval_time_stdev": QUIET,
        "eval_after_epoch": QUIET,
        "epochs_between_evals": QUIET,
    },
    "checkpoint": {
        "checkpoint_folder": "",
        "checkpoint_after_epoch": "",
        "epochs_between_checkpoints": "",
        "steps_between_checkpoints": "",
        "type": "",
        "fsync": "",
        "mode": "",
        "num_checkpoints_write": "",
        "num_checkpoints_read": "",
        "time_between_checkpoints": "",
        "recovery_rank_shift": "",
        "rank_sync": "all ranks end a checkpoint together",
        "randomize_tensor": "the data of strakes cannot be compressed",
        "checkpoint_mechanism_classname": "",
        "ksm": "",
    },
    "storage": {"storage_type": "", "storage_root": "", "storage_options": ""},
    "output": {"folder": "the run is in the store", "log_file": QUIET, "metric": ""},
    "metric": {"au": "compare it with the interval in the report"},
    "profiling": {"profiler": QUIET, "iostat_devices": QUIET},
}
# Names of older versions.
OLDER: Mapping[tuple[str, str], tuple[str, str]] = {
    ("dataset", "record_length"): ("dataset", "record_length_bytes"),
    ("dataset", "record_length_stdev"): ("dataset", "record_length_bytes_stdev"),
    ("dataset", "record_length_resize"): ("dataset", "record_length_bytes_resize"),
    ("checkpoint", "model_size"): ("model", "model_size_bytes"),
    ("model", "model_size"): ("model", "model_size_bytes"),
}
# Refused unless the value is one of these.
_NONE: tuple[Any, ...] = (None, False, 0, -1, [], {}, "", "none", "None")
NOT_SUPPORTED: Mapping[tuple[str, str], tuple[tuple[Any, ...], str]] = {
    ("model", "optimization_groups"): (_NONE, "Give the bytes of a checkpoint as model_size_bytes."),
    ("model", "num_layers"): (_NONE, "Give the bytes of a checkpoint as model_size_bytes."),
    ("model", "layer_parameters"): (_NONE, "Give the bytes of a checkpoint as model_size_bytes."),
    ("model", "parallelism"): (_NONE, "Give the bytes of a checkpoint as model_size_bytes."),
    ("model", "transformer"): (_NONE, "Give the bytes of a checkpoint as model_size_bytes."),
    ("workflow", "evaluation"): (_NONE, "Leave it out: only training and checkpoints are measured."),
    ("dataset", "compression"): (_NONE, "Leave it out: samples are stored as they are."),
    ("dataset", "enable_chunking"): (_NONE, "Leave it out: a plan writes HDF5 (examples/hdf5.toml)."),
    ("dataset", "hdf5"): (_NONE, "Leave it out: a plan writes HDF5 (examples/hdf5.toml)."),
    ("dataset", "record_dims"): (_NONE, "Give the bytes of a sample as record_length_bytes."),
    ("reader", "odirect"): (_NONE, "Leave it out: samples begin anywhere in their file."),
    ("reader", "preprocess_time"): (_NONE, "Leave it out, or add it to computation_time."),
    ("reader", "preprocess_time_stdev"): (_NONE, "Leave it out."),
    ("reader", "file_access"): (("multi",), "Leave it out."),
    ("reader", "read_type"): (("on_demand",), "Leave it out: samples are read when they are needed."),
    ("reader", "data_loader_classname"): (_NONE, "Leave it out."),
    ("reader", "reader_classname"): (_NONE, "Leave it out."),
    ("train", "seed_change_epoch"): ((True,), "Leave it out: every epoch has an order of its own."),
    ("checkpoint", "steps_between_checkpoints"): (_NONE, "Use epochs_between_checkpoints."),
    ("checkpoint", "time_between_checkpoints"): (_NONE, "Leave it out."),
    ("checkpoint", "mode"): (("default",), "Leave it out."),
    ("checkpoint", "recovery_rank_shift"): (_NONE, "Leave it out: checkpoints leave the page cache before the read."),
    ("checkpoint", "checkpoint_mechanism_classname"): (_NONE, "Leave it out."),
    ("checkpoint", "ksm"): (_NONE, "Leave it out."),
    ("storage", "storage_type"): (("local_fs",), "Use local_fs, and a data_folder on a mounted file system."),
    ("storage", "storage_root"): ((None, "", ".", "./"), "Write it in front of data_folder."),
    ("storage", "storage_options"): (_NONE, "Leave it out."),
    ("output", "metric"): (
        (None, {}, {"exclude_start_steps": 1}, {"exclude_start_steps": 1, "exclude_end_steps": 0}),
        "Leave it out: the first step is not counted, and all others are.",
    ),
}


@dataclass
class Configuration:
    """The values of a configuration by section and key, with the line of each."""

    path: Path
    values: dict[tuple[str, str], Any] = field(default_factory=dict)
    lines: dict[tuple[str, str], int] = field(default_factory=dict)

    def get(self, section: str, key: str, default: Any = None) -> Any:
        """Return the value, or the default where there is none."""
        value = self.values.get((section, key))
        return default if value is None else value

    def fault(self, section: str, key: str, problem: str, remedy: str) -> BadInputError:
        """Return the error for a value, with its line."""
        line = self.lines.get((section, key))
        where = f"{self.path}:{line}" if line else str(self.path)
        return BadInputError(f"{section}.{key}: {problem}", where=where, remedy=remedy)

    def flag(self, section: str, key: str, *, default: bool) -> bool:
        """Return true or false. Raises BadInputError for anything else."""
        value = self.get(section, key, default)
        if not isinstance(value, bool):
            raise self.fault(section, key, f"{_shown(value)} is neither True nor False", "Give True or False.")
        return value

    def number(self, section: str, key: str, default: float, least: float = 0.0) -> float:
        """Return a number. Raises BadInputError that names the key."""
        value = self.get(section, key, default)
        return self.as_number(section, key, value, least)

    def as_number(self, section: str, key: str, value: Any, least: float = 0.0) -> float:
        """Return a value as a number of at least ``least``. Raises BadInputError that names the key."""
        # YAML 1.1, unlike OmegaConf, takes 1e-3 for a text.
        try:
            number = float(value) if not isinstance(value, bool) else math.nan
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number) or number < least:
            raise self.fault(
                section, key, f"{_shown(value)} is not a number of at least {least:g}", "Give such a number."
            )
        return number

    def whole(self, section: str, key: str, default: int, least: int = 1, most: int = 2**30) -> int:
        """Return a whole number; parts of a byte are left out. Raises BadInputError that names the key."""
        number = self.number(section, key, default, least)
        if number > most:
            raise self.fault(section, key, f"{number:g} is more than {most}", "Give a smaller number.")
        return int(number)

    def word(self, section: str, key: str, default: str, known: tuple[str, ...]) -> str:
        """Return one of the known words. Raises BadInputError that names the key."""
        value = self.get(section, key, default)
        # YAML 1.1 takes the word off for false.
        text = "off" if value is False else str(value).lower()
        if text not in known:
            raise self.fault(section, key, f"{_shown(value)} is not supported", f"Use one of: {', '.join(known)}.")
        return text


def read_configuration(path: Path) -> tuple[Configuration, list[str]]:
    """Read a configuration of DLIO; also what of it has no effect here.

    Raises BadInputError for what is no YAML, for keys that DLIO does not know, and for what is not supported.
    """
    refuse_other_kind(path, "dlio", OTHER_KINDS["dlio"].name)
    remedy = "Give the name of an existing file."
    try:
        text = read_regular(path, _MOST_BYTES, "the configuration cannot be read", remedy).decode("utf-8")
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise BadInputError(
            "the configuration is not YAML", where=str(path), why=" ".join(str(error).split())
        ) from error
    configuration, notes = Configuration(path), []
    sections = _pairs(root, path, "the configuration")
    if len(sections) == 1 and sections[0][0] == "workload":
        sections = _pairs(sections[0][1], path, "workload")
    for name, node in sections:
        notes += _take_section(configuration, name, node)
    _refuse_unsupported(configuration)
    return configuration, notes


def _take_section(configuration: Configuration, name: str, node: Any) -> list[str]:
    """Put the values of a section into the configuration; return what is to be said about them."""
    path, notes = configuration.path, []
    section = "reader" if name == "data_reader" else name
    if section not in KEYS:
        raise _unknown(f"section {name}", name, KEYS, path, node)
    if isinstance(node, yaml.ScalarNode):
        if section not in ("model", "framework") and node.value:
            raise BadInputError(f"{name} is not a section with keys", where=f"{path}:{_line(node)}")
        entries = [("name" if section == "model" else "", node)] if node.value else []
    else:
        entries = _pairs(node, path, name)
    for given, value in entries:
        place = OLDER.get((section, given), (section, given))
        if place[1] not in KEYS[place[0]]:
            raise _unknown(f"key {section}.{given}", given, KEYS[section], path, value)
        if place in configuration.lines:
            raise BadInputError(f"{section}.{given} is there twice", where=f"{path}:{_line(value)}")
        configuration.values[place] = _plain(value, path)
        configuration.lines[place] = _line(value)
        remark = KEYS[place[0]][place[1]]
        if remark not in ("", QUIET):
            notes.append(f"{section}{'.' if given else ''}{given}: {remark}")
    return notes


def _refuse_unsupported(configuration: Configuration) -> None:
    for place, (allowed, remedy) in NOT_SUPPORTED.items():
        value = configuration.values.get(place)
        # True is 1 for Python, and one checkpoint is not a yes.
        same = (value == one and isinstance(value, bool) == isinstance(one, bool) for one in allowed)
        if value is not None and not any(same):
            raise configuration.fault(*place, f"{_shown(value)} is not supported", remedy)


def _pairs(node: Any, path: Path, what: str) -> list[tuple[str, Any]]:
    if not isinstance(node, yaml.MappingNode):
        where = f"{path}:{_line(node)}" if node else str(path)
        raise BadInputError(f"{what} is not a list of KEY: VALUE", where=where, remedy="Give a configuration of DLIO.")
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise BadInputError(f"a key of {what} is not a word", where=f"{path}:{_line(key)}")
    return [(str(key.value), value) for key, value in node.value]


def _line(node: Any) -> int:
    return int(node.start_mark.line) + 1


def _count(node: Any, known: dict[int, float]) -> float:
    """Return how many values a node has, those of aliases each time; without end where it is in itself."""
    if id(node) not in known:
        known[id(node)] = math.inf
        parts = [] if isinstance(node, yaml.ScalarNode) else node.value
        if isinstance(node, yaml.MappingNode):
            parts = [part for pair in parts for part in pair]
        known[id(node)] = 1 + sum(_count(part, known) for part in parts)
    return known[id(node)]


def _shown(value: Any) -> str:
    """Return what an error says of a value; numbers of YAML may be longer than Python writes."""
    try:
        return reprlib.repr(value)
    except ValueError:
        return "this number"


def _plain(node: Any, path: Path) -> Any:
    try:
        if _count(node, {}) > _MOST_VALUES:
            raise ValueError
        return yaml.SafeLoader("").construct_object(node, deep=True)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadInputError("this is not a valid YAML value", where=f"{path}:{_line(node)}") from error


def _unknown(what: str, name: str, known: Mapping[str, object], path: Path, node: Any) -> BadInputError:
    near = nearest_word(name, list(known), cutoff=0.4)
    remedy = f"The nearest known one is {near}. " if near else ""
    return BadInputError(
        f"unknown {what}", where=f"{path}:{_line(node)}", remedy=f"{remedy}Known: {', '.join(filter(None, known))}."
    )
