"""``strakes target`` on the recorded output of a real Lustre."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from strakes.base.units import MIB
from strakes.cli.target import command, layout_text, placement_text
from strakes.targets.description import Layout, LayoutComponent, Placement
from targets.lustre.test_target import target


@pytest.fixture
def lustre(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file_system = target(tmp_path)
    # Only this directory's layout and placement were recorded, not those of the root.
    directory = tmp_path / "s" / "d_c2"
    directory.mkdir(parents=True)
    given = file_system.layout(directory)
    monkeypatch.setattr(file_system, "layout", lambda _path: given)
    monkeypatch.setattr(file_system, "placement", lambda _path: Placement("inherit", (0,)))
    monkeypatch.setattr("strakes.targets.registry.detect", lambda _path, _servers=None: file_system)
    return tmp_path


def test_servers_targets_and_limits_are_shown(lustre: Path) -> None:
    done = CliRunner().invoke(command, [str(lustre)], catch_exceptions=False)
    assert done.exit_code == 0
    for title in (
        "Servers",
        "Metadata targets",
        "Data targets",
        "strakes can change",
        "strakes cannot change, and why",
    ):
        assert f"\n{title}" in done.output
    assert "labfs-OST0000" in done.output and "labfs-MDT0003" in done.output
    assert "layout here" in done.output and "stripe count 2" in done.output


def test_the_json_output_has_the_same_facts(lustre: Path) -> None:
    done = CliRunner().invoke(command, [str(lustre), "--json"], catch_exceptions=False)
    document = json.loads(done.output)
    assert document["file_system"] == "lustre"
    assert [metadata_target["name"] for metadata_target in document["description"]["metadata_targets"]] == [
        f"labfs-MDT000{number}" for number in range(4)
    ]
    assert document["layout"]["stripe_count"] == 2
    assert document["limits"][0]["why"] and document["controls"] and document["unlike"] == []


def test_layouts_are_described_in_words() -> None:
    assert layout_text(Layout()) == "the file system's default"
    text = "stripe count 2, stripe size 64 KiB, objects of 1 MiB, pool fast"
    assert layout_text(Layout(65536, 2, object_bytes=1 << 20, pool="fast")) == text
    assert layout_text(Layout(MIB, 1, pattern="0")) == "stripe count 1, stripe size 1 MiB"


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (
            [(0, 100 * MIB, Layout(MIB, 1, pattern="raid0"), 0), (100 * MIB, None, Layout(MIB, -1), 0)],
            "up to 100 MiB: stripe count 1, stripe size 1 MiB; rest: stripe count -1 (all targets)",
        ),
        (
            [(0, MIB, Layout(MIB, 0, pattern="mdt"), 0), (MIB, None, Layout(MIB, 16, None, "slow", "overstriped"), 0)],
            "up to 1 MiB: on the metadata target; rest: stripe count 16, stripe size 1 MiB, pool slow, overstriped",
        ),
        (
            [(0, MIB, Layout(MIB), 1), (MIB, None, Layout(MIB, 4), 1), (0, None, Layout(MIB), 2)],
            "mirror 1 (up to 1 MiB: stripe size 1 MiB; rest: stripe count 4), mirror 2 (stripe size 1 MiB)",
        ),
        (
            [(0, MIB, Layout(MIB), 0), (MIB, 8 * MIB, Layout(None, 0), 0), (8 * MIB, 8 * MIB, Layout(MIB, 2), 0)],
            "up to 1 MiB: stripe size 1 MiB; up to 8 MiB: extends the component before; then: stripe count 2",
        ),
    ],
)
def test_components_and_mirrors_are_described(parts: list[tuple[int, int | None, Layout, int]], text: str) -> None:
    assert layout_text(Layout(components=tuple(LayoutComponent(*part) for part in parts))) == text


@pytest.mark.parametrize(
    ("placement", "text"),
    [
        (Placement("manual", (1,), inherited=True), "on metadata target 1, also for subdirectories"),
        (Placement("manual", (2, 3)), "on metadata targets 2, 3"),
        (Placement("inherit", (0,)), "same as the parent directory (metadata target 0)"),
        (
            Placement("automatic", (1, 0), 2, "fnv_1a_64"),
            "spread by the file system over 2 metadata targets (1, 0), fnv_1a_64",
        ),
        (
            Placement("automatic", (3,), 1, inherited=True),
            "on metadata target 3, its subdirectories spread by the file system, also for subdirectories",
        ),
    ],
)
def test_placements_are_described_in_words(placement: Placement, text: str) -> None:
    assert placement_text(placement) == text
