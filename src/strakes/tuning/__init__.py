"""A search for the best settings, carried out: trials on the file system, their record, and the outcome."""
