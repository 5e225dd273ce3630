"""Options that installed programs report in their metadata, for the tables in src/strakes/failover/options.

To write the tables again, run: python tests/failover/options_of_programs.py
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
_PATH = re.compile(r"\w+_(dir|file|path|home)|\w*(datadir|infodir|pidfile|logfile)")
_COUNT = re.compile(r"lun|\w*(count|retries|attempts|timeout|interval|number|size|max|min)")
_OPERATIONS = ("start", "stop", "promote", "demote", "monitor", "migrate_to", "migrate_from", "notify")
_NO_MARKS = str.maketrans("", "", "!*")
_DAEMONS = ("schedulerd", "controld", "based")
# Rows shared by many fencing agents: name -> example options. A row has each option with the same set of agents as an
# example.
_SHARED_BY_AGENTS = {
    "@all": ("debug",),
    "@usual": ("action", "help:bool", "plug", "port", "verbose:bool", "version:bool"),
    "@address": ("ip",),
    "@login": ("login",),
    "@password": ("password",),
    "@prompt": ("cmd_prompt",),
    "@family": ("inet4_only:bool",),
    "@ssh": ("ssh:bool",),
    "@snmp": ("community",),
    "@ipmi": ("lanplus:bool",),
}
_DRBD_COMMANDS = {
    "net": ("net-options", "new-peer"),
    "disk": ("disk-options", "attach", "peer-device-options"),
    "options": ("resource-options",),
}
_DRBD_PROGRAMS = {"9": "/usr/sbin/drbdsetup", "8.4": "/lib/drbd/drbdsetup-84"}


def _said(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False).stdout


def _parameters(text: str) -> Iterator[str]:
    try:
        root = Xml.fromstring(text[text.index("<") :])
    except (Xml.ParseError, ValueError):
        return
    for parameter in root.iter("parameter"):
        name, content = parameter.get("name", ""), parameter.find("content")
        if content is None or not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
            continue
        choices = [option.get("value", "") for option in content.iter("option")]
        default = content.get("default") or ""
        listed = choices and not any(re.search(r"\s", choice) for choice in choices)
        kind = "|".join(choices) if listed else _KINDS.get(content.get("type", ""), "")
        if kind == _BOOLEAN and default.lower() not in _BOOLEANS:
            kind = ""
        # A required parameter with a default may be left out.
        required = parameter.get("required") == "1" and not default
        if kind in ("", _INTEGER):
            kind = _meant(name, default, kind)
        unique = "*" if parameter.get("unique") == "1" else ""
        yield f"{name}{'!' if required else ''}{unique}{':' + kind if kind else ''}"


def _meant(name: str, default: str, kind: str) -> str:
    if re.fullmatch(r"/[\w./-]+", default) or (not kind and _PATH.fullmatch(name)):
        return "path"
    return "count" if kind and _COUNT.fullmatch(name) and not default.startswith("-") else kind


def actions(text: str) -> str:
    try:
        root = Xml.fromstring(text[text.index("<") :])
    except (Xml.ParseError, ValueError):
        return ""
    advised: dict[str, int] = {}
    for action in root.iter("action"):
        number = re.fullmatch(r"(\d+)(s|m|min)?", action.get("timeout", ""))
        name = action.get("name", "")
        if number and name in _OPERATIONS:
            times = 60 if (number[2] or "s").startswith("m") else 1
            advised[name] = max(advised.get(name, 0), int(number[1]) * times)
    return " ".join(f"{name}={limit}" for name, limit in advised.items())


def _agents() -> Iterator[tuple[str, str]]:
    for path in sorted(_OCF.glob("*/*")):
        if path.is_file() and not path.name.startswith("."):
            name = f"{path.parent.name}:{path.name}"
            yield name, _said("crm_resource", "--show-metadata", f"ocf:{name}")


def advised_times() -> dict[str, str]:
    return {f"times of {name}": words for name, text in _agents() if (words := actions(text))}


def versions(*packages: str) -> str:
    return _said("dpkg-query", "--show", "--showformat=${Package} ${Version}, ", *packages).rstrip(", ")


def parameters(*words: str) -> list[str]:
    return list(_parameters(_said(*words)))


def fencing_agents() -> dict[str, str]:
    found = {}
    for path in sorted(Path("/usr/sbin").glob("fence_*")):
        # Omit the marks of required parameters: some have older names, and Pacemaker sets others.
        words = " ".join(sorted(_parameters(_said(str(path), "-o", "metadata")))).translate(_NO_MARKS)
        if words:
            found[path.name] = words
    return found


def with_shared_words(agents: Mapping[str, str]) -> dict[str, str]:
    """Return the table with the options that several agents share moved to rows, which the agents refer to by ``@``."""
    left = {name: words.split() for name, words in agents.items()}
    having = {word: {name for name in left if word in left[name]} for words in left.values() for word in words}
    rows = {}
    for shared, examples in _SHARED_BY_AGENTS.items():
        together = [having[example] for example in examples]
        row = rows[shared] = sorted(word for word in having if having[word] in together)
        for name in set.intersection(*together):
            left[name] = [word for word in left[name] if word not in row]
            left[name].insert(sum(word.startswith("@") for word in left[name]), shared)
    return {name: " ".join(words) for name, words in (rows | left).items()}


def resource_agents() -> dict[str, str]:
    return {name: " ".join(_parameters(text)) for name, text in _agents()}


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
                    # The kernel has a number for resync-after, and drbd.conf the name of a resource.
                    words.add(name if name == "resync-after" else f"{name}{_drbd_kind(option)}")
        found[section] = " ".join(sorted(words))
    return found


def _drbd_kind(option: Xml.Element) -> str:
    handlers = "|".join(handler.text or "" for handler in option.iter("handler"))
    if handlers:
        return f":{handlers}"
    if option.get("type") == "boolean":
        return f":{_BOOLEAN}"
    if option.get("type") == "numeric":
        # The unit of a plain number: b for counts and bytes. A value may also have the suffix k, M or G.
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
        "Options by section: name, ! if required, * if the value must be unique, and the valid values; @ROW means "
        "the words of that row. Written by tests/failover/options_of_programs.py from"
    )
    agents = versions("resource-agents", "pacemaker-resource-agents", "drbd-utils")
    for name, parts, packages in (
        ("fencing_agents", with_shared_words(fencing_agents()), versions("fence-agents")),
        ("resource_agents", resource_agents(), agents),
        ("pacemaker", cluster_properties(), versions("pacemaker")),
    ):
        (TABLES / f"{name}.toml").write_text(_table(f"{about} {packages}.", parts))
    times = (
        "Time-outs in seconds that each agent advises for its operations. "
        "Written by tests/failover/options_of_programs.py from"
    )
    (TABLES / "advised_times.toml").write_text(_table(f"{times} {agents}.", advised_times()))
    drbd = {
        f"{version} {section}": words
        for version, program in _DRBD_PROGRAMS.items()
        for section, words in drbd_options(program).items()
    }
    (TABLES / "drbd.toml").write_text(_table(f"{about} {versions('drbd-utils')}.", drbd))


if __name__ == "__main__":
    main()
