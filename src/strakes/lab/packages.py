"""The packages that a lab needs, from the distribution and from PyPI."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Literal

from strakes.errors import EnvironmentLacksError
from strakes.lab.process import environment, last_lines

_SEARCH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_APT = (
    "apt-get",
    "-o",
    "DPkg::Lock::Timeout=300",
    "-o",
    "Acquire::http::Timeout=60",
    "-o",
    "Acquire::Retries=3",
    "--yes",
)
# The packages' own services are not for us: neither systemd nor init scripts may start them while they are unpacked.
_NO_SERVICES = {"DEBIAN_FRONTEND": "noninteractive", "SYSTEMD_OFFLINE": "1", "RUNLEVEL": "1"}


@dataclass(frozen=True)
class Package:
    """A package with the program, or the absolute path (may be a pattern), that it provides.

    Packages of PyPI are installed into the environment of strakes.
    """

    name: str
    needed: str
    registry: Literal["Debian", "PyPI"] = "Debian"

    @property
    def present(self) -> bool:
        """Return whether it is installed."""
        if self.needed.startswith("/"):
            return any(Path("/").glob(self.needed[1:]))
        return self.program is not None

    @property
    def program(self) -> str | None:
        """Return the path of the program, or None if it is not installed."""
        beside_python = f"{Path(sys.executable).parent}:" if self.registry == "PyPI" else ""
        return shutil.which(self.needed, path=beside_python + _SEARCH)


def missing(packages: Sequence[Package]) -> tuple[Package, ...]:
    """Return those that are not installed."""
    return tuple(package for package in packages if not package.present)


def require_packages(kind: str, packages: Sequence[Package], *, install: bool, say: Callable[[str], None]) -> None:
    """Install missing packages with ``install``. Raises EnvironmentLacksError naming those that stay missing."""
    lacking = missing(packages)
    if not lacking:
        return
    if not install:
        raise _lacks(kind, lacking, f"Run the command as root with --install, which runs: {_commands(lacking)}")
    of_debian = tuple(package for package in lacking if package.registry == "Debian")
    of_pypi = _names(package for package in lacking if package.registry == "PyPI")
    if of_debian:
        _install_of_debian(kind, of_debian, say)
    if of_pypi:
        say(f"installing {' '.join(of_pypi)}")
        status, words = _run([*_pip(), *of_pypi])
        if status != 0:
            raise _failed(kind, _pip_command(of_pypi), last_lines(words, 3) or f"pip ended with status {status}")
    lacking = missing(packages)
    if lacking:
        raise _lacks(
            kind,
            lacking,
            "The packages have been installed, but these programs are still missing. This may not be a Debian system.",
        )


def _install_of_debian(kind: str, lacking: Sequence[Package], say: Callable[[str], None]) -> None:
    names = _names(lacking)
    if os.geteuid() != 0:
        raise _lacks(kind, lacking, f"Install them as root: sudo {_command(names)}")
    if shutil.which("apt-get", path=_SEARCH) is None:
        raise _lacks(
            kind,
            lacking,
            "This machine has no apt-get. Install the equivalents of these Debian packages from your distribution.",
        )
    say(f"installing {' '.join(names)}")
    argv = [*_APT, "install", "--no-install-recommends", *names]
    # With old lists, or none, the first attempt fails soon.
    for attempt in (argv, [*_APT, "update"], argv):
        status, words = _run(attempt)
        if attempt is argv and status == 0:
            return
    raise _failed(kind, _command(names), last_lines(words, 3) or f"apt-get ended with status {status}")


def _failed(kind: str, command: str, why: str) -> EnvironmentLacksError:
    return EnvironmentLacksError(
        f"the packages for {kind} cannot be installed",
        why=why,
        remedy=f"Solve that problem, or install the packages yourself: {command}",
    )


def _run(argv: Sequence[str]) -> tuple[int, str]:
    """Run a command; return its exit status and its output."""
    with TemporaryFile() as output:
        # In a session of its own: Ctrl-C is ours to pass on.
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**environment(), **_NO_SERVICES},
            start_new_session=True,
        )
        try:
            status = process.wait()
        except BaseException:
            # It stops downloading at once, but not unpacking: that would leave the machine's packages broken.
            process.send_signal(signal.SIGINT)
            process.wait()
            raise
        output.seek(0)
        return status, output.read().decode(errors="replace")


def _lacks(kind: str, lacking: Sequence[Package], remedy: str) -> EnvironmentLacksError:
    names = ", ".join(_names(lacking))
    programs = ", ".join(package.needed for package in lacking)
    return EnvironmentLacksError(
        f"{kind} needs packages that are missing here: {names}", why=f"not found: {programs}", remedy=remedy
    )


def _names(packages: Iterable[Package]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(package.name for package in packages))


def _commands(packages: Sequence[Package]) -> str:
    """Return the shell commands that install the packages."""
    of_debian = _names(package for package in packages if package.registry == "Debian")
    of_pypi = _names(package for package in packages if package.registry == "PyPI")
    return " && ".join([*([_command(of_debian)] if of_debian else []), *([_pip_command(of_pypi)] if of_pypi else [])])


def _command(names: Sequence[str]) -> str:
    return f"apt-get install --no-install-recommends {' '.join(names)}"


def _pip() -> tuple[str, ...]:
    return (sys.executable, "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")


def _pip_command(names: Sequence[str]) -> str:
    return f"{sys.executable} -I -m pip install {' '.join(names)}"
