"""Fail-over of servers: plan a pair, check a configuration, rehearse failures, and read how a recovery went.

The input is the configuration of Pacemaker, Corosync, DRBD and others; the output is findings with reasons and
remedies. Most rules are tables in ``rules/*.toml``; others are functions in ``rules_*.py``. Read ``model.py`` first.
"""
