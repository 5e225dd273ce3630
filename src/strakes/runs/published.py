"""Read a run from one file (``schemas/export.json``), for exchange between users and sites."""

from __future__ import annotations

import gzip
import io
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from strakes.base.errors import BadInputError
from strakes.base.file_kinds import OTHER_KINDS, refuse_other_kind
from strakes.base.files import read_regular
from strakes.base.finite import parse_json
from strakes.runs.run import Run

_REMEDY = "Write a valid file with: strakes export RUN -o FILE"
# Maximum size of a file in bytes, also after decompression. The largest known has 2 MiB. Memory takes 6 times as much.
_MOST_BYTES = 64 << 20
_MOST_OBJECTS = 300_000  # Maximum number of JSON objects. Such a file takes 750 MB of memory (measured).
_PARTS = {"manifest": dict, "findings": dict, "cells": list, "visits": list, "events": list}


@dataclass(frozen=True)
class PublishedRun(Run):
    """A read-only run in the file ``path``."""

    @property
    def id(self) -> str:
        return str(self.manifest["id"])

    @cached_property
    def findings(self) -> dict[str, Any] | None:
        return dict(self._document["findings"])

    def damaged(self, why: str, name: str = "") -> BadInputError:
        where = f"{self.path}: {name}" if name else str(self.path)
        return BadInputError("this is not a run exported by strakes", where=where, why=why, remedy=_REMEDY)

    def _rows(self, name: str) -> list[dict[str, Any]]:
        return list(self._document[name])

    def _read_document(self, name: str) -> dict[str, Any]:
        parts = self._document
        document: object = parts["findings"].get("environment") if name == "environment.json" else parts["manifest"]
        if not isinstance(document, dict):
            raise self.damaged("it is not an object", name)
        return document

    @cached_property
    def _document(self) -> dict[str, Any]:
        document = _read(self.path)
        for part, kind in _PARTS.items():
            if not isinstance(document, dict) or not isinstance(document.get(part), kind):
                raise self.damaged("it is missing or has the wrong type", part)
        return dict(document)


def _read(path: Path) -> Any:
    refuse_other_kind(path, "export", OTHER_KINDS["export"].name)
    try:
        content = read_regular(path, _MOST_BYTES, "a published run cannot be read", _REMEDY)
        if content.startswith(b"\x1f\x8b"):
            content = gzip.GzipFile(fileobj=io.BytesIO(content)).read(_MOST_BYTES + 1)
            if len(content) > _MOST_BYTES:
                raise ValueError(f"the unpacked file is larger than {_MOST_BYTES >> 20} MiB")
        if content.count(b"{") > _MOST_OBJECTS:
            raise ValueError(f"it has more than {_MOST_OBJECTS:,} objects")
        return parse_json(content)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        why = (isinstance(error, OSError) and error.strerror) or str(error)
        raise BadInputError("a published run cannot be read", where=str(path), why=why, remedy=_REMEDY) from error
