"""Settings of file systems: a catalogue of them, and changes that are put back whatever happens."""
