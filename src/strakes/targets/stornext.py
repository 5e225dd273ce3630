"""Quantum StorNext: detected, with what its configuration decides."""

from __future__ import annotations

from strakes.targets.remote import RemoteTarget


class StorNextTarget(RemoteTarget):
    """Stripe breadth and stripe groups are in the configuration of the file system on its metadata controllers."""

    file_systems = ("cvfs", "snfs")
    cannot = (
        (
            "set the layout of files",
            "the configuration of the file system fixes stripe breadth and groups; affinities choose a group",
        ),
        ("place directories", "only one metadata controller at a time serves a file system"),
        ("describe servers and targets", "cvadmin shows them on the metadata controllers, and only to administrators"),
        ("read counters of servers", "cvadmin and cvfsdb show them only on the metadata controllers"),
    )
