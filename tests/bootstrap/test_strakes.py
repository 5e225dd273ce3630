"""./strakes in a checkout that is set up: runs the command, unless the sources are newer than the environment."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from bootstrap.checkout import Checkout


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout.create(tmp_path / "a checkout with spaces")


def test_arguments_reach_the_command_unchanged(checkout: Checkout) -> None:
    python = checkout.install()
    called = checkout.strakes("survey", "a dir", "", "--json", "-")
    assert called.stdout.splitlines() == [str(python), "-I", "-m", "strakes", "survey", "a dir", "", "--json", "-"]
    assert (called.returncode, called.stderr) == (0, "")


def test_it_works_through_a_symbolic_link_and_from_any_directory(checkout: Checkout, tmp_path: Path) -> None:
    python = checkout.install()
    (tmp_path / "bin").mkdir()
    link = tmp_path / "bin" / "strakes"
    link.symlink_to(os.path.relpath(checkout.path / "strakes", link.parent))
    assert checkout.strakes("runs", through=link, cwd=Path("/")).stdout.splitlines()[0] == str(python)


def test_it_works_with_a_relative_path_and_a_misleading_cdpath(checkout: Checkout, tmp_path: Path) -> None:
    python = checkout.install()
    called = checkout.strakes(
        "runs", through=Path(checkout.path.name) / "strakes", cwd=tmp_path, environment={"CDPATH": "/usr:/"}
    )
    assert called.stdout.splitlines()[0] == str(python)


def test_python_variables_of_the_environment_are_ignored(checkout: Checkout) -> None:
    checkout.install()
    assert "-I" in checkout.strakes("runs", environment={"PYTHONPATH": "/somewhere"}).stdout.splitlines()


def test_an_unchanged_checkout_is_fresh(checkout: Checkout) -> None:
    checkout.install()
    assert checkout.is_fresh()


@pytest.mark.parametrize(
    "source", ["CMakeLists.txt", "pyproject.toml", "engine/main.cpp", "schemas/plan.json", "src/strakes/version.py"]
)
def test_an_edited_source_is_not_fresh(checkout: Checkout, source: str) -> None:
    checkout.install()
    (checkout.path / source).write_text("edited\n")
    assert not checkout.is_fresh()


def test_a_source_replaced_by_an_older_one_is_not_fresh(checkout: Checkout) -> None:
    checkout.install()
    (checkout.path / "engine" / "main.cpp").write_text("edited\n")
    os.utime(checkout.path / "engine" / "main.cpp", (0, 0))
    assert not checkout.is_fresh()


def test_a_new_and_a_removed_source_are_not_fresh(checkout: Checkout) -> None:
    checkout.install()
    (checkout.path / "engine" / "new.cpp").touch()
    assert not checkout.is_fresh()
    (checkout.path / "engine" / "new.cpp").unlink()
    assert checkout.is_fresh()
    (checkout.path / "engine" / "main.cpp").unlink()
    assert not checkout.is_fresh()


def test_a_source_that_was_only_touched_is_fresh(checkout: Checkout) -> None:
    checkout.install()
    (checkout.path / "engine" / "main.cpp").touch()
    assert checkout.is_fresh()


def test_an_edited_python_source_is_fresh_because_it_is_imported_from_the_checkout(checkout: Checkout) -> None:
    checkout.install()
    (checkout.path / "src" / "strakes" / "units.py").write_text("edited\n")
    assert checkout.is_fresh()


def test_a_checkout_that_was_moved_is_not_fresh(checkout: Checkout, tmp_path: Path) -> None:
    checkout.install()
    moved = tmp_path / "moved"
    checkout.path.rename(moved)
    assert not Checkout(moved).is_fresh()


def test_a_checkout_copied_with_its_environment_is_not_fresh(checkout: Checkout, tmp_path: Path) -> None:
    checkout.install()
    shutil.copytree(checkout.path, tmp_path / "copy", symlinks=True)
    assert not Checkout(tmp_path / "copy").is_fresh()


def test_an_environment_without_its_python_is_not_fresh(checkout: Checkout) -> None:
    python = checkout.install()
    python.unlink()
    python.symlink_to("/nowhere/python3")
    assert not checkout.is_fresh()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for a read-only mount")
def test_a_read_only_checkout_uses_the_users_cache(checkout: Checkout, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    mount = f'mount --bind "{checkout.path}" "{checkout.path}" && mount -o remount,bind,ro "{checkout.path}"'
    choose = f'. "{checkout.path}/bootstrap/state.sh"; choose_environment "{checkout.path}"; echo "$environment"'
    private = ["unshare", "--mount", "--propagation", "slave", "bash", "-c"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    chosen = subprocess.run(
        [*private, f"{mount} && {choose}"], env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()
    assert Path(chosen).parent == cache / "strakes"

    python = checkout.install(Path(chosen))
    run = f'{mount} && "{checkout.path}/strakes" runs'
    called = subprocess.run(
        [*private, run], env=environment, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert called == [str(python), "-I", "-X", f"pycache_prefix={chosen}/pycache", "-m", "strakes", "runs"]
