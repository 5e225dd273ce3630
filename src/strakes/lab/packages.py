"""The packages that a lab needs, from the distribution and from PyPI."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Literal

from strakes.base.errors import EnvironmentLacksError
from strakes.lab.process import environment, last_lines

_SEARCH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# How a user installs packages of each registry, and the options that make it run unattended.
_INSTALL: Mapping[str, tuple[str, ...]] = {
    "Debian": ("apt-get", "install", "--no-install-recommends"),
    "PyPI": (sys.executable, "-I", "-m", "pip", "install"),
}
_APT_OPTIONS = ("-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::http::Timeout=60", "-o", "Acquire::Retries=3", "--yes")
_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "Debian": _APT_OPTIONS,
    "PyPI": ("--quiet", "--disable-pip-version-check"),
}
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
    """Return the packages that are not installed."""
    return tuple(package for package in packages if not package.present)


def require_packages(kind: str, packages: Sequence[Package], *, install: bool, say: Callable[[str], None]) -> None:
    """Install missing packages with ``install``. Raises EnvironmentLacksError naming any still missing."""
    lacking = missing(packages)
    if not lacking:
        return
    wanted = {registry: _names(lacking, registry) for registry in _INSTALL if _names(lacking, registry)}
    commands = {registry: " ".join((*_INSTALL[registry], *names)) for registry, names in wanted.items()}
    if not install:
        remedy = f"Run the command as root with --install, which runs: {' && '.join(commands.values())}"
        raise _lacks(kind, lacking, remedy)
    if "Debian" in wanted and os.geteuid() != 0:
        raise _lacks(kind, lacking, f"Install them as root: sudo {commands['Debian']}")
    if "Debian" in wanted and shutil.which("apt-get", path=_SEARCH) is None:
        remedy = "This machine has no apt-get. Install the equivalents of these Debian packages from your distribution."
        raise _lacks(kind, lacking, remedy)
    for registry, names in wanted.items():
        say(f"installing {' '.join(names)}")
        if why := _install(registry, names):
            remedy = f"Solve that problem, or install the packages yourself: {commands[registry]}"
            raise EnvironmentLacksError(f"the packages for {kind} cannot be installed", why=why, remedy=remedy)
    if lacking := missing(packages):
        remedy = (
            "The packages have been installed, but these programs are still missing. This may not be a Debian system."
        )
        raise _lacks(kind, lacking, remedy)


def _install(registry: str, names: Sequence[str]) -> str:
    """Install packages of one registry; return the failure, or an empty text."""
    argv = [*_INSTALL[registry], *_OPTIONS[registry], *names]
    # With outdated package lists, or none, apt-get fails soon; then it is tried again with new ones.
    attempts = [argv, ["apt-get", "update", *_APT_OPTIONS], argv] if registry == "Debian" else [argv]
    status, output = 1, ""
    for attempt in attempts:
        status, output = _run(attempt)
        if attempt is argv and status == 0:
            return ""
    return last_lines(output, 3) or f"{argv[0]} ended with status {status}"


def _run(argv: Sequence[str]) -> tuple[int, str]:
    """Run a command; return its exit status and its output."""
    with TemporaryFile() as output:
        # A new session, so that Ctrl-C reaches strakes alone.
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
    names = ", ".join(dict.fromkeys(package.name for package in lacking))
    programs = ", ".join(package.needed for package in lacking)
    return EnvironmentLacksError(
        f"{kind} needs packages that are missing here: {names}", why=f"not found: {programs}", remedy=remedy
    )


def _names(packages: Sequence[Package], registry: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(package.name for package in packages if package.registry == registry))
