"""Settings for one application: advised from measurements, found by a search, or tested against needs.

Input: descriptions of applications, and stored runs. Output: settings with expected gains. ``advise_*.py`` choose from
runs, ``tune_*.py`` search, ``accept_*.py`` test. First files to read: ``advise_choose.py`` and ``run.py``.
"""
