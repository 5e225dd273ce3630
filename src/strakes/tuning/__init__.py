"""Settings for one application: advise them from measurements, search for them, and test systems against needs.

Input: descriptions of applications, and stored runs. Output: settings with expected gains. ``advise_*.py`` derive
settings from runs, ``tune_*.py`` search by experiment, ``accept_*.py`` test needs. First files to read:
``advise_choose.py`` and ``run.py``.
"""
