"""Journals are acted on with the rights of their user, so a journal that another user could have planted is refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from strakes.base.errors import BadInputError
from strakes.cli.main import run as run_command
from strakes.control import drill_journal as drills
from strakes.control.drill_undo import RunCommand
from strakes.control.knob_journal import KnobJournal, read_journal
from strakes.lab.state import JOURNAL, LabJournal

OTHER = 65534


def of_a_drill(store: Path) -> Path:
    return drills.announce(store, "a fault", RunCommand(("touch", str(store / "ran"))))


def of_knobs(store: Path) -> Path:
    journal = KnobJournal.begin(store, "/target", ["strakes"])
    journal.release()
    return journal.path


KINDS = ("symbolic link", "hard link", "file of another", "directory of another", "file that others can write")


def planted(path: Path, kind: str) -> None:
    """Change a valid journal so that another user could have planted it."""
    elsewhere = path.parent.parent / "copy"
    match kind:
        case "symbolic link":
            path.rename(elsewhere)
            path.symlink_to(elsewhere)
        case "hard link":
            os.link(path, elsewhere)
        case "file of another":
            os.chown(path, OTHER, OTHER)
        case "directory of another":
            os.chown(path.parent, OTHER, OTHER)
        case "file that others can write":
            path.chmod(0o666)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("make", "read"), [(of_a_drill, drills.put_right), (of_knobs, read_journal)])
def test_a_journal_that_others_could_have_planted_is_refused(
    tmp_path: Path, make: Callable[[Path], Path], read: Callable[[Path], object], kind: str
) -> None:
    if os.geteuid() != 0:
        pytest.skip("giving files away needs root")
    path = make(tmp_path)
    planted(path, kind)
    with pytest.raises(BadInputError, match="belongs to another user"):
        read(path)


def of_a_lab(store: Path) -> Path:
    place = store / "lab"
    place.mkdir(mode=0o755)
    journal = LabJournal.create(place, "ha", {})
    journal.note(ready_after_s=1, facts={"commands": {"n": ["touch", str(store / "ran")]}})
    journal.close()
    return place / JOURNAL


@pytest.mark.parametrize("kind", [*KINDS, "pipe", "state of another"])
@pytest.mark.parametrize(
    "words", ["status", "status lab", "exec lab n x", "mount lab", "down lab", "up tmpfs --name lab"]
)
def test_a_lab_that_others_could_have_planted_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, kind: str
) -> None:
    if os.geteuid() != 0:
        pytest.skip("giving files away needs root")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    store = tmp_path / "strakes" / "lab"
    store.mkdir(parents=True)
    path = of_a_lab(store)
    if kind == "state of another":
        os.chown(tmp_path, OTHER, OTHER)
    elif kind == "pipe":
        path.unlink()
        os.mkfifo(path)
    else:
        planted(path, kind)
    assert run_command(["lab", *words.split()]) == BadInputError.exit_status
    assert not (store / "ran").exists()
