"""Build the report (portrait) of a stored run of any kind, without access to the file system."""

from __future__ import annotations

from strakes.model.portrait import Portrait
from strakes.model.record import from_record, to_record
from strakes.runs.run import Run, told_as_damage
from strakes.survey.analysis_build import study_portrait


def build_portrait(run: Run) -> Portrait:
    """Return the report: estimates, figures, findings, answers, warnings. Raises BadInputError for a damaged run."""
    with told_as_damage(run):
        if run.manifest["kind"] != "tune":
            portrait = study_portrait(run)
        else:
            # Import here, because numpy takes 0.2 s to load, and only reports of searches need it.
            from strakes.tuning.tuned import tuned_portrait

            portrait = tuned_portrait(run)
        # Facts and options of a run have no types of their own, so check the types of all that is shown.
        return from_record(Portrait, to_record(portrait))


def answers_anything(run: Run) -> bool:
    """Return whether the run answers at least one question. Raises BadInputError for a damaged run."""
    return any(answer.grade != "undecided" for answer in build_portrait(run).answers)
