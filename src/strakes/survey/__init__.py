"""Run studies within a budget: a pilot, then interleaved blocks."""
