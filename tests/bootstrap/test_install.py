"""First use on a machine that lacks packages, and first use that fails or is interrupted."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from bootstrap.checkout import Checkout, bare_path
from conftest import ROOT

NO_INSTALL = {"STRAKES_NO_INSTALL": "1"}


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout.create(tmp_path / "a checkout with spaces")


def test_a_bare_machine_gets_the_exact_commands_for_three_distributions(checkout: Checkout, tmp_path: Path) -> None:
    called = checkout.strakes("survey", "/tmp", environment={**NO_INSTALL, "PATH": bare_path(tmp_path / "bin")})
    assert called.returncode == 3 and called.stdout == ""
    assert "this machine lacks Python 3.11 or newer with venv, a C++20 compiler" in called.stderr
    assert "apt-get update && apt-get install -y python3 python3-venv g++" in called.stderr
    assert "dnf install -y python3.12 gcc-c++" in called.stderr
    assert "zypper install -y python312 gcc13-c++" in called.stderr
    assert "without a compiler:   ./strakes --from-wheel FILE.whl" in called.stderr


@pytest.mark.parametrize("words", ["survey no/such", "study overview no/such", "study reproduce S1 no/such"])
def test_a_missing_directory_is_reported_before_anything_is_set_up(checkout: Checkout, words: str) -> None:
    called = checkout.strakes(*f"{words}\33[31m".split(), environment=NO_INSTALL)
    assert called.returncode == 2 and "no such directory\n  where: no/such?[31m\n" in called.stderr
    assert not (checkout.path / ".venv").exists()


def test_a_wheel_is_named_with_its_version_as_the_program_that_runs(checkout: Checkout, tmp_path: Path) -> None:
    (checkout.path / "src/strakes/base/version.py").write_text('__version__ = "0.1.0"\n')
    path = python_only(tmp_path, "stat")
    break_python(Path(path))
    for version, warns in (("0.1.0", False), ("0.2.0", True)):
        wheel = tmp_path / f"strakes-{version}-cp311-cp311-manylinux_2_28_x86_64.whl"
        wheel.touch()
        called = checkout.strakes(
            "--from-wheel", str(wheel), "survey", "/tmp", environment={**NO_INSTALL, "PATH": path}
        )
        assert f"from now on ./strakes runs version {version} as it is in {wheel}" in called.stderr
        assert ("this checkout is version 0.1.0" in called.stderr) == warns


@pytest.mark.parametrize(
    "words", ["freeze --dry-run", "freeze it", "fmt src", "docs --lvie", "man -x", "fuzz long", "run"]
)
def test_a_development_command_with_unknown_words_does_nothing(checkout: Checkout, words: str) -> None:
    dev, environment = shutil.copy(ROOT / "dev", checkout.path), os.environ | NO_INSTALL
    for wrong, status in ((words.split(), 2), ([words.partition(" ")[0], "--help"], 0)):
        called = subprocess.run([dev, *wrong], capture_output=True, text=True, env=environment, timeout=60)
        assert called.returncode == status and (called.stderr if status else called.stdout).startswith("./dev setup ")


def wanted_packages(extras: str) -> set[str]:
    """Return the Debian packages installed on a bare machine; ``extras`` is "dev" for development and "" for use."""
    script = """
        . "$1/bootstrap/system.sh"
        command() { return 1; }
        may_install() { return 0; }
        for looks in has_compiler has_header has_slurm has_pacemaker is_unknown find_python; do
            eval "$looks() { return 1; }"
        done
        debian_python() { echo python3; }
        find_missing "$2"
        echo "${packages[@]}"
    """
    called = subprocess.run(
        ["bash", "-c", script, "bash", str(ROOT), extras], capture_output=True, text=True, check=True, timeout=60
    )
    return set(called.stdout.split())


def test_only_development_installs_servers() -> None:
    servers = {"ceph-mon", "glusterfs-server", "openssh-server", "slurmctld", "pacemaker", "prometheus"}
    assert servers <= wanted_packages("dev")
    used = wanted_packages("")
    assert {"g++", "nlohmann-json3-dev"} <= used
    assert used.isdisjoint(servers) and len(used) < 10
    # ./dev man installs no more packages than ./strakes does.
    (man,) = [line for line in (ROOT / "dev").read_text().splitlines() if line.strip().startswith("man)")]
    assert "bootstrap/install" in man and "--dev" not in man and "setup" not in man


@pytest.mark.parametrize(("program", "lacking"), [("c++", "a C++20 compiler"), ("python3", "Python 3.11 or newer")])
def test_a_too_old_program_counts_as_missing(checkout: Checkout, tmp_path: Path, program: str, lacking: str) -> None:
    path = python_only(tmp_path) if program == "c++" else bare_path(tmp_path / "bin", "c++")
    old = Path(path) / program
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    said = checkout.strakes(environment={**NO_INSTALL, "PATH": path}).stderr
    assert lacking in said and ("python3-venv" in said) == (program == "python3")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_without_root_the_user_is_referred_to_the_administrator(checkout: Checkout, tmp_path: Path) -> None:
    for folder in tmp_path.parents:
        if folder == Path(tempfile.gettempdir()):
            break
        folder.chmod(0o755)
    for folder in (tmp_path, *(parent for parent in checkout.path.parents if tmp_path in parent.parents)):
        folder.chmod(0o755)
    shutil.chown(checkout.path, user="nobody")
    nobody = [str(shutil.which("setpriv")), "--reuid=65534", "--regid=65534", "--clear-groups"]
    called = checkout.strakes("doctor", environment={"PATH": bare_path(tmp_path / "bin")}, become=nobody)
    assert called.returncode == 3 and "ask the administrator for" in called.stderr


def test_a_failing_step_names_its_log_and_shows_its_end(checkout: Checkout, tmp_path: Path) -> None:
    path = python_only(tmp_path, "c++")
    break_python(Path(path))
    called = checkout.strakes(environment={**NO_INSTALL, "PATH": path})
    if "nlohmann" in called.stderr:
        pytest.skip("nlohmann/json.hpp is not installed")
    assert called.returncode == 3 and "virtual environment (Python 3." in called.stderr
    assert "  | the disk is on fire" in called.stderr
    assert str(checkout.path / ".venv" / "bootstrap.log") in called.stderr


def break_python(path: Path) -> None:
    """Replace Python by one that passes the version check but fails to create a virtual environment."""
    broken = path / "python3"
    broken.unlink()
    broken.write_text(
        f'#!/bin/sh\ncase "$*" in *"-m venv"*) echo "the disk is on fire" >&2; exit 1;; esac\nexec {sys.executable} "$@"\n'
    )
    broken.chmod(0o755)


def python_only(tmp_path: Path, *programs: str) -> str:
    path = bare_path(tmp_path / "bin", *programs)
    (Path(path) / "python3").symlink_to(sys.executable)
    return path


@pytest.mark.parametrize("complete", [False, True])
def test_an_interruption_is_reported_and_leaves_a_complete_environment_in_use(
    checkout: Checkout, tmp_path: Path, complete: bool
) -> None:
    python = checkout.install()
    step, mode, slow = "Python packages", ["--dev"], python
    if not complete:
        (checkout.path / ".venv" / "strakes.stamp").rename(checkout.path / ".venv" / "bootstrap.unfinished")
        step, mode = "virtual environment (Python 3", []
        slow = Path(python_only(tmp_path, "c++")) / "python3"
        slow.unlink()
    shutil.copy(sys.executable, python.parent / "python3")
    sleep_s = 600 + complete
    waits = f'case "$*" in *"-m venv"* | *"-m pip"*) sleep {sleep_s};; esac'
    slow.write_text(f'#!/bin/sh\n{waits}\nexec {sys.executable} "$@"\n')
    slow.chmod(0o755)
    for _ in range(2):  # the second call continues where the first one was interrupted
        process = subprocess.Popen(
            ["bash", checkout.path / "bootstrap" / "install", checkout.path, checkout.path / ".venv", *mode],
            env={**NO_INSTALL, "PATH": f"{python.parent}:{tmp_path / 'bin'}:{os.defpath}"},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert process.stderr is not None
        said = ""
        while step not in said and process.poll() is None:
            said += process.stderr.read(1)
        os.killpg(process.pid, signal.SIGTERM)
        said += process.communicate(timeout=60)[1]
        assert "interrupted; run the same command again to continue" in said and process.returncode == 130
        assert subprocess.run(["pgrep", "-fx", f"sleep {sleep_s}"], check=False).returncode == 1
        assert checkout.is_fresh() == complete
