"""A place in a cluster's own database where all its clients see which stores change its settings.

Ceph has its key store, Gluster the ``user.`` options of a volume. Neither can make a key only where there is none, so
each store writes a key of its own and then reads those of all: of two that come at once at least one sees the other.
Gluster cannot remove a ``user.`` option: one that says nothing any more is a dash.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree import ElementTree

from strakes.errors import MeasurementError
from strakes.knobs.knob_place import KnobPlace
from strakes.targets.command import Runner

_DIGITS = 16
_NOTHING = "-"


@dataclass(frozen=True)
class Board:
    """The records of one setting. ``words``: how its tool is called; ``volume`` is Gluster's."""

    words: tuple[str, ...]
    setting: str
    volume: str = ""

    def key_of(self, claimant: str) -> str:
        """Return the key under which a store writes."""
        digest = hashlib.sha256(claimant.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
        return f"{self._prefix}{'.' if self.volume else '/'}{digest}"

    def write(self, claimant: str, record: str, ask: Runner) -> bool:
        """Return whether the cluster took it: who may not write there may change no setting there either."""
        if self.volume:
            # Its files of options keep neither quotes nor line ends.
            text = base64.urlsafe_b64encode(record.encode()).decode().rstrip("=")
            return ask((*self.words, "volume", "set", self.volume, self.key_of(claimant), text)).status == 0
        return ask((*self.words, "config-key", "set", self.key_of(claimant), record)).status == 0

    def remove(self, key: str, ask: Runner) -> None:
        """Remove a record. Raises MeasurementError when the cluster does not."""
        done = ask(self.removal(key))
        if done.status != 0:
            raise MeasurementError("a record of a setting cannot be removed", where=key, why=done.stderr.strip())

    def removal(self, key: str) -> tuple[str, ...]:
        """Return the command that removes a record."""
        if self.volume:
            return (*self.words, "volume", "set", self.volume, key, _NOTHING)
        return (*self.words, "config-key", "rm", key)

    def read(self, ask: Runner) -> Mapping[str, str]:
        """Return the records of all stores, by key. Raises MeasurementError when they cannot be read."""
        words = ("--xml", "volume", "info", self.volume) if self.volume else ("config-key", "dump", self._prefix)
        done = ask((*self.words, *words))
        try:
            if done.status != 0:
                raise ValueError(done.stderr.strip() or f"exit status {done.status}")
            return self._of_volume(done.stdout) if self.volume else self._of_keys(done.stdout)
        except (ValueError, RecursionError, ElementTree.ParseError) as error:
            why = str(error)
            raise MeasurementError("records of a setting cannot be read", where=self._prefix, why=why) from error

    @property
    def _prefix(self) -> str:
        return f"user.strakes.{self.setting}" if self.volume else f"strakes/knobs/{self.setting}"

    def _of_keys(self, text: str) -> dict[str, str]:
        document = json.loads(text or "{}")
        if not isinstance(document, dict):
            raise ValueError("it is not a JSON object")
        return {key: str(value) for key, value in document.items() if key.startswith(f"{self._prefix}/")}

    def _of_volume(self, text: str) -> dict[str, str]:
        records = {}
        for option in ElementTree.fromstring(text).iter("option"):
            key, value = option.findtext("name") or "", option.findtext("value") or ""
            if key.startswith(f"{self._prefix}.") and value != _NOTHING:
                records[key] = _plain(value)
        return records


def board_of(place: KnobPlace) -> Board | None:
    """Return where all clients of the place see who changes it; None where it is no cluster's.

    >>> read = ("ceph", "--id", "admin", "config", "dump", "--format", "json")
    >>> board_of(KnobPlace("x", "x", read_words=read, answer="ceph config dump", unset_words=("mds", "x"))).words
    ('ceph', '--id', 'admin')
    """
    if place.answer == "ceph config dump" and "config" in place.read_words:
        # Options with which a client reaches the cluster say nothing of the setting.
        before = place.read_words[: place.read_words.index("config")]
        return Board(before, "/".join(place.unset_words[-2:]))
    if place.answer == "gluster volume info":
        return Board(("gluster", "--mode=script"), place.unset_words[-1], place.unset_words[-2])
    return None


def _plain(value: str) -> str:
    try:
        return base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)).decode()
    except (binascii.Error, ValueError):
        return value
