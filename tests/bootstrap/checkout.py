"""A minimal checkout for tests of ./strakes; its Python environment only prints the arguments it receives."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ECHO = '#!/bin/sh\nprintf "%s\\n" "$0" "$@"\n'


@dataclass(frozen=True)
class Checkout:
    """A directory with the strakes script, bootstrap/ and placeholder sources."""

    path: Path

    @classmethod
    def create(cls, path: Path) -> Checkout:
        for folder in ("engine", "schemas", "src/strakes/base"):
            (path / folder).mkdir(parents=True)
        shutil.copy(ROOT / "strakes", path)
        shutil.copytree(ROOT / "bootstrap", path / "bootstrap")
        for name in ("CMakeLists.txt", "engine/main.cpp", "schemas/plan.json", "src/strakes/base/version.py"):
            (path / name).write_text("as it was\n")
        shutil.copy(ROOT / "pyproject.toml", path)
        return cls(path)

    def install(self, environment: Path | None = None) -> Path:
        environment = environment or self.path / ".venv"
        python = environment / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text(ECHO)
        python.chmod(0o755)
        digest = self.shell('digest_of_sources "$1"').stdout
        stamp = environment / "strakes.stamp"
        stamp.write_text(f"{self.path}\n{digest}-\n")
        before_any_edit = time.time() - 1  # otherwise, an edit right after this could have the same timestamp
        os.utime(stamp, (before_any_edit, before_any_edit))
        return python

    def shell(self, command: str, *, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        program = f'. "$1/bootstrap/state.sh"; {command}'
        return _run(["bash", "-c", program, "bash", self.path], environment, None)

    def is_fresh(self) -> bool:
        return self.shell('is_fresh "$1" "$1/.venv"').returncode == 0

    def strakes(
        self,
        *arguments: str,
        through: Path | None = None,
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
        become: Sequence[str] = (),
    ) -> subprocess.CompletedProcess[str]:
        """Run ./strakes.

        ``through`` is the path used to call it, such as a link; ``become`` a command prefix that changes the user.
        """
        return _run([*become, through or self.path / "strakes", *arguments], environment, cwd)


def bare_path(directory: Path, *programs: str) -> str:
    helpers = "bash cat cksum cut env find flock mkdir mv printf readlink rm sed sort tail touch tr wc xargs"
    directory.mkdir(exist_ok=True)
    for name in (*helpers.split(), *programs):
        found = shutil.which(name)
        assert found, name
        (directory / name).symlink_to(found)
    return str(directory)


def _run(
    command: Sequence[str | Path], environment: Mapping[str, str] | None, cwd: Path | None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command],
        env={**os.environ, **(environment or {})},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
