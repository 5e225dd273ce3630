"""``strakes survey DIR``: measure a file system."""

from __future__ import annotations

from dataclasses import replace

from strakes.cli.options import Amounts, Directory, Like, Sampling, command_named, like_run


@command_named("survey", budget_s="2m")
def command(directory: Directory, sampling: Sampling, amounts: Amounts, like: Like) -> int:
    """Measure the file system under DIR and say how to use it well.

    A survey writes only to its own directory inside DIR, uses at most 80 % of the free space, and removes its files at
    the end. It prints a summary and writes an HTML report. Exit status: 0 measured, 1 the file system failed, 2 DIR
    cannot be used, 3 this machine lacks something, 130 interrupted by you or by --neighbour.
    """
    from strakes.cli.measure import measure, request_from
    from strakes.studies.registry import survey_studies

    plans = like_run(like, amounts.data_per_rank, amounts.files, amounts.phase_s)
    request = request_from(sampling, "survey", "survey", directory, survey_studies(), amounts)
    return measure(replace(request, like=plans, full=False), sampling)
