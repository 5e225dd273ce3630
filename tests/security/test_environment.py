"""Commands with a hostile environment or current directory, and with closed or full standard files."""

from __future__ import annotations

import os
import pwd
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from strakes.base.processes import private_mpi_directory, python_module, secure_environment
from strakes.cli.options import HOSTS, NumberRange

ROOT = Path(__file__).parents[2]


def shell(line: str, place: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", line, "sh", *python_module("strakes")],
        env={**os.environ, "STRAKES_STORE": str(place / "store"), **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


LONG_DOCUMENT = (
    "import click; from strakes.cli import main; "
    "raise SystemExit(main.run(['export'], lambda _: click.echo('x' * 1_000_000)))"
)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "command",
    [
        *(f'"$@" {words}' for words in ("runs --json", "study list", "--help", "--version")),
        f'{sys.executable} -c "{LONG_DOCUMENT}"',
    ],
)
def test_a_full_standard_output_is_reported(command: str, unbuffered: str, tmp_path: Path) -> None:
    done = shell(f"{command} >/dev/full", tmp_path, PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 3, done.stderr
    assert "standard output cannot be written" in done.stderr and "No space left" in done.stderr
    assert "internal error" not in done.stderr and "Exception ignored" not in done.stderr
    assert shell(f"{command} >/dev/full 2>/dev/full", tmp_path, PYTHONUNBUFFERED=unbuffered).returncode == 3


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("words", ["doctor", "lab status", "watch report"])
def test_a_missing_proc_is_named(words: str, tmp_path: Path) -> None:
    done = shell(f'unshare -m sh -c \'mount -t tmpfs none /proc; exec "$@"\' sh "$@" {words}', tmp_path)
    assert done.returncode == 3 and "/proc is not mounted" in done.stderr, done.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_files_act_like_dev_null(closed: str, tmp_path: Path) -> None:
    done = shell(f'"$@" runs {closed}', tmp_path)
    assert done.returncode == 0, done.stderr
    assert "internal error" not in done.stderr
    lines = (
        "from strakes.cli.main import _open_standard_files as f; f(); import os, sys; "
        "sys.exit(any(os.readlink(f'/proc/self/fd/{number}') != '/dev/null' for number in (0, 1, 2)))"
    )
    for every in ("<&- >&- 2>&-", "0>written 1</proc/version 2</proc/version"):
        words = ["sh", "-c", f'"$@" {every}', "sh", sys.executable, "-I", "-c", lines]
        assert subprocess.run(words, timeout=60, cwd=tmp_path).returncode == 0


def test_a_path_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    for line in ("failover check $X", "advise --app $X"):
        done = shell(f'"$@" {line}', tmp_path, X="x" * 5000)
        assert done.returncode == 2 and "too long" in done.stderr, done.stderr
        assert shell(f'"$@" {line} >/dev/full 2>/dev/full', tmp_path, X="x" * 5000).returncode == 2
    (tmp_path / "closed").mkdir(0)
    no_rights = "-dac_override,-dac_read_search"
    bare = f"setpriv --bounding-set={no_rights} --inh-caps={no_rights} " * (os.geteuid() == 0)
    for line in ("import $X", "examples metadata.toml -o $X"):
        done = shell(f'{bare}"$@" {line}', tmp_path, X=f"{tmp_path}/closed/x")
        assert done.returncode == 2 and "no access to this path" in done.stderr, done.stderr
    (tmp_path / "loop").symlink_to("loop")
    for line in ('"$@" runs', """unshare -rm sh -c 'mount -t tmpfs none /dev; exec "$@" doctor' sh "$@" """):
        done = shell(line, tmp_path, STRAKES_STORE=f"{tmp_path}/loop")
        assert done.returncode == 3 and "cannot be used" in done.stderr, done.stderr


def test_nan_is_outside_every_range() -> None:
    numbers = NumberRange(0.5, 0.999)
    assert numbers.convert("0.9", None, None) == 0.9
    with pytest.raises(click.BadParameter, match="not 'nan'"):
        numbers.convert("nan", None, None)


@pytest.mark.parametrize("host", ["$(id)", "a;b", "a`b`", "a|b", "a b", "-x", "a'b", "a\nb", ""])
def test_shell_syntax_is_not_a_host(host: str) -> None:
    assert HOSTS.convert("n1,10.0.0.1,[fe80::1%eth0],user-2.x", None, None)
    with pytest.raises(click.BadParameter):
        HOSTS.convert(f"n1,{host}", None, None)


def test_others_can_write_no_byte_code_of_an_installation(tmp_path: Path) -> None:
    words = f"umask 0; {sys.executable} -I -X pycache_prefix={tmp_path} -m strakes --version"
    assert shell(words, tmp_path).returncode == 0
    caches = [place for place in tmp_path.rglob("src/strakes/**") if place.is_dir()]
    assert caches and all(place.stat().st_mode & 0o022 == 0 for place in caches)


def test_the_command_of_the_checkout_runs_no_planted_code(tmp_path: Path) -> None:
    """Planted: a bash on the PATH, a BASH_ENV file, exported shell functions, and modules of another Python."""
    ran = tmp_path / "planted-code-ran"
    (tmp_path / "bash").write_text(f"#!/bin/sh\ntouch {ran}\n")
    (tmp_path / "bash").chmod(0o755)
    site = tmp_path / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    (site / "strakes").mkdir(parents=True)
    (site / "strakes" / "__init__.py").touch()
    (site / "strakes" / "__main__.py").write_text(f"open({str(ran)!r}, 'w')\n")
    (site / "x.pth").write_text(f"import os; open({str(ran)!r}, 'w')\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch(0o755)
    home = os.path.dirname(os.path.realpath(sys.executable))
    (tmp_path / "pyvenv.cfg").write_text(f"home = {home}\n")
    hostile = {
        "PATH": f":{os.environ['PATH']}",
        "BASH_ENV": str(tmp_path / "bash"),
        "ENV": str(tmp_path / "bash"),
        "BASH_FUNC_readlink%%": f"() {{ touch {ran}; }}",
        "BASH_FUNC_cd%%": f"() {{ touch {ran}; }}",
        "PYTHONEXECUTABLE": str(tmp_path / "bin" / "python"),
    }
    words = [str(ROOT / "strakes"), "--version"]
    done = subprocess.run(
        words, cwd=tmp_path, env={**os.environ, **hostile}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0 and done.stdout.startswith("strakes"), done.stderr
    assert not ran.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a home directory away needs root")
@pytest.mark.parametrize("kind", ["directory of another", "directory that others can write", "link of another"])
def test_programs_read_no_settings_of_another_user(tmp_path: Path, kind: str) -> None:
    """Settings below HOME and in "." can make Open MPI, Ceph, UCX and Hydra load libraries and write files."""
    home = tmp_path / "home"
    (home / ".ceph").mkdir(parents=True)
    (home / ".ceph" / "ceph.conf").write_text("[global]\n")
    (tmp_path / "ceph.conf").write_text("[global]\n")
    match kind:
        case "directory of another":
            os.chown(home, 65534, 65534)
        case "directory that others can write":
            home.chmod(0o777)
        case "link of another":
            (tmp_path / "link").symlink_to(home)
            os.chown(tmp_path / "link", 65534, 65534, follow_symlinks=False)
            home = tmp_path / "link"
    engine = tmp_path / "engine"
    engine.write_text(f'#!/bin/sh\necho "$HOME $CEPH_CONF $STRAKES_STORE\n:$PATH:$PYTHONPATH:" >{tmp_path}/seen\n')
    engine.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if name not in ("CEPH_CONF", "XDG_DATA_HOME")}
    hostile = {
        "HOME": str(home),
        "STRAKES_ENGINE": str(engine),
        "STRAKES_STORE": "",
        "PATH": f".::{os.environ['PATH']}:x",
        "PYTHONPATH": f":{tmp_path}:x",
    }
    words = python_module("strakes", "run", str(ROOT / "examples" / "checkpoint.toml"), str(tmp_path), "-q")
    done = subprocess.run(words, cwd=tmp_path, env={**kept, **hostile}, capture_output=True, text=True, timeout=120)
    own = pwd.getpwuid(0).pw_dir
    configurations = ("/etc/ceph/ceph.conf", f"{own}/.ceph/ceph.conf")
    store = f"{home}/.local/share/strakes"
    seen, path = (tmp_path / "seen").read_text().splitlines()
    assert seen in [f"{own} {configuration} {store}" for configuration in configurations], done.stderr
    assert "::" not in path and ":.:" not in path and ":x:" not in path


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a directory away needs root")
@pytest.mark.parametrize(
    ("owner", "mode", "above", "kept"),
    [
        (0, 0o700, 0, True),
        (0, 0o1777, 0, True),
        (0, 0o777, 0, False),
        (65534, 0o1777, 0, False),
        (0, 0o700, 65534, False),
    ],
)
def test_temporary_files_go_where_others_cannot_replace_them(
    tmp_path: Path, owner: int, mode: int, above: int, kept: bool
) -> None:
    place = tmp_path / "above" / "temporary"
    place.mkdir(parents=True)
    place.chmod(mode)
    os.chown(place, owner, owner)
    os.chown(place.parent, above, above)
    lines = (
        "import os, tempfile; from strakes.base import processes; processes._RUN = '/none'\n"
        "from strakes.base.processes import private_mpi_directory, secure_environment as f; f()\n"
        "name = 'OMPI_MCA_orte_top_session_dir'; others = os.environ.get(name, '')\n"
        "with private_mpi_directory() as variables: place = variables.get(name, '')\n"
        "assert not place or place != others > ''\n"
        "print(tempfile.gettempdir(), os.environ['TMPDIR'], place, os.path.exists(place))"
    )
    for variable in ("TMPDIR", "TEMP", "TMP"):
        environment = {name: value for name, value in os.environ.items() if name not in ("TMPDIR", "TEMP", "TMP")}
        words, own = [sys.executable, "-I", "-c", lines], {**environment, variable: str(place)}
        done = subprocess.run(words, cwd=place, env=own, capture_output=True, text=True, timeout=60)
        used = str(place) if kept else "/tmp"
        private = "" if kept and mode == 0o700 else rf"{used}/strakes_\w{{32}}"
        assert re.fullmatch(f"{used} {used} {private} False\n", done.stdout), (done.stdout, done.stderr)


def test_only_the_own_directory_of_open_mpi_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o1777)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("strakes.base.processes._RUN", "/none")
    for of_others in (False, True):
        with private_mpi_directory() as variables:
            path = Path(variables["OMPI_MCA_orte_top_session_dir"])
            if of_others:
                path.rmdir()
                path.mkdir()
            (path / "below").mkdir()
            (path / "below" / "file").touch()
        assert (path / "below" / "file").exists() == of_others


def test_a_home_and_a_configuration_of_this_user_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setenv("PATH", os.environ["PATH"])
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CEPH_CONF", "/site/ceph.conf")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "/tmp")
    monkeypatch.setenv("CIB_file", "/tmp/cib.xml")
    secure_environment()
    assert "CIB_file" not in os.environ
    assert os.geteuid() != 0 or os.environ.get("OMPI_MCA_orte_tmpdir_base") == "/run"  # noqa: SIM112
    assert (os.environ["HOME"], os.environ["CEPH_CONF"]) == (str(tmp_path), "/site/ceph.conf")
    assert os.environ["XDG_CONFIG_HOME"] == str(tmp_path) and "XDG_CACHE_HOME" not in os.environ


@pytest.mark.parametrize(
    "zone", [":/dev/zero", "/etc/shadow", "../x", "AAA-24:59:59", "AAA0BBB-30", "A" * 300 + "+99:99"]
)
def test_an_impossible_time_zone_is_utc(zone: str) -> None:
    lines = (
        "from datetime import UTC, datetime; from strakes.base.processes import secure_environment as f; f()\n"
        "print(*(datetime(2026, month, 1, tzinfo=UTC).astimezone().utcoffset() for month in (1, 7)))"
    )
    words = [sys.executable, "-I", "-c", lines]
    done = subprocess.run(words, env={**os.environ, "TZ": zone}, capture_output=True, text=True, timeout=60)
    assert done.stdout == "0:00:00 0:00:00\n", done.stderr


@pytest.mark.parametrize("locale", ["xx", "../../etc", "x" * 9000])
def test_an_unknown_locale_is_english_and_an_impossible_size_of_the_terminal_is_ignored(
    locale: str, tmp_path: Path
) -> None:
    done = shell('"$@" runs && "$@" knobs list', tmp_path, LC_ALL=locale, COLUMNS="9" * 5000, LINES="9" * 5000)
    assert done.returncode == 0 and done.stdout.startswith("No runs yet"), done.stderr


def test_figures_ignore_a_matplotlibrc_in_the_current_directory(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "matplotlibrc").write_text("figure.dpi: 17\n")
    lines = (
        "from contextlib import suppress; from pathlib import Path; from strakes.report import static_figure as s\n"
        "with suppress(AttributeError): s.write_figure(None, type('', (), {'warnings': (), 'cells': ()})(), Path('x.svg'))\n"
        "import matplotlib; print(matplotlib.rcParams['figure.dpi'])"
    )
    words = [sys.executable, "-I", "-c", lines]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "100.0", done.stderr


@pytest.mark.parametrize("words", ["doctor", "run PLAN . -q --launcher mpi -n 2"])
def test_an_engine_for_mpi_reads_no_settings_in_the_current_directory(tmp_path: Path, words: str) -> None:
    (tmp_path / "ucx.conf").write_text(f"UCX_LOG_FILE={tmp_path}/written\nUCX_LOG_LEVEL=debug\n")
    plan = str(ROOT / "examples" / "checkpoint.toml")
    command = python_module(
        "strakes", *words.replace("PLAN", plan).split(), *(["--budget", "1s"] if "PLAN" in words else [])
    )
    environment = {**os.environ, "STRAKES_STORE": str(tmp_path / "store")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, 3), done.stderr
    assert not (tmp_path / "written").exists()
