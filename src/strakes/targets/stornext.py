"""Quantum StorNext: detected, with what its configuration decides."""

from __future__ import annotations

from strakes.targets.remote import RemoteTarget


class StorNextTarget(RemoteTarget):
    """Stripe breadth and stripe groups are in the configuration of the file system on its metadata controllers."""

    file_systems = ("cvfs", "snfs")
    cannot = (
        (
            "set the layout of files",
            "stripe breadth and groups are in the file system's configuration; affinities choose a group",
        ),
        ("place directories", "one metadata controller at a time serves a file system"),
        ("describe servers and targets", "cvadmin tells them on the metadata controllers, to administrators only"),
        ("read counters of servers", "cvadmin and cvfsdb tell them on the metadata controllers only"),
    )
