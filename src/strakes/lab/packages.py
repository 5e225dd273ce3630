"""The distribution's packages that a lab needs: which are missing, and installing them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

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
    """Debian's name, and what it is needed for: a program, or an absolute path, which may be a pattern."""

    name: str
    needed: str

    @property
    def present(self) -> bool:
        """Tell whether it is installed."""
        if self.needed.startswith("/"):
            return any(Path("/").glob(self.needed[1:]))
        return shutil.which(self.needed, path=_SEARCH) is not None


def missing(packages: Sequence[Package]) -> tuple[Package, ...]:
    """Return those that are not installed."""
    return tuple(package for package in packages if not package.present)


def require_packages(kind: str, packages: Sequence[Package], *, install: bool, say: Callable[[str], None]) -> None:
    """Raise EnvironmentLacksError that names what is missing, unless it may be and is installed."""
    lacking = missing(packages)
    if not lacking:
        return
    names = _names(lacking)
    if not install:
        raise _lacks(kind, lacking, f"Run the command as root with --install, which runs: {_command(names)}")
    if os.geteuid() != 0:
        raise _lacks(kind, lacking, f"Install them as root: sudo {_command(names)}")
    if shutil.which("apt-get", path=_SEARCH) is None:
        raise _lacks(
            kind,
            lacking,
            "This machine has no apt-get. Install the equivalents of these Debian packages from your distribution.",
        )
    say(f"installing {' '.join(names)}")
    _install(kind, names)
    lacking = missing(packages)
    if lacking:
        raise _lacks(
            kind,
            lacking,
            "apt-get has installed the packages, but these programs are still missing. This may not be a Debian "
            "system.",
        )


def _install(kind: str, names: Sequence[str]) -> None:
    argv = [*_APT, "install", "--no-install-recommends", *names]
    # With old lists, or none, the first attempt fails soon.
    for attempt in (argv, [*_APT, "update"], argv):
        status, words = _apt(attempt)
        if attempt is argv and status == 0:
            return
    raise EnvironmentLacksError(
        f"the packages for {kind} cannot be installed",
        where=" ".join(argv),
        why=last_lines(words, 3) or f"apt-get ended with status {status}",
        remedy=f"Solve that problem, or install the packages yourself: {_command(names)}",
    )


def _apt(argv: Sequence[str]) -> tuple[int, str]:
    """Its status, and what it said."""
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


def _names(packages: Sequence[Package]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(package.name for package in packages))


def _command(names: Sequence[str]) -> str:
    return f"apt-get install --no-install-recommends {' '.join(names)}"
