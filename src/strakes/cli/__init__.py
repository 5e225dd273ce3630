"""The command line: one module for each command, imported when the command is called.

Words enter; text on the terminal and an exit status leave. The modules only connect options to the other rooms.
First file to read: ``main.py``.
"""
