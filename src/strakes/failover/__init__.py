"""Fail-over of servers: plan a pair, check a configuration, rehearse failures, and read how a recovery went.

Configurations of Pacemaker, Corosync, DRBD and others enter; findings with reasons and remedies leave. Rules are
tables in ``rules/*.toml``; ``rules_*.py`` has the few that need a function. First file to read: ``model.py``.
"""
