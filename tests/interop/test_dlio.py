"""``strakes run dlio CONFIG.yaml``: translation of DLIO configurations to plans of epochs and checkpoints."""

from __future__ import annotations

import itertools
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strakes.base.errors import BadInputError
from strakes.base.units import MIB
from strakes.cli.main import run as strakes
from strakes.interop.command_configuration import keys_of
from strakes.interop.command_dlio import TOOL, read_configuration, translate
from strakes.interop.command_options import Translation, table_of
from strakes.model.phases import TrainingPhase, TransferPhase
from strakes.model.plan import Phase

KEYS = keys_of("dlio")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# DLIO's configuration of UNet3D, with key names of its current and older versions.
UNET3D = (Path(__file__).parent / "configurations" / "unet3d.yaml").read_text()
SMALL = """
workflow: {generate_data: True, train: True}
dataset: {data_folder: DATA, format: npz, num_files_train: 40, record_length_bytes: 4096}
reader: {data_loader: pytorch, batch_size: 4, read_threads: 2}
train: {epochs: 2, computation_time: 0.01}
"""


def translation(tmp_path: Path, text: str, ranks: int = 4) -> Translation:
    """Translate a configuration, whose data folder is created."""
    data = tmp_path / "data"
    data.mkdir(exist_ok=True)
    path = tmp_path / "config.yaml"
    path.write_text(text.replace("DATA", str(data)))
    return translate([str(path)], ranks, 1)


def phases_of(translated: Translation) -> dict[str, Phase]:
    return {phase.name: phase for phase in translated.plan.phases}


def epoch_of(translated: Translation, name: str = "epoch-1") -> TrainingPhase:
    phase = phases_of(translated)[name]
    assert isinstance(phase, TrainingPhase)
    return phase


def test_an_original_configuration_of_dlio_is_accepted(tmp_path: Path) -> None:
    translated = translation(tmp_path, UNET3D)
    epochs = (f"epoch-{epoch}" for epoch in range(1, 6))
    assert list(phases_of(translated)) == ["generate", *epochs, "checkpoint-1-write", "checkpoint-1-read"]
    assert translated.measured == tuple(phases_of(translated))[1:]
    assert translated.directory == tmp_path / "data"
    epoch = epoch_of(translated)
    assert (epoch.file_count, epoch.sample_bytes, epoch.sample_stdev_bytes) == (168, 146600628, 68341808)
    assert (epoch.batch_samples, epoch.readers, epoch.prefetch_batches) == (7, 4, 2)
    assert (epoch.steps, epoch.compute_ns, epoch.shuffle) == (6, 323_000_000, "samples")
    assert translated.budget_s == pytest.approx(60 + 1.5 * 5 * 6 * 0.323)
    said = " ".join(translated.notes)
    for word in ("framework", "record_length_bytes_resize", "generate_data", "data_folder", "au"):
        assert word in said


def test_keys_without_effect_are_accepted(tmp_path: Path) -> None:
    epoch = epoch_of(translation(tmp_path, SMALL.replace("read_threads: 2", "read_threads: 0, prefetch_size: 6")))
    assert (epoch.readers, epoch.prefetch_batches) == (0, TrainingPhase.prefetch_batches)
    assert translation(tmp_path, SMALL.replace("train: True}", "train: True, debug: True}")).measured


def test_only_the_first_epoch_drops_the_page_cache(tmp_path: Path) -> None:
    translated = translation(tmp_path, SMALL)
    assert [epoch_of(translated, f"epoch-{number}").cache for number in (1, 2)] == ["drop", "as-is"]


def test_checkpoints_follow_the_configured_epochs(tmp_path: Path) -> None:
    text = UNET3D.replace("checkpoint_after_epoch: 5", "checkpoint_after_epoch: 1")
    names = list(phases_of(translation(tmp_path, text)))
    before = [names[names.index(f"checkpoint-{number}-write") - 1] for number in (1, 2, 3)]
    assert before == ["epoch-1", "epoch-3", "epoch-5"]
    assert names[-1] == "checkpoint-3-read"


@pytest.mark.parametrize(("kind", "first_ranks"), [("rank_zero", 1), ("all_ranks", 0)])
def test_a_checkpoint_is_written_by_the_configured_ranks(tmp_path: Path, kind: str, first_ranks: int) -> None:
    text = UNET3D.replace("model_size: 499153191", f"model_size: 499153191\n  type: {kind}\n  fsync: True")
    phases = phases_of(translation(tmp_path, text))
    write, read = phases["checkpoint-1-write"], phases["checkpoint-1-read"]
    assert isinstance(write, TransferPhase) and isinstance(read, TransferPhase)
    assert (write.first_ranks, write.sync, read.cache) == (first_ranks, "fsync", "drop")
    assert write.block_bytes == 477 * MIB == read.block_bytes


