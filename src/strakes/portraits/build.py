"""Build the portrait of a stored run of any kind. Pure: reads the run, accesses neither target nor store."""

from __future__ import annotations

from strakes.analysis.build import study_portrait
from strakes.findings.portrait import Portrait
from strakes.store import Run
from strakes.store.run import told_as_damage
from strakes.tuning.request import KIND


def build_portrait(run: Run) -> Portrait:
    """Return the portrait: estimates, figures, findings, answers, warnings. Raises BadInputError for a damaged run."""
    with told_as_damage(run):
        if run.manifest["kind"] != KIND:
            return study_portrait(run)
        # Portraits of searches need numpy, which takes 0.2 s to load.
        from strakes.portraits.tuned import tuned_portrait

        return tuned_portrait(run)
