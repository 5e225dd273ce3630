"""The command line: one module for each command, imported when the command is called.

The modules parse arguments, call other packages, print the results and return an exit status.
First file to read: ``main.py``.
"""