def test_checkpoints_without_training_are_written_and_read_the_configured_number_of_times(tmp_path: Path) -> None:
    text = """
workflow: {train: False, checkpoint: True}
model: {model_size_bytes: 5000}
checkpoint: {checkpoint_folder: DATA, num_checkpoints_write: 2, num_checkpoints_read: 1}
dataset: {data_folder: DATA}
"""
    translated = translation(tmp_path, text)
    assert translated.measured == ("checkpoint-1-write", "checkpoint-2-write", "checkpoint-1-read")
    assert translated.plan.bytes_on_target() == 5000


@pytest.mark.parametrize(
    ("written", "mean_ns", "stdev_ns"),
    [
        ("0.25", 250_000_000, 0),
        ("1e-3", 1_000_000, 0),
        ("{mean: 0.5, stdev: 0.1}", 500_000_000, 100_000_000),
        ("{mean: 0.5, stdev: 0.1, type: normal}", 500_000_000, 100_000_000),
    ],
)
def test_the_compute_time_of_a_step_follows_the_configuration(
    tmp_path: Path, written: str, mean_ns: int, stdev_ns: int
) -> None:
    epoch = epoch_of(translation(tmp_path, SMALL.replace("computation_time: 0.01", f"computation_time: {written}")))
    assert (epoch.compute_ns, epoch.compute_stdev_ns) == (mean_ns, stdev_ns)


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("train.epochs", "train: {epochs: many}"),
        ("train.computation_time", "train: {computation_time: {shape: 1, scale: 2, type: gamma}}"),
        ("train.computation_time", "train: {computation_time: -1}"),
        ("train.total_training_steps", "train: {total_training_steps: 999}"),
        ("reader.batch_size", "reader: {batch_size: 100}"),
        ("reader.odirect", "reader: {odirect: True}"),
        ("reader.preprocess_time", "reader: {preprocess_time: 0.5}"),
        ("reader.data_loader", "reader: {data_loader: synthetic}"),
        ("dataset.format", "dataset: {format: synthetic}"),
        ("dataset.compression", "dataset: {compression: gzip}"),
        ("dataset.record_dims", "dataset: {record_dims: [3, 4]}"),
        ("workflow.evaluation", "workflow: {evaluation: True}"),
        ("workflow.train", "workflow: {train: False}"),
        ("workflow.generate_data", "workflow: {generate_data: perhaps}"),
        ("checkpoint.steps_between_checkpoints", "checkpoint: {steps_between_checkpoints: 10}"),
        ("model.transformer", "model: {transformer: {hidden_size: 2048}}"),
        ("storage.storage_type", "storage: {storage_type: s3}"),
        ("output.metric", "output: {metric: {exclude_start_steps: 3}}"),
        ("reader.batchsize", "reader: {batchsize: 4}"),
        ("trainn", "trainn: {epochs: 1}"),
        ("train.epochs", "train: {epochs: 311541}"),
    ],
)
def test_unsupported_keys_and_values_are_refused_with_name_and_line(tmp_path: Path, key: str, line: str) -> None:
    base = "" if line.startswith("dataset") else "\ndataset: {data_folder: DATA}"
    with pytest.raises(BadInputError) as refusal:
        translation(tmp_path, line + base)
    assert key in refusal.value.what
    assert refusal.value.where == f"{tmp_path / 'config.yaml'}:1"
    assert refusal.value.remedy
    assert not list((tmp_path / "data").iterdir())


@pytest.mark.parametrize("folder", ["/nowhere/mounted/data", "${model.name}/data"])
def test_a_folder_that_may_be_on_another_file_system_is_refused(tmp_path: Path, folder: str) -> None:
    for text in (SMALL.replace("DATA", folder), f"{UNET3D.replace('DATA/checkpoints', folder)}"):
        with pytest.raises(BadInputError, match="folder"):
            translation(tmp_path, text)
    translation(tmp_path, SMALL.replace("DATA", "DATA/new"))


@pytest.mark.parametrize(
    "text",
    [
        *("[1, 2", "- a\n- b", "", "train: 5", "train: {epochs: 1, epochs: 2}", "\tx: 1"),
        "dataset:\n  ? [a]\n  : 1\n",
    ],
)
def test_a_file_that_is_not_a_configuration_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadInputError):
        translation(tmp_path, text)


