"""Run studies within a time budget, analyse the samples, compare runs, and follow them over months.

The result of a survey is a portrait with graded answers. ``analysis_*.py``, ``compare_*.py`` and ``history_*.py`` work
on stored runs. A *cell* is one combination of settings. A *visit* (or trial) is one execution of a cell's plan. A
*block* (or round) is a series of trials, one of each cell. A *question* asks which level of a setting is best. A
*claim* is a published statement that a run tests. First files to read: ``runner.py`` and ``analysis_build.py``.
"""
