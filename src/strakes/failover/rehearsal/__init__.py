"""Prediction of failures by Pacemaker's own policy engine, with a small model of cables, power and disks."""
