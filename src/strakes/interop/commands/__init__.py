"""Translate command lines of other tools into plans."""

from __future__ import annotations

from importlib import import_module

from strakes.interop.commands.options import Tool


def tool_of(name: str) -> Tool:
    """Return ior, mdtest, dlio or io500. Only the module of that tool is imported, because YAML imports slowly."""
    tool = import_module(f"strakes.interop.commands.{name}").TOOL
    assert isinstance(tool, Tool)
    return tool
