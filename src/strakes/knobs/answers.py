"""What the tools and files of knobs answer, as values; None where a setting has none of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from strakes.errors import MeasurementError

_OBJECT = re.compile(r"(?:^(\S+): )?(\{[^{}]*\})", re.MULTILINE)


def plain(text: str, pattern: str = "") -> str:
    """Return the text without white space around it, or the part that the pattern's group finds.

    >>> plain("users: 10\\nmax_cached_mb: 983\\n", r"^max_cached_mb: (\\d+)$")
    '983'
    """
    if not pattern:
        return text.strip()
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise not_understood(text)
    return match[1]


def in_brackets(text: str) -> str:
    """Return the chosen one of several words.

    >>> in_brackets("none [mq-deadline] kyber\\n")
    'mq-deadline'
    """
    return text.partition("[")[2].partition("]")[0] or text.strip()


def of_ceph(text: str, section: str, option: str) -> str | None:
    """Return an option in ``ceph config dump``: of that section as a whole, not of one daemon or host."""
    try:
        rows: list[dict[str, Any]] = json.loads(text)
        values = [
            row["value"] for row in rows if (row["section"], row["name"], row.get("mask", "")) == (section, option, "")
        ]
    except (ValueError, KeyError, TypeError):
        raise not_understood(text) from None
    return str(values[0]) if values else None


def of_gluster(text: str, option: str) -> str | None:
    """Return an option that somebody gave a volume, in ``gluster --xml volume info``."""
    try:
        document = ElementTree.fromstring(text)
    except ElementTree.ParseError:
        raise not_understood(text) from None
    if document.findtext("opRet") != "0" or document.find(".//volume") is None:
        raise MeasurementError(
            "the volume does not answer", why=document.findtext("opErrstr") or "the volume does not exist"
        )
    pairs = {element.findtext("name"): element.findtext("value") for element in document.iter("option")}
    return pairs.get(option)


def in_force(text: str, option: str) -> Mapping[str, str]:
    """Daemon -> value, in the answer to ``ceph tell KIND.* config get``; a daemon alone is not named.

    >>> in_force('mds.a: {"x": "1"}\\nmds.b: {"x": "2"}', "x")
    {'mds.a': '1', 'mds.b': '2'}
    """
    values = {}
    for name, document in _OBJECT.findall(text):
        try:
            values[name or "the daemon"] = str(json.loads(document)[option])
        except (ValueError, KeyError):
            continue
    return values


def not_understood(text: str) -> MeasurementError:
    """Return the error for an answer that is not as it should be."""
    remedy = "Please report it with the version of the file system."
    return MeasurementError("the answer of a setting is not understood", where=repr(text[:200]), remedy=remedy)
