"""requirements.py LOCK [NAME]: print a lock file (or only NAME) without the build tools that this machine has."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

SYSTEM_CMAKE = (3, 20)  # as cmake.version in pyproject.toml


def main(lock: str, only: str | None = None) -> None:
    had = [
        name for name, there in (("cmake", cmake_version() >= SYSTEM_CMAKE), ("ninja", shutil.which("ninja"))) if there
    ]
    # A requirement begins at the margin; its hashes are indented.
    for requirement in re.split(r"^(?=\S)", Path(lock).read_text(), flags=re.MULTILINE):
        name = requirement.partition("==")[0]
        if name not in had and only in (None, name):
            print(requirement, end="")


def cmake_version() -> tuple[int, ...]:
    program = shutil.which("cmake")
    if program is None:
        return ()
    answer = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    match = re.search(r"(\d+)\.(\d+)", answer)
    return tuple(int(number) for number in match.groups()) if match else ()


if __name__ == "__main__":
    main(*sys.argv[1:])
