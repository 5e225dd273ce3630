"""A run as one file (``schemas/export.json``), so that a whole site can read what one measured."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from strakes.errors import BadInputError
from strakes.store.run import Run

_REMEDY = "Write a valid file with: strakes export RUN -o FILE"
_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True)
class PublishedRun(Run):
    """A run that is read from the file ``path``; nothing can be written to it."""

    @property
    def id(self) -> str:
        return str(self.manifest["id"])

    @cached_property
    def manifest(self) -> dict[str, Any]:
        manifest: dict[str, Any] = self._document["manifest"]
        return manifest

    @cached_property
    def environment(self) -> dict[str, Any]:
        environment: dict[str, Any] = self._document["findings"]["environment"]
        return environment

    @cached_property
    def findings(self) -> dict[str, Any] | None:
        findings: dict[str, Any] = self._document["findings"]
        return findings

    def _rows(self, name: str) -> list[dict[str, Any]]:
        return list(self._document[name])

    @cached_property
    def _document(self) -> dict[str, Any]:
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import best_match

        from strakes.schemas import load_schema

        document = _read(self.path)
        error = best_match(Draft202012Validator(load_schema("export")).iter_errors(document))
        if error is not None:
            where = f"{self.path}: {error.json_path}"
            raise BadInputError("this is not a run exported by strakes", where=where, why=error.message, remedy=_REMEDY)
        whole: dict[str, Any] = document
        return whole


def _read(path: Path) -> Any:
    """Return the JSON in the file, compressed with gzip or not."""
    try:
        content = path.read_bytes()
        if content.startswith(_GZIP_MAGIC):
            content = gzip.decompress(content)
        return json.loads(content)
    except (OSError, EOFError, ValueError) as error:
        why = (isinstance(error, OSError) and error.strerror) or str(error)
        raise BadInputError("a published run cannot be read", where=str(path), why=why, remedy=_REMEDY) from error
