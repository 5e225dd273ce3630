"""Beside the tools people already use: their results come in, ours go out, their command lines run here."""
