"""Texts and remedies of the warnings on a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from strakes.base.language import gettext
from strakes.model.portrait import RunWarning

TEXTS: Mapping[str, str] = {
    "cached-before": "{resident} of the {read} to read ({share}) were in the page cache before the read, so memory "
    "supplied a part of the rate.",
    "answered-before": "{who} read only {counted} of {read}: a cache, or a device without counters, answered the rest.",
    "cache-below": "The device is a loop device on the file {file}: this node's memory may answer reads, even with "
    "O_DIRECT.",
    "cache-unseen": "{file_system} also keeps data in {cache}: it is not known how many of the reads this cache "
    "answered.",
    "unsynced": "Nothing was synced at the end of {phases}: the data may still have been in this node's memory.",
    "memory-file-system": "The directory is on {file_system}: every figure shows memory, not storage.",
    "few-runs": "Only {runs} of the three runs that an interval needs.",
    "background-load": "Other programs kept the {processors} processors of this node {share} busy "
    "(load average {load:.1f} before the run).",
    "direct-refused": "{file_system} refused O_DIRECT (tried with an aligned write and read): everything was measured "
    "through the page cache.",
    "setting-differs": "{setting}: {asked} was asked for, {effective} is in effect.",
    "target-unlike": "{targets}",
    "servers-not-well": "{servers}",
    "hybrid-io": "Lustre's hybrid I/O makes buffered calls of at least these sizes direct: {sizes}.",
    "server-unlike": "Server {server} moves {low:.2f} - {high:.2f} times as much data per busy second as the "
    "others: files on this server are slower.",
    "node-unlike": "{nodes}.",
    "begun-apart": "In {apart} of {phases} phases, the last rank started after more than {limit} of the phase: at "
    "worst {worst} late ({share} of that phase), rank {rank}.",
    "counters-unread": "{servers}",
    "server-changed": "{servers}.",
    "service-interrupted": "{interruptions} Disturbed runs that were repeated: {runs}.",
    "service-interrupted-once": "{interruptions} Runs during that time were not repeated.",
    "held-back": "Limited to {limit}: the ranks waited for up to {share} of the time, so the rates show the limit, not "
    "the file system.",
    "held-back-bytes": "Limited to {limit}: the ranks waited for up to {share} of the time, so the rates show the "
    "limit, not the file system. Operations on names were not limited: --impact 5000ops/s limits them too.",
    "gave-way": "To protect other users: {yielded} runs were stopped and repeated, {slowed} ran at reduced load.",
    "stopped-for-others": "To protect other users: {yielded} runs were stopped and repeated, {slowed} ran at reduced "
    "load, and in the end everything was stopped.",
    "left-out": "{runs} runs were made under other load limits ({limits}). Only runs under one limit are shown "
    "({kept}).",
    "other-measurement": "Another measurement worked in the same directory at the same time: {who}.",
    "names-from-memory": "{operation} was answered from the names and attributes that this node's kernel has kept in "
    "memory since it created the files, not by the file system.",
    "short-phases": "{short} of {figures} values come from phases shorter than {limit} (the shortest: {shortest}). "
    "Such short phases show the start of the work, not a sustained rate.",
    "burst": "Four times the work was {slower}: the usual amounts fit into a burst, and no setting is recommended.",
    "fits-servers-memory": "No phase moved more than {most} of data. Server caches can hold that much: they may have "
    "absorbed the writes, fsync included, and answered reads of data that had just been written.",
}
_CODES = {
    "cached-before": "cache-suspect",
    "answered-before": "cache-suspect",
    "held-back-bytes": "held-back",
    "service-interrupted-once": "service-interrupted",
    "stopped-for-others": "gave-way",
}

_ON_STORAGE = "To measure storage, give a directory on a disk or on a file server."
REMEDIES: Mapping[str, str] = {
    "cache-suspect": "Read more data than fits into the memory of nodes and servers, use O_DIRECT, or let other "
    "nodes read the data.",
    "cache-below": _ON_STORAGE,
    "cache-unseen": "Read more data than that cache holds, or use O_DIRECT, or let other nodes read the data; "
    "--servers lets the servers count their reads.",
    "unsynced": 'Sync at the end of the write: ior -e, or sync = "fsync" in a plan.',
    "target-unlike": "Look at these targets with strakes target DIR. Measure again when they are like the others, or "
    "mention the difference with the figures.",
    "server-unlike": "Look at the disks, the network and the other load of this server; strakes study "
    "target-baseline measures each data target alone. The slowest server limits files on several servers.",
    "counters-unread": "Run this command by hand, and measure again when it works without a password.",
    "server-changed": "Repeat when no server is restarted and nobody clears counters.",
    "service-interrupted": "Find out why the servers failed over. The figures come from undisturbed runs, unless the "
    "warning says that runs were not repeated.",
    "servers-not-well": "Measure again when strakes target DIR shows all servers and targets as active.",
    "memory-file-system": _ON_STORAGE,
    "few-runs": "Give a larger --budget so that every cell is run often enough for an interval.",
    "background-load": "Rates are as measured, and higher on a quiet machine. Except on FUSE, the answers leave out "
    "the time spent waiting for a processor, and can differ from the order of these rates.",
    "direct-refused": "Measure where O_DIRECT is supported, or read the cache warnings: all figures are of buffered "
    "I/O.",
    "node-unlike": "Leave the node out of --hosts, or expect the slowest node to limit the figures.",
    "begun-apart": "Start no more ranks than processors, and stop other programs. Longer phases are affected less.",
    "held-back": "Read these rates as lower limits: without --impact or --neighbour the file system may do more.",
    "gave-way": "Measure at a quieter time. A measurement that was slowed down shows neither the file system alone "
    "nor its usual state.",
    "left-out": "Measure at a quieter time or with a larger --budget, so that all runs have the same limit.",
    "setting-differs": "Ask for a setting that the target accepts: the figure belongs to the setting in effect.",
    "hybrid-io": "Turn hybrid I/O off as root: lctl set_param llite.*.hybrid_io=0. These figures show direct I/O.",
    "names-from-memory": "Read this as the rate for a process that uses its own new files again. It says nothing "
    "about servers or devices; for those, see the rates of creating and removing files.",
    "short-phases": "Give --phase 1s with a larger --budget, or measure one study alone: strakes study NAME DIR "
    "--phase 1s. More files: --files 100000.",
    "burst": "Longer phases show the rates that last.",
    "fits-servers-memory": "Move twice as much data as this node has memory: strakes study data-per-process DIR "
    "--data-per-rank {each}. If servers have more memory, give more data, and the budget that strakes then requests.",
    "other-measurement": "Run one measurement after the other. These figures show a system that another measurement "
    "used.",
}


def warning(kind: str, cells: Sequence[str] = (), **values: object) -> RunWarning:
    """Return the warning of a kind, such as "few-runs", with the values inserted in the text.

    ``cells``: ids of the affected cells. Empty means the whole run.

    >>> warning("few-runs", ["a:write"], runs=2).text
    'Only 2 of the three runs that an interval needs.'
    """
    code = _CODES.get(kind, kind)
    return RunWarning(code, gettext(TEXTS[kind], **values), gettext(REMEDIES[code], **values), tuple(cells))
