"""Translate command lines of other tools into plans."""
