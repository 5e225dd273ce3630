"""A runner that answers commands with the recorded output."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path

from strakes.targets.command import DEFAULT_TIMEOUT_S, Completed, run
from strakes.targets.lustre_tool import read_params
from targets.lustre.assigned import COMMANDS, LAST_COMMANDS
from targets.lustre.recorded import Recording, names, recording

# Mount point on the recorded machine, and the working directories of commands with relative names.
MOUNT_POINT = "/mnt/labfs"
WORKED_IN = ("/mnt/labfs/s/", "/mnt/labfs/dne/", "/mnt/labfs/")
INSTANCE = "ffff8880083a1800"
STATVFS = (4096, 4096, 3833116, 3831308, 3605212, 1047638, 1046572, 1046572, 0, 255)


def recordings(*prefixes: str, folder: str = "client", instance: str = "") -> tuple[Recording, ...]:
    """Return the recordings of a folder by prefix; with ``instance``, leave out recordings of other mounts."""
    chosen = [recording(name) for name in names(folder) if name.removeprefix(f"{folder}/").startswith(prefixes)]
    return tuple(each for each in chosen if instance in each.done.stdout or not re.search("ffff8880", each.done.stdout))


# Recordings of one mount of the client, as root and as a user, and of the server.
AS_ROOT = recordings("lfs", "get", "mkdir", "set", "lctl", "err_mkdir", "err_setstripe", instance=INSTANCE)
AS_USER = (*recordings("user"), *recordings("lfs"))
ON_SERVER = recordings("", folder="server")


@dataclass
class Replay:
    """Runner that answers with the first recording of the same command line; get_param also parameter by parameter.

    ``root`` replaces the recorded mount point; touch, rm, mkdir and stat -c run for real. ``spellings`` maps command
    lines of ours to the recorded ones. Commands for a server begin with "at HOST"; ``server`` has their recordings.
    """

    root: Path
    recorded: Sequence[Recording]
    spellings: Mapping[str, str] = field(default_factory=dict)
    server: Sequence[Recording] = ()
    asked: list[str] = field(default_factory=list)

    def __call__(self, argv: Sequence[str], timeout_s: float = DEFAULT_TIMEOUT_S) -> Completed:
        assert 0 < timeout_s <= DEFAULT_TIMEOUT_S
        if argv[0] == sys.executable:
            return Completed(tuple(argv), 0, repr((STATVFS, ())), "") if "sizes" in argv else run(argv, timeout_s)
        if argv[0] == "at":
            assert argv[1] == "192.168.77.1"
            return Replay(self.root, self.server)(argv[2:], timeout_s)
        root = str(self.root)
        line = " ".join(MOUNT_POINT + word.removeprefix(root) if word.startswith(root) else word for word in argv)
        self.asked.append(line)
        done = self._recorded(self.spellings.get(line, line))
        if done is None and list(argv[:2]) == ["lctl", "get_param"]:
            done = self._parameters(argv[2:])
        assert done is not None, f"not recorded: {line}"
        return replace(done, argv=tuple(argv))

    def _recorded(self, line: str) -> Completed | None:
        for spelling in _spellings(line.split(" ")):
            for each in self.recorded:
                if (each.name in COMMANDS or each.name in LAST_COMMANDS) and spelling in (
                    each.command,
                    each.last_command,
                ):
                    return each.done
        return None

    def _parameters(self, patterns: Sequence[str]) -> Completed:
        stdout, stderr, status = "", "", 0
        for pattern in patterns:
            done = self._recorded(f"lctl get_param {pattern}") or self._values(pattern)
            stdout, stderr, status = stdout + done.stdout, stderr + done.stderr, status or done.status
        return Completed((), status, stdout, stderr)

    def _values(self, pattern: str) -> Completed:
        known: dict[str, str] = {}
        cut_off = set()
        for each in self.recorded:
            if each.done.argv[:2] == ("lctl", "get_param") and not each.done.argv[2].startswith("-"):
                params = read_params(each.done)
                cut_off |= {name for name in params.values if params.cut_off and name not in known}
                known = {**params.values, **known}
        # A wildcard of lctl does not match a dot.
        matching = [name for name in known if fnmatchcase(name, pattern) and name.count(".") == pattern.count(".")]
        if not matching:
            return Completed(
                (), 2, "", f"error: get_param: param_path '{pattern.replace('.', '/')}': No such file or directory\n"
            )
        lines = (f"{name}=\n{known[name]}\n" if "\n" in known[name] else f"{name}={known[name]}\n" for name in matching)
        return Completed((), 2 if cut_off.intersection(matching) else 0, "".join(lines), "")


def _spellings(words: Sequence[str]) -> Iterable[str]:
    """Yield the command line; with relative names; with the file recorded for the layout of a directory; and without
    the mount point."""
    yield " ".join(words)
    for place in WORKED_IN:
        relative = " ".join(word.removeprefix(place) if word != place else word for word in words)
        yield relative
        yield relative.replace("/.strakes-layout", "/f")
    if words[-1] == MOUNT_POINT:
        yield " ".join(words[:-1])
