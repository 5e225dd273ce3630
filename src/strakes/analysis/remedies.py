"""Remedies of warnings."""

from __future__ import annotations

from collections.abc import Mapping

REMEDIES: Mapping[str, str] = {
    "cache-suspect": "Read more data than fits into the memory of nodes and servers, use O_DIRECT, or let other "
    "nodes read the data.",
    "cache-unseen": "Read more data than that cache holds, or use O_DIRECT, or let other nodes read the data; "
    "--servers lets the servers count their reads.",
    "target-unlike": "strakes target DIR shows these targets. Measure again when they are like the others, or mention "
    "it with the figures.",
    "server-unlike": "Look at its disks, its network and its other work; strakes study target-baseline measures "
    "each data target alone. The slowest server limits files on several servers.",
    "server-changed": "Repeat at a time when no server is restarted and nobody clears counters.",
    "service-interrupted": "Find out why the servers failed over. The figures come from undisturbed runs, unless the "
    "warning says that runs were not repeated.",
    "servers-not-well": "Measure again when strakes target DIR shows all servers and targets as active.",
    "memory-file-system": "Give a directory on the storage that you want to measure.",
    "few-runs": "Give a larger --budget so that every cell is run often enough for an interval.",
    "background-load": "Rates are lower than on a quiet machine: repeat when nothing else runs.",
    "clock-jump": "Slew the clock instead of stepping it, and repeat. Rates use a clock that does not jump; times of "
    "day do not.",
    "stonewalled": "Give more time or less work. The rate covers only the work finished in time.",
    "direct-refused": "All figures are buffered. Read the cache warnings with them, or measure where O_DIRECT is "
    "supported.",
    "node-unlike": "Leave the node out of --hosts, or expect the slowest node to limit the figures.",
    "begun-apart": "Start no more ranks than processors, and stop other programs. Longer phases are affected less.",
    "held-back": "Read these rates as lower limits: without --impact or --neighbour the file system may do more.",
    "gave-way": "Measure at a quieter time. Work that was slowed down shows neither the file system alone nor its "
    "usual state.",
    "left-out": "Measure at a quieter time or with a larger --budget, so that all runs have the same limit.",
    "setting-differs": "The figure belongs to the setting in effect. Ask for a setting that the target accepts.",
    "hybrid-io": "These figures show direct I/O. strakes study hybrid-io DIR (as root) shows both; lctl "
    "set_param llite.*.hybrid_io=0 turns it off.",
    "budget-skipped": "Give a larger --budget, or run only this study with strakes study.",
}
