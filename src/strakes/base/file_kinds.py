"""Kinds of files that strakes recognises, and the commands that read each kind."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from strakes.base.errors import BadInputError
from strakes.base.files import open_regular

_BEGINNING_BYTES = 1 << 16


class FileKind(NamedTuple):
    """A kind of file. ``pattern`` matches the beginning of such a file."""

    name: str
    commands: str
    pattern: str = ""


# Top-level key or table -> the only kind of TOML file that has this key.
TOML_KINDS = {
    "cluster": FileKind("the description of a pair of servers", "strakes failover plan FILE"),
    "need": FileKind("a list of needs", "strakes accept FILE DIR"),
    "interface": FileKind(
        "the description of an application", "strakes advise --app FILE, or strakes tune --app FILE DIR"
    ),
    "limits": FileKind("limits of a system", "strakes predict RUN --at SCALE --system FILE"),
    "phase": FileKind("a plan", "strakes run FILE DIR"),
}
DIRECTORY = FileKind("a directory", "strakes survey DIR")
# The first matching pattern determines the kind. In a pattern, white space never extends over several lines, because
# such a match takes quadratic time.
OTHER_KINDS = {
    "darshan-parser": FileKind(
        "the text of darshan-parser", "strakes advise --darshan NAME.darshan", r"\A# darshan log version:"
    ),
    "darshan": FileKind("a log of Darshan", "strakes advise --darshan FILE", r"\A[1-9]\.\d\d\0"),
    "report": FileKind(
        "a report of strakes", "strakes runs, then strakes report RUN", r"(?is)\A\s*<!doctype\s+html.*strakes"
    ),
    "export": FileKind(
        "an exported run",
        "strakes report guide FILE, or strakes advise --app APP.toml --from FILE",
        r'\A\s*\{\s*"schema"\s*:\s*1,\s*"manifest"',
    ),
    "result": FileKind(
        "a result of another tool",
        "strakes import FILE",
        r'(?m)\A\s*IOR-\d|^(?:-- started at .*)?mdtest-\d|^\[?(?:SCORE|RESULT)\b|"fio version"|"bwM[iI]B"|"phase_type"'
        r"|\A\s*(?:access,(?:bw|rank)|rank,|operation,|ISO [Dd]ate,)|^[ \t]*Max (?:Write|Read):",
    ),
    "io500": FileKind(
        "a configuration of IO500",
        "strakes run io500 FILE",
        r"(?mi)^[ \t]*\[[ \t]*(?:ior-(?:easy|hard)|mdtest-(?:easy|hard))[ \t]*\]|^[ \t]*datadir[ \t]*=",
    ),
}
# The beginning of a TOML file: comments and empty lines, then a table or a key with a value.
_BEGINS_TOML = re.compile(r"""(?:[ \t]*(?:#.*)?\r?\n)*+[ \t]*(?:\[|[\w.'"-]+[ \t]*=)""")
_TOML = re.compile(rf"(?m)^[ \t]*(?:\[\[?[ \t]*)?({'|'.join(TOML_KINDS)})[ \t]*(?:=|\]|\.)")


def kind_of(path: Path) -> tuple[str, FileKind] | None:
    """Return (key in TOML_KINDS or OTHER_KINDS or "directory", kind of file), or None for an unknown kind."""
    if path.is_dir():
        return "directory", DIRECTORY
    try:
        with open_regular(path) as file:
            text = (file.read(_BEGINNING_BYTES) or b"").decode(errors="replace").removeprefix("\ufeff")
    except (OSError, BadInputError):
        return None
    known = next(((key, kind) for key, kind in OTHER_KINDS.items() if re.search(kind.pattern, text)), None)
    if known is None and _BEGINS_TOML.match(text) and (found := _TOML.search(text)):
        return found[1], TOML_KINDS[found[1]]
    return known


def refuse_other_kind(path: Path, wanted: str, name: str) -> None:
    """Raise BadInputError if a file is not of the kind ``wanted``. ``name``: name of this kind in the message.

    If ``wanted`` is a kind of TOML file, every TOML file passes: :func:`read_toml` checks which kind it is.
    """
    found = kind_of(path)
    if found is None or found[0] == wanted or (wanted in TOML_KINDS and found[0] in TOML_KINDS):
        return
    what = "this is a directory" if found[1] is DIRECTORY else f"this file is {found[1].name}"
    raise BadInputError(f"{what}, not {name}", where=str(path), remedy=f"Use: {found[1].commands}")
