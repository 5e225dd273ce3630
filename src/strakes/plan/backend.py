"""Backends by name; ``schemas/plan.json`` lists those of each kind of phase, and the engine refuses all others."""

Backend = str
