"""Other tools: their results are read, their formats written, their command lines carried out.

``reader_*.py`` reads results, ``command_*.py`` translates command lines into plans, ``export_*.py`` writes runs in
other formats. First file to read: ``formats.py``.
"""
