"""A journal that another user could have planted is refused, because acting on it uses the rights of this user."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mounts import faulty_mounted
from strakes.base.errors import BadInputError
from strakes.base.files import open_kept
from strakes.cli.main import run as run_command
from strakes.control import drill_journal as drills
from strakes.control import knob_hold as hold
from strakes.control.drill_undo import RunCommand
from strakes.control.knob_journal import KnobJournal, read_journal
from strakes.control.knob_place import KnobPlace
from strakes.lab.manager import undo
from strakes.lab.state import JOURNAL, LabJournal, working_in

OTHER = 65534


def of_a_drill(store: Path) -> Path:
    return drills.announce(store, "a fault", RunCommand(("touch", str(store / "ran"))))


def of_knobs(store: Path) -> Path:
    journal = KnobJournal.begin(store, "/target", ["strakes"])
    journal.release()
    return journal.path


KINDS = ("symbolic link", "hard link", "file of another", "directory of another", "store of another", "free file")


def planted(path: Path, kind: str) -> None:
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
        case "store of another":
            os.chown(path.parent.parent, OTHER, OTHER)
        case "free file":
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
    if kind in ("directory of another", "store of another"):
        with pytest.raises(BadInputError, match="STRAKES_STORE=/var/lib/strakes") as refused:
            make(tmp_path)
        assert str(path.parent if kind == "directory of another" else tmp_path) in refused.value.why
        assert list(path.parent.glob("*.json*")) == [path]


@pytest.mark.parametrize(("make", "read"), [(of_a_drill, drills.put_right), (of_knobs, read_journal)])
def test_a_file_system_that_another_user_mounted_proves_no_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], Path], read: Callable[[Path], object]
) -> None:
    monkeypatch.setenv("STRAKES_RUN", str(tmp_path / "run"))
    hold.take(KnobPlace("k", "k", "/k"), "8", tmp_path, tmp_path)
    with faulty_mounted(mounter=OTHER) as mount:
        mount.place.chmod(0o700)
        journal = make(tmp_path)
        path = mount.place / journal.name
        subprocess.run(["cp", "-R", f"{tmp_path}/run/.", journal, mount.place], check=True)
        with pytest.raises(BadInputError, match="belongs to another user"):
            read(path)
        for place, count in ((tmp_path / "run", 1), (mount.place, 0)):
            monkeypatch.setenv("STRAKES_RUN", str(place))
            assert len(hold.records(tmp_path)[0]) == count
        mount.fail("statfs", errno=errno.EIO)
        with pytest.raises(PermissionError, match="the file belongs to another user"):
            open_kept(path, os.O_WRONLY)
        with pytest.raises(BadInputError, match="belongs to another user"), working_in(mount.place / "x", make=True):
            pass


def of_a_lab(store: Path) -> Path:
    place = store / "lab"
    place.mkdir(mode=0o755)
    journal = LabJournal.create(place, "hosts", {})
    journal.note(ready_after_s=1, facts={"commands": {"n": ["touch", str(store / "ran")]}})
    journal.close()
    return place / JOURNAL


@pytest.mark.parametrize("kind", [*KINDS, "pipe", "parent of another", "parent that others can write"])
@pytest.mark.parametrize(
    "words", ["status", "status lab", "exec lab n x", "mount lab", "down lab", "up tmpfs --name lab"]
)
def test_a_lab_that_others_could_have_planted_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, kind: str
) -> None:
    if os.geteuid() != 0:
        pytest.skip("giving files away needs root")
    state = tmp_path / "above" / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    store = state / "strakes" / "lab"
    store.mkdir(parents=True)
    path = of_a_lab(store)
    if kind == "parent of another":
        os.chown(state.parent, OTHER, OTHER)
    elif kind == "parent that others can write":
        state.parent.chmod(0o777)
    elif kind == "pipe":
        path.unlink()
        os.mkfifo(path)
    else:
        planted(path, kind)
    assert run_command(["lab", *words.split()]) == BadInputError.exit_status
    assert not (store / "ran").exists() and os.path.lexists(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files away needs root")
@pytest.mark.parametrize("make", [True, False])
def test_a_lab_behind_a_planted_link_is_not_touched(tmp_path: Path, make: bool) -> None:
    lab = tmp_path / "theirs" / "state" / "strakes" / "lab" / "lab"
    (tmp_path / "elsewhere" / "strakes" / "lab").mkdir(parents=True)
    lab.parents[3].mkdir()
    lab.parents[2].symlink_to(tmp_path / "elsewhere")
    os.chown(lab.parents[3], OTHER, OTHER)
    with pytest.raises(BadInputError, match="belongs to another user"), working_in(lab, make=make):
        pass
    with pytest.raises(BadInputError, match="belongs to another user"):
        undo(lab)
    assert not lab.exists()
