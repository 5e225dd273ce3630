"""The options of installed programs by their own words, as the tables in src/strakes/failover/options hold them.

Run as a program, it writes those tables anew: python tests/failover/options_of_programs.py
"""

from __future__ import annotations

import re
import subprocess
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.etree import ElementTree as Xml

TABLES = Path(__file__).parents[2] / "src" / "strakes" / "failover" / "options"
_OCF = Path("/usr/lib/ocf/resource.d")
_BOOLEAN, _INTEGER = "bool", "int"
_KINDS = {"boolean": _BOOLEAN, "integer": _INTEGER, "second": "seconds", "time": "time", "percentage": "percentage"}
_BOOLEANS = ("", "0", "1", "true", "false", "yes", "no", "on", "off")
_NO_MARKS = str.maketrans("", "", "!*")
_DAEMONS = ("schedulerd", "controld", "based")
_DRBD_COMMANDS = {
    "net": ("net-options", "new-peer"),
    "disk": ("disk-options", "attach", "peer-device-options"),
    "options": ("resource-options",),
}
_DRBD_PROGRAMS = {"9": "/usr/sbin/drbdsetup", "8.4": "/lib/drbd/drbdsetup-84"}


def _said(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout


def _parameters(text: str) -> Iterator[str]:
    """One word for each: its name, ``!`` where it is required, ``*`` where no two may have it, and what it takes."""
    try:
        root = Xml.fromstring(text[text.index("<") :])
    except (Xml.ParseError, ValueError):
        return
    for parameter in root.iter("parameter"):
        name, content = parameter.get("name", ""), parameter.find("content")
        if content is None or not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
            continue
        choices = [option.get("value", "") for option in content.iter("option")]
        kind = "|".join(choices) if choices else _KINDS.get(content.get("type", ""), "")
        default = content.get("default") or ""
        if kind == _BOOLEAN and default.lower() not in _BOOLEANS:
            kind = ""
        # A required one that has a default need not be given.
        required = parameter.get("required") == "1" and not default
        unique = "*" if parameter.get("unique") == "1" else ""
        yield f"{name}{'!' if required else ''}{unique}{':' + kind if kind else ''}"


def parameters(*words: str) -> list[str]:
    """What the metadata that a program prints say."""
    return list(_parameters(_said(*words)))


def fencing_agents() -> dict[str, str]:
    found = {}
    for path in sorted(Path("/usr/sbin").glob("fence_*")):
        # What is required of a fencing agent has older names, too, or is given by Pacemaker.
        words = " ".join(sorted(_parameters(_said(str(path), "-o", "metadata")))).translate(_NO_MARKS)
        if words:
            found[path.name] = words
    return found


def resource_agents() -> dict[str, str]:
    found = {}
    for path in sorted(_OCF.glob("*/*")):
        name = f"ocf:{path.parent.name}:{path.name}"
        words = " ".join(_parameters(_said("crm_resource", "--show-metadata", name)))
        if path.is_file() and not path.name.startswith("."):
            found[f"{path.parent.name}:{path.name}"] = words
    return found


def cluster_properties() -> dict[str, str]:
    words = [
        word for daemon in _DAEMONS for word in _parameters(_said(f"/usr/lib/pacemaker/pacemaker-{daemon}", "metadata"))
    ]
    fencing = _parameters(_said("/usr/lib/pacemaker/pacemaker-fenced", "metadata"))
    return {
        "properties": " ".join(sorted(set(words))).translate(_NO_MARKS),
        "fencing": " ".join(fencing).translate(_NO_MARKS),
    }


def drbd_options(program: str) -> dict[str, str]:
    found = {}
    for section, commands in _DRBD_COMMANDS.items():
        words = set[str]()
        for command in commands:
            text = _said(program, "xml-help", command)
            for option in Xml.fromstring(text).iter("option") if text.startswith("<") else ():
                name = option.get("name", "")
                if name not in ("set-defaults", "_name"):
                    words.add(f"{name}{_drbd_kind(option)}")
        found[section] = " ".join(sorted(words))
    return found


def _drbd_kind(option: Xml.Element) -> str:
    handlers = "|".join(handler.text or "" for handler in option.iter("handler"))
    if handlers:
        return f":{handlers}"
    if option.get("type") == "boolean":
        return f":{_BOOLEAN}"
    if option.get("type") == "numeric":
        # The unit of a number without one; b where it is counted, or in bytes: k, M and G may stand behind that, too.
        unit = (option.findtext("unit_prefix") or "1").replace("1", "b")
        return f":{option.findtext('min')}..{option.findtext('max')}{unit}"
    return ""


def _table(comment: str, parts: Mapping[str, str]) -> str:
    lines = [f"# {comment}"]
    for name, words in parts.items():
        if len(words) < 90:
            lines.append(f'"{name}" = "{words}"')
            continue
        body = textwrap.wrap(words, 116, break_long_words=False, break_on_hyphens=False)
        lines += [f'"{name}" = """', *(f"{line} \\" if line is not body[-1] else f'{line}"""' for line in body)]
    return "\n".join(lines) + "\n"


def main() -> None:
    TABLES.mkdir(exist_ok=True)
    about = (
        "Name, ! where it is required, * where no two may have it, and what it takes. "
        "Written by tests/failover/options_of_programs.py."
    )
    (TABLES / "fencing_agents.toml").write_text(_table(about, fencing_agents()))
    (TABLES / "resource_agents.toml").write_text(_table(about, resource_agents()))
    (TABLES / "pacemaker.toml").write_text(_table(about, cluster_properties()))
    drbd = {
        f"{version} {section}": words
        for version, program in _DRBD_PROGRAMS.items()
        for section, words in drbd_options(program).items()
    }
    (TABLES / "drbd.toml").write_text(_table(about, drbd))


if __name__ == "__main__":
    main()
