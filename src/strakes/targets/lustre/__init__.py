"""Lustre: functions for ``lfs`` and ``lctl``, and the target built on them."""