@settings(deadline=None, max_examples=60)
@given(
    st.dictionaries(
        st.sampled_from([*KEYS, "other"]),
        st.dictionaries(
            st.sampled_from(sorted({key for keys in KEYS.values() for key in keys})),
            st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.lists(st.none())),
            max_size=3,
        ),
        max_size=4,
    )
)
def test_arbitrary_values_give_a_plan_or_a_refusal(
    tmp_path_factory: pytest.TempPathFactory, document: dict[str, Any]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(json.dumps(document))
    with suppress(BadInputError):
        assert translate([str(path)], 2, 1).measured


def test_every_refused_key_is_a_key_of_dlio_and_in_the_help() -> None:
    for name in table_of("dlio")["not-supported"]:
        section, _, key = name.partition(".")
        assert KEYS[section][key] == ""
        assert name in TOOL.help()


@pytest.mark.parametrize("name", ["unet3d", "resnet50", "cosmoflow"])
def test_the_examples_can_be_translated(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    translated = translate([str(EXAMPLES / f"dlio-{name}.yaml")], 2, 1)
    assert translated.plan.bytes_on_target() < 64 * MIB
    assert {"generate", "epoch-1", "epoch-2"} <= set(translated.measured)


def test_slow_accelerators_are_well_utilised_and_the_cached_epoch_is_flagged(tmp_path: Path) -> None:
    text = SMALL.replace("computation_time: 0.01", "computation_time: 0.05")
    text += "checkpoint: {checkpoint_folder: DATA, checkpoint_after_epoch: 2}\n"
    text = text.replace("train: True}", "train: True, checkpoint: True}")
    data, path, out = (tmp_path / name for name in ("data", "config.yaml", "findings.json"))
    data.mkdir()
    path.write_text(text.replace("DATA", str(data)))
    assert strakes(["run", "-n", "2", "--budget", "1s", "--json", str(out), "dlio", str(path)]) == 0
    assert not list(data.iterdir())
    findings = json.loads(out.read_text())
    cells = {cell["id"]: cell for cell in findings["cells"]}
    assert 80 < cells["plan:epoch-2:utilisation"]["median"] <= 100
    # 5 steps of 4 samples on each of 2 accelerators take slightly more than 5 times 50 ms.
    assert 100 < cells["plan:epoch-2"]["median"] < 160
    assert {"plan:checkpoint-1-write", "plan:checkpoint-1-read"} <= set(cells)
    suspects = [one for one in findings["warnings"] if one["code"] == "cache-suspect"]
    assert any("plan:epoch-2" in one["cells"] for one in suspects)
    statements = {one["id"]: one["statement"] for one in findings["findings"]}
    assert "100 % of the data were in the page cache" in statements["plan-fed-epoch-2"]


_AGAIN = "[" + ", ".join(["&a0 [x, x]", *(f"&a{at} [{', '.join([f'*a{at - 1}'] * 10)}]" for at in range(1, 12))]) + "]"
_MERGED = "[" + ", ".join(["&a0 {x: 1}", *(f"&a{at} {{<<: [*a{at - 1}, *a{at - 1}]}}" for at in range(1, 40))]) + "]"


@pytest.mark.parametrize(
    "value",
    [
        *("1:" * 5000 + "1", "[" + "1:" * 5000 + "1]", _AGAIN, _MERGED, "&a [*a]", "{? [x] : 1}"),
        *(f"[{'9,' * 100_000}1]", "9" * 5000, "2026-13-45", "0000-00-00", "[" * 5000),
        "\n" + "".join(f"{' ' * n}a:\n" for n in range(4, 1500)),
    ],
    ids=itertools.count(),
)
@pytest.mark.parametrize("key", ["record_dims", "num_files_train"])
def test_an_invalid_or_endless_value_is_refused_with_its_file(tmp_path: Path, value: str, key: str) -> None:
    (tmp_path / "x.yaml").write_text(f"dataset:\n  data_folder: /x\n  {key}: {value}\n")
    with pytest.raises(BadInputError) as refused:
        translate([str(tmp_path / "x.yaml")], 2, 1)
    assert str(tmp_path / "x.yaml") in refused.value.where and len(str(refused.value)) < 1000


def test_a_pipe_and_a_file_that_is_too_large_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"#" * ((1 << 20) + 1))
    for name in ("pipe", "large"):
        with pytest.raises(BadInputError):
            read_configuration(tmp_path / name)


def test_a_budget_below_the_compute_time_is_refused_before_any_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data").mkdir()
    path = tmp_path / "config.yaml"
    text = SMALL.replace("epochs: 2, computation_time: 0.01", "epochs: 60, computation_time: 0.5")
    path.write_text(text.replace("DATA", str(tmp_path / "data")))
    assert strakes(["run", "-n", "2", "--budget", "10s", "dlio", str(path)]) == 2
    said = capsys.readouterr().err
    assert "one run takes at least 150 s" in said and "Give --budget 285s" in said
    assert list((tmp_path / "data").iterdir()) == []
