"""Where strakes keeps what outlives a command. Imports nothing that costs time: every command may ask."""

from __future__ import annotations

import os
from pathlib import Path

from strakes.errors import EnvironmentLacksError


def default_root() -> Path:
    """Return the store: $STRAKES_STORE, else $XDG_DATA_HOME/strakes, else ~/.local/share/strakes."""
    if chosen := os.environ.get("STRAKES_STORE"):
        return Path(chosen).expanduser().absolute()
    data_home = os.environ.get("XDG_DATA_HOME", "")
    if os.path.isabs(data_home):  # the specification wants relative ones ignored
        return Path(data_home) / "strakes"
    try:
        return Path.home() / ".local" / "share" / "strakes"
    except RuntimeError as error:
        remedy = "Set STRAKES_STORE to a directory."
        raise EnvironmentLacksError("the directory of the store is unknown", why=str(error), remedy=remedy) from error
