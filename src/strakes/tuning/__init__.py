"""Find the best settings for an application, and test whether a file system meets requirements.

Input: descriptions of applications, and stored runs. Output: settings with expected gains. ``advise_*.py`` derive
settings from stored runs, ``tune_*.py`` search by experiment, ``accept_*.py`` test requirements. First files to read:
``advise_choose.py`` and ``run.py``.
"""
