"""Texts for settings and their values."""

from __future__ import annotations

from collections.abc import Mapping

from strakes.base.language import gettext, ngettext
from strakes.base.units import format_bytes, format_seconds
from strakes.model.portrait import Setting


def label_of(key: str) -> str:
    """Return the displayed name of a setting, without its unit.

    >>> label_of("transfer_bytes"), label_of("phase_s"), label_of("O_DIRECT"), label_of("ranks")
    ('transfer', 'phase', 'O_DIRECT', 'ranks')
    """
    if key.upper() == key:
        return key
    for suffix in ("_bytes", "_s", "_unix_s"):
        key = key.removesuffix(suffix)
    return gettext(key.replace("_", " ").replace("-", " "))


def level_of(key: str, value: Setting) -> str:
    """Return a setting's value as text. ``key``: the setting's name, whose ending determines the unit.

    >>> level_of("transfer_bytes", 65536), level_of("direct", True), level_of("ranks", 1024), level_of("phase_s", 0.5)
    ('64 KiB', 'yes', '1,024', '500 ms')
    """
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    if isinstance(value, str):
        return gettext(value)
    if key.endswith("_bytes"):
        return format_bytes(value)
    if key.endswith("_s"):
        return "0 s" if value == 0 else format_seconds(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def level_text(key: str, value: Setting) -> str:
    """Return a setting's value as text that is clear without the name of the setting.

    >>> [level_text(*pair) for pair in (("ranks", 8), ("data_bytes", 65536), ("files", "strided"), ("stripes", 3))]
    ['8 processes', '64 KiB per process', 'strided files', 'stripes 3']
    """
    if (key, value) in _NAMED or isinstance(value, str):
        return gettext(_NAMED.get((key, value), str(value)))
    if key in _SIZES:
        return gettext(_SIZES[key], size=format_bytes(value))
    if key in _COUNTED and isinstance(value, int):
        return ngettext(*_COUNTED[key], value)
    return gettext("{first} {second}", first=label_of(key), second=level_of(key, value))


_NAMED: Mapping[tuple[str, Setting], str] = {
    ("direct", True): "O_DIRECT",
    ("directory", "shared"): "shared directory",
    ("directory", "unique"): "own directories",
    ("files", "own"): "own files",
    ("files", "segmented"): "segmented files",
    ("files", "shared"): "shared file",
    ("files", "strided"): "strided files",
    ("io", "direct"): "O_DIRECT",
}
_COUNTED = {
    "ranks": ("{count} process", "{count} processes"),
    "files": ("{count} file", "{count} files"),
    "nodes": ("{count} node", "{count} nodes"),
    "requests": ("{count} request", "{count} requests"),
    "clients": ("{count} client", "{count} clients"),
    "writers": ("{count} writer", "{count} writers"),
    "readers": ("{count} reader", "{count} readers"),
    "metadata_targets": ("{count} metadata target", "{count} metadata targets"),
}
_SIZES = {
    "transfer_bytes": "{size} transfers",
    "block_bytes": "{size} block",
    "data_bytes": "{size} per process",
    "file_bytes": "{size} files",
    "stripe_bytes": "{size} stripes",
}


def settings_text(settings: Mapping[str, Setting], between: str = ", ") -> str:
    """Return settings as text.

    >>> settings_text({"ranks": 4, "transfer_bytes": 65536})
    'ranks 4, transfer 64 KiB'
    """
    return between.join(f"{label_of(key)} {level_of(key, value)}" for key, value in settings.items())
