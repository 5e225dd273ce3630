"""Build the report (portrait) of a stored run of any kind, without access to the file system."""

from __future__ import annotations

from strakes.model.portrait import Portrait
from strakes.runs.run import Run, told_as_damage
from strakes.survey.analysis_build import study_portrait


def build_portrait(run: Run) -> Portrait:
    """Return the report: estimates, figures, findings, answers, warnings. Raises BadInputError for a damaged run."""
    with told_as_damage(run):
        if run.manifest["kind"] != "tune":
            return study_portrait(run)
        # Import here, because numpy takes 0.2 s to load, and only reports of searches need it.
        from strakes.tuning.tuned import tuned_portrait

        return tuned_portrait(run)


def answers_anything(run: Run) -> bool:
    """Return whether the run answers at least one question. Raises BadInputError for a damaged run."""
    return any(answer.grade != "undecided" for answer in build_portrait(run).answers)
