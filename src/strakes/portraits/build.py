"""The portrait of a stored run, whichever kind of run it is. Pure: reads the run, touches neither target nor store."""

from __future__ import annotations

from strakes.analysis.build import study_portrait
from strakes.findings.portrait import Portrait
from strakes.store import Run
from strakes.store.run import told_as_damage
from strakes.tuning.request import KIND


def build_portrait(run: Run) -> Portrait:
    """Everything the run shows: estimates, figures, findings, advice with its confirmation, warnings."""
    with told_as_damage(run):
        if run.manifest["kind"] != KIND:
            return study_portrait(run)
        # Searches need numpy, which takes a fifth of a second to load.
        from strakes.portraits.tuned import tuned_portrait

        return tuned_portrait(run)
