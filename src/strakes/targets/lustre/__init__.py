"""Lustre: ``lfs`` and ``lctl`` as small functions, one file a subject, and the target built on them."""
