"""Exchange with other benchmarks: read their results, write their formats, run their command lines.

``reader_*.py`` reads results, ``command_*.py`` translates command lines into plans, ``export_*.py`` writes runs in
other formats. First file to read: ``formats.py``.
"""
