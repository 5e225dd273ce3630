"""./strakes runs no Python that another user could have prepared in the checkout or in the cache."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from bootstrap.checkout import Checkout, bare_path
from mounts import faulty_mounted, unmount

OTHER = 65534

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root for a read-only mount")


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout.create(tmp_path / "checkout")


def read_only(checkout: Checkout, **variables: str) -> subprocess.CompletedProcess[str]:
    here = checkout.path
    run = f'mount --bind "{here}" "{here}" && mount -o remount,bind,ro "{here}" && "{here}/strakes" runs'
    private = ["unshare", "--mount", "--propagation", "slave", "bash", "-c", run]
    environment = {key: value for key, value in os.environ.items() if key not in ("HOME", "XDG_CACHE_HOME")}
    environment |= {"STRAKES_NO_INSTALL": "1", **variables}
    return subprocess.run(private, env=environment, capture_output=True, text=True, timeout=60)


def prepared(checkout: Checkout, cache: Path) -> Path:
    name = checkout.shell('sum=$(printf %s "$1" | cksum); echo "${sum// /-}"').stdout.strip()
    environment = cache / "strakes" / name
    checkout.install(environment)
    return environment


def give_away(top: Path) -> None:
    for path in (top, *top.rglob("*")):
        os.chown(path, OTHER, OTHER, follow_symlinks=False)


@pytest.mark.parametrize("name", ["cache", "a 1", "a\t1", "a\n1", "a#1", "a\\1", r"a\0401"])
def test_a_cache_on_a_mount_of_another_user_is_refused(checkout: Checkout, tmp_path: Path, name: str) -> None:
    place = tmp_path / name
    place.mkdir()
    with faulty_mounted(mounter=OTHER) as mount:
        mount.place.chmod(0o700)
        subprocess.run(["mount", "--bind", mount.place, place], check=True)
        try:
            done = read_only(checkout, XDG_CACHE_HOME=str(place))
        finally:
            unmount(place)
    assert done.returncode == 3 and "other users can write" in done.stderr


@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize(
    "kind",
    [
        "environment of another",
        "programs of another",
        "packages of another",
        "environment that others can write",
        "programs in a sticky directory",
        "Python of another",
        "Python below a directory of another",
        "Python behind a link of another",
    ],
)
def test_a_python_that_another_user_could_have_planted_in_the_checkout_is_not_run(
    checkout: Checkout, tmp_path: Path, kind: str, fresh: bool
) -> None:
    python = checkout.install()
    programs, environment, elsewhere = python.parent, python.parents[1], tmp_path / "elsewhere"
    (environment / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    elsewhere.mkdir()
    place = elsewhere / "python"
    if kind.startswith("Python"):
        python.rename(place)
        python.symlink_to(place)
    assert checkout.strakes("runs").stdout
    match kind:
        case "environment of another":
            give_away(place := environment)
        case "programs of another":
            give_away(place := programs)
        case "packages of another":
            give_away(place := environment / "lib" / "python3.11" / "site-packages")
        case "environment that others can write":
            (place := environment).chmod(0o775)
        case "programs in a sticky directory":
            (place := programs).chmod(0o1777)
        case "Python of another":
            give_away(place)
        case "Python below a directory of another":
            os.chown(place := elsewhere, OTHER, OTHER)
        case "Python behind a link of another":
            place.rename(elsewhere / "real")
            place.symlink_to("real")
            os.chown(place, OTHER, OTHER, follow_symlinks=False)
    if not fresh:
        (environment / "strakes.stamp").unlink()
    refused = checkout.strakes("runs", environment={"STRAKES_NO_INSTALL": "1"})
    assert refused.returncode == 3 and refused.stdout == ""
    assert f"where: {place}\n" in refused.stderr and f"rm -r '{environment}'" in refused.stderr


@pytest.mark.parametrize("owner", [0, OTHER])
def test_the_set_up_uses_no_temporary_files_and_caches_that_others_can_replace(
    checkout: Checkout, tmp_path: Path, owner: int
) -> None:
    path, place = bare_path(tmp_path / "bin", "stat"), tmp_path / "temporary"
    place.mkdir()
    os.chown(place, owner, owner)
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "uv").symlink_to(place)
    variables = ("TMPDIR", "UV_CACHE_DIR", "PIP_CONFIG_FILE")
    words = " ".join(f"${{{name}-none}}" for name in variables)
    said = f'echo "{words} $UV_NO_CONFIG ${{PIP_PYTHON-none}} $PIP_CERT ${{UV_NO_CACHE-none}}" >>"{tmp_path}/seen"'
    (tmp_path / "bin" / "python3").write_text(f"#!/bin/bash\n{said}\nexit 1\n")
    (tmp_path / "bin" / "python3").chmod(0o755)
    environment = {"STRAKES_NO_INSTALL": "1", "PATH": path, "PIP_PYTHON": "/bin/false", "PIP_CERT": "/x"}
    environment["XDG_CACHE_HOME"] = f"{tmp_path}/cache"
    checkout.strakes(environment=environment | dict.fromkeys(variables, str(place)))
    places, no_cache = " ".join(["none" if owner else str(place)] * 3), "1" if owner else "none"
    assert (tmp_path / "seen").read_text() == f"{places} 1 none /x {no_cache}\n"
    # The file was created with this mode, because there is no chmod on this PATH.
    for lock in ("bootstrap.lock", ".lock"):
        assert (checkout.path / ".venv" / lock).stat().st_mode & 0o777 == 0o600


def test_root_runs_the_python_of_a_checkout_whose_owner_made_it(checkout: Checkout) -> None:
    checkout.install()
    give_away(checkout.path)
    assert checkout.strakes("runs").returncode == 0


@pytest.mark.parametrize("variable", ["HOME", "XDG_CACHE_HOME"])
def test_a_python_in_the_cache_of_another_user_is_not_run(checkout: Checkout, tmp_path: Path, variable: str) -> None:
    place = tmp_path / "theirs"
    prepared(checkout, place / ".cache" if variable == "HOME" else place)
    assert read_only(checkout, **{variable: str(place)}).returncode == 0
    give_away(place)
    refused = read_only(checkout, **{variable: str(place)})
    assert refused.returncode == 3 and refused.stdout == ""
    assert "other users can write" in refused.stderr and "XDG_CACHE_HOME" in refused.stderr


@pytest.mark.parametrize("part", [".", "strakes", "the environment"])
def test_a_cache_in_a_directory_that_others_can_write_is_refused(checkout: Checkout, tmp_path: Path, part: str) -> None:
    cache = tmp_path / "cache"
    environment = prepared(checkout, cache)
    (environment if part == "the environment" else cache / part).chmod(0o777)
    assert read_only(checkout, XDG_CACHE_HOME=str(cache)).returncode == 3


def test_the_cache_is_reached_only_through_links_of_root(checkout: Checkout, tmp_path: Path) -> None:
    prepared(checkout, tmp_path / "cache")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "cache")
    assert read_only(checkout, XDG_CACHE_HOME=str(link)).returncode == 0
    os.chown(link, OTHER, OTHER, follow_symlinks=False)
    assert read_only(checkout, XDG_CACHE_HOME=str(link)).returncode == 3


def test_without_a_home_a_directory_that_others_made_is_refused(checkout: Checkout) -> None:
    theirs = Path("/var/tmp/strakes-0")
    if theirs.exists():
        pytest.skip(f"{theirs} exists")
    try:
        prepared(checkout, theirs / ".cache")
        give_away(theirs)
        assert read_only(checkout).returncode == 3
    finally:
        shutil.rmtree(theirs)


def test_locking_an_environment_truncates_no_file(checkout: Checkout, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    environment = prepared(checkout, cache)
    (environment / "strakes.stamp").unlink()
    (environment / "bootstrap.lock").write_text("content")
    read_only(checkout, XDG_CACHE_HOME=str(cache), PATH="/usr/bin:/bin", CXX="/nonexistent")
    assert (environment / "bootstrap.lock").read_text() == "content"
    assert (environment / "bootstrap.lock").stat().st_mode & 0o007 == 0
