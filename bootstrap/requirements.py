"""requirements.py PYPROJECT [EXTRA]: what has to be installed to build and run the project, a requirement a line."""

import re
import shutil
import subprocess
import sys
import tomllib

SYSTEM_CMAKE = (3, 20)  # as cmake.version in pyproject.toml


def main(pyproject: str, *extras: str) -> None:
    with open(pyproject, "rb") as file:
        document = tomllib.load(file)
    project = document["project"]
    wanted = [*document["build-system"]["requires"], *project["dependencies"], *build_tools()]
    for extra in extras:
        wanted += project["optional-dependencies"][extra]
    print("\n".join(wanted))


def build_tools() -> list[str]:
    """CMake and Ninja as wheels where the system has none that will do."""
    return [name for name, found in (("cmake", cmake_version() >= SYSTEM_CMAKE), ("ninja", shutil.which("ninja"))) if not found]


def cmake_version() -> tuple[int, ...]:
    program = shutil.which("cmake")
    if program is None:
        return ()
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    match = re.search(r"(\d+)\.(\d+)", said)
    return tuple(int(number) for number in match.groups()) if match else ()


if __name__ == "__main__":
    main(*sys.argv[1:])
