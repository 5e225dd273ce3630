"""./strakes runs the command if the environment is up to date with the sources of the checkout."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from bootstrap.checkout import ECHO, Checkout
from mounts import faulty_mounted


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout.create(tmp_path / "a & 1")


def test_arguments_reach_the_command_unchanged(checkout: Checkout, tmp_path: Path) -> None:
    (python := checkout.install()).write_text(f"{ECHO}umask\n")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    os.utime(temporary, (0, 0))
    # With this setting, bash writes here-strings to files, which another user may exchange. Do not use any.
    environment = {"TMPDIR": str(temporary), "BASH_COMPAT": "50"}
    prefix = checkout.path / ".venv/pycache"
    loose = ("bash", "-c", 'umask 0; mkdir -p "$(dirname "$1")"/.venv/pycache/root; exec "$@"', "bash")
    called = checkout.strakes("survey", "a dir", "", "--json", "-", environment=environment, become=loose)
    assert temporary.stat().st_mtime == 0 and not prefix.exists()
    words = [str(python), "-I", "-X", f"pycache_prefix={prefix}", "-m", "strakes", "survey", "a dir", "", "--json", "-"]
    assert called.stdout.splitlines() == [*words, "0022"]  # Others can write no byte code that Python keeps.
    assert (called.returncode, called.stderr) == (0, "")


def test_strakes_runs_through_a_symbolic_link_and_from_any_directory_despite_cdpath(
    checkout: Checkout, tmp_path: Path
) -> None:
    python = checkout.install()
    (tmp_path / "bin").mkdir()
    link = tmp_path / "bin" / "strakes"
    link.symlink_to(os.path.relpath(checkout.path / "strakes", link.parent))
    relative = Path(checkout.path.name) / "strakes"
    for through, cwd, cdpath in ((link, Path("/"), ""), (relative, tmp_path, "/usr:/")):
        called = checkout.strakes("runs", through=through, cwd=cwd, environment={"CDPATH": cdpath})
        assert called.stdout.splitlines()[0] == str(python)
    # Messages name strakes as the user did, or without a path if it is on the user's PATH.
    python.write_text('#!/bin/sh\necho "$STRAKES_CALLED"\n')
    assert checkout.strakes("runs", through=relative, cwd=tmp_path).stdout == "a\\ \\&\\ 1/strakes\n"
    with faulty_mounted() as mounted:
        mounted.hang("lookup")
        on_path = {"PATH": f"{mounted.place}/bin:{link.parent}:{os.environ['PATH']}"}
        assert checkout.strakes("runs", through=link, environment=on_path).stdout == "\n"


def edited(name: str) -> Callable[[Path], object]:
    return lambda checkout: (checkout / name).write_text("edited\n")


def edited_long_ago(checkout: Path) -> None:
    edited("engine/main.cpp")(checkout)
    os.utime(checkout / "engine/main.cpp", (0, 0))


def edited_below_a_wheel(checkout: Path) -> None:
    edited("engine/main.cpp")(checkout)
    stamp = checkout / ".venv" / "strakes.stamp"
    stamp.write_text(stamp.read_text().removesuffix("-\n") + "wheel\n")


def without_python(checkout: Path) -> None:
    (checkout / ".venv" / "bin" / "python").unlink()
    (checkout / ".venv" / "bin" / "python").symlink_to("/nowhere/python3")


CHANGES: dict[str, tuple[Callable[[Path], object], bool]] = {
    "unchanged": (lambda _: None, True),
    **{
        name: (edited(name), False)
        for name in (
            *("CMakeLists.txt", "pyproject.toml", "engine/main.cpp", "engine/new.cpp", "schemas/plan.json"),
            "src/strakes/base/version.py",
        )
    },
    "older": (edited_long_ago, False),
    "below a wheel": (edited_below_a_wheel, True),
    "removed": (lambda checkout: (checkout / "engine" / "main.cpp").unlink(), False),
    "only touched": (lambda checkout: (checkout / "engine" / "main.cpp").touch(), True),
    "imported from the checkout": (edited("src/strakes/base/units.py"), True),
    "without Python": (without_python, False),
}


@pytest.mark.parametrize("change", CHANGES)
def test_an_environment_is_up_to_date_unless_one_of_its_sources_changed(checkout: Checkout, change: str) -> None:
    checkout.install()
    make, fresh = CHANGES[change]
    make(checkout.path)
    assert checkout.is_fresh() == fresh


def test_the_environment_of_a_moved_checkout_is_not_up_to_date(checkout: Checkout, tmp_path: Path) -> None:
    checkout.install()
    moved = tmp_path / "moved"
    checkout.path.rename(moved)
    assert not Checkout(moved).is_fresh()


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
