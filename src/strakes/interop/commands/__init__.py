"""Command lines of other tools, translated into plans of ours."""

from __future__ import annotations

from importlib import import_module

from strakes.interop.commands.words import Tool


def tool_of(name: str) -> Tool:
    """Return the tool of a module here: ior, mdtest, dlio or io500. Others are not imported, since YAML is slow."""
    tool = import_module(f"strakes.interop.commands.{name}").TOOL
    assert isinstance(tool, Tool)
    return tool
