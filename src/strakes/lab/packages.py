"""Find and install the Debian packages that a lab needs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from strakes.base.errors import EnvironmentLacksError
from strakes.lab.process import PATH, environment, last_lines

_INSTALL = ("apt-get", "install", "--no-install-recommends")
_UNATTENDED = ("-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::http::Timeout=60", "-o", "Acquire::Retries=3", "--yes")
# Environment variables that keep systemd and init scripts from starting the services of new packages.
_NO_SERVICES = {"DEBIAN_FRONTEND": "noninteractive", "SYSTEMD_OFFLINE": "1", "RUNLEVEL": "1"}


@dataclass(frozen=True)
class Package:
    """A Debian package. If it is installed, the program or path pattern ``needed`` exists."""

    name: str
    needed: str

    @property
    def present(self) -> bool:
        if self.needed.startswith("/"):
            return any(Path("/").glob(self.needed[1:]))
        return shutil.which(self.needed, path=PATH) is not None


def table(text: str) -> tuple[Package, ...]:
    """Parse packages, each with one of its programs, from a text such as ``kmod modprobe, mount losetup``."""
    return tuple(Package(*each.split()) for each in text.split(","))


def missing(packages: Sequence[Package]) -> tuple[Package, ...]:
    """Return the packages that are not installed."""
    return tuple(package for package in packages if not package.present)


def require_packages(kind: str, packages: Sequence[Package], *, install: bool, say: Callable[[str], None]) -> None:
    """Install missing packages if ``install`` is true. Raises EnvironmentLacksError if packages are still missing."""
    lacking = missing(packages)
    if not lacking:
        return
    names = tuple(dict.fromkeys(package.name for package in lacking))
    command = " ".join((*_INSTALL, *names))
    if not install:
        remedy = f"Run the command as root with --install, which runs: {command}"
    elif os.geteuid() != 0:
        remedy = f"Install them as root: sudo {command}"
    elif shutil.which("apt-get", path=PATH) is None:
        remedy = "This machine has no apt-get. Install the equivalents of these Debian packages from your distribution."
    else:
        say(f"installing {' '.join(names)}")
        if why := _install(names):
            remedy = f"Solve that problem, or install the packages yourself: {command}"
            raise EnvironmentLacksError(f"the packages for {kind} cannot be installed", why=why, remedy=remedy)
        lacking = missing(packages)
        remedy = "The packages are installed, but these programs are still missing. This may not be a Debian system."
        if not lacking:
            return
    raise EnvironmentLacksError(
        f"{kind} needs packages that are missing here: {', '.join(dict.fromkeys(package.name for package in lacking))}",
        why=f"not found: {', '.join(package.needed for package in lacking)}",
        remedy=remedy,
    )


def _install(names: Sequence[str]) -> str:
    argv = (*_INSTALL, *_UNATTENDED, *names)
    # apt-get fails if the package lists are outdated, so update them and try again.
    why = _run(argv)
    if why:
        _run(("apt-get", "update", *_UNATTENDED))
        why = _run(argv)
    return why


def _run(argv: Sequence[str]) -> str:
    with TemporaryFile() as output:
        # Start a new session, so that Ctrl-C does not reach the command.
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
            # Send SIGINT and wait: apt-get then stops a download, but finishes unpacking a package.
            process.send_signal(signal.SIGINT)
            process.wait()
            raise
        output.seek(max(0, output.seek(0, os.SEEK_END) - (1 << 16)))
        text = output.read().decode(errors="replace")
        return "" if status == 0 else last_lines(text, 3) or f"apt-get ended with status {status}"
