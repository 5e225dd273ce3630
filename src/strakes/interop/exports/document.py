"""Export of a run as one JSON document (``schemas/export.json``): its findings and all measurements."""

from __future__ import annotations

from strakes.findings.record import to_record
from strakes.portraits.build import build_portrait
from strakes.report.findings import to_document
from strakes.store import Run
from strakes.store.records import event_to_record


def to_export(run: Run) -> dict[str, object]:
    """Return the run as plain JSON values (``schemas/export.json``)."""
    return {
        "schema": 1,
        "manifest": run.manifest,
        "findings": to_document(build_portrait(run)),
        "cells": [to_record(cell) for cell in run.cells],
        "visits": [to_record(visit) for visit in run.visits],
        "events": [event_to_record(event) for event in run.events],
    }
