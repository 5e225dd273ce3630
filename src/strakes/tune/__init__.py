"""The best settings for one application, found by experiment and confirmed against the default."""
