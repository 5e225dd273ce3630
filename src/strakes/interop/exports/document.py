"""A run as one JSON document (``schemas/export.json``): what it found, and everything that was measured."""

from __future__ import annotations

from typing import Any

from strakes.portrait.build import build_portrait
from strakes.report.findings import to_document
from strakes.store import Run


def to_export(run: Run) -> dict[str, Any]:
    """The document."""
    return {
        "schema": 1,
        "manifest": run.manifest,
        "findings": to_document(build_portrait(run)),
        "cells": run.cells,
        "visits": run.visits,
        "events": run.events,
    }
