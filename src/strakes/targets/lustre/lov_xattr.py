"""The attribute ``lustre.lov``: a file's layout without ``lfs``, for clients that have the kernel module only.

Format: struct lov_user_md_v1, lov_user_md_v3 and lov_comp_md_v1 of Lustre's user API (lustre_user.h), little-endian as
clients on x86 and ARM write them.
"""

from __future__ import annotations

import re
import struct

from strakes.targets.command import Command, Completed
from strakes.targets.description import Layout, LayoutComponent
from strakes.targets.lustre.output import checked, not_understood

_TOOL = "getfattr -n lustre.lov"
_VALUE = re.compile(r"^lustre\.lov=0x((?:[0-9a-f]{2})+)$", re.MULTILINE)

_V1 = 0x0BD10BD0
_V3 = 0x0BD30BD0
_SPECIFIC = 0x0BD50BD0
_COMPOSITE = 0x0BD60BD0
_PATTERNS = {0x001: "raid0", 0x100: "mdt", 0x201: "overstriped"}
_PATTERN_FLAGS = 0xFFFF0000
_RELEASED = 0x80000000

_PLAIN = struct.Struct(
    "<IIQQIHH"
)  # magic, pattern, object, sequence, stripe size, stripe count, first target or generation
_STRIPE = struct.Struct("<QQII")  # object (two words), generation, target
_COMPOSITE_HEAD = struct.Struct("<IIIHHH14x")  # magic, size, generation, flags, entries, mirrors - 1
_COMPONENT = struct.Struct("<IIQQII16x")  # identifier, flags, begin, end, place of its layout, size of it
_POOL_BYTES = 16
_NONE = 0xFFFF
# Counts from here on are negative ones: every target, or several stripes on every target.
_LEAST_NEGATIVE = 0xFFE0
_END = 0xFFFFFFFFFFFFFFFF
_INSTANTIATED = 0x10


def lov_attribute(path: str) -> Command[Layout | None]:
    """Return the layout of a file or directory; None for a directory without one of its own."""
    return Command(("getfattr", "-n", "lustre.lov", "-e", "hex", path), read_lov)


def read_lov(done: Completed) -> Layout | None:
    """Read the attribute as a layout."""
    if done.status == 1 and done.stderr.rstrip().endswith("No such attribute"):
        return None
    match = _VALUE.search(checked(done, "the layout cannot be read"))
    if match is None:
        raise not_understood(_TOOL, done.stdout)
    return decode(bytes.fromhex(match[1]))


def decode(value: bytes) -> Layout:
    """Read it. Raises NotUnderstoodError."""
    try:
        (magic,) = struct.unpack_from("<I", value)
        return _composite(value) if magic == _COMPOSITE else _plain(value, is_file=_sequence(value) != 0)
    except (struct.error, UnicodeDecodeError):
        raise not_understood(_TOOL, value.hex()) from None


def _sequence(value: bytes) -> int:
    # Only the layout of a file names its object on the metadata target.
    return int(_PLAIN.unpack_from(value)[3])


def _composite(value: bytes) -> Layout:
    _, size, _, _, entries, _ = _COMPOSITE_HEAD.unpack_from(value)
    if size != len(value):
        raise not_understood(_TOOL, value.hex())
    components = []
    for entry in range(entries):
        identifier, flags, begin, end, place, length = _COMPONENT.unpack_from(
            value, _COMPOSITE_HEAD.size + entry * _COMPONENT.size
        )
        layout = _plain(value[place : place + length], is_file=bool(flags & _INSTANTIATED))
        components.append(
            LayoutComponent(begin, None if end == _END else end, layout, mirror=(identifier >> 16) & 0x7FFF)
        )
    targets = tuple(target for component in components for target in component.layout.targets)
    return Layout(components=tuple(components), targets=targets)


def _plain(value: bytes, *, is_file: bool) -> Layout:
    magic, pattern, _, _, size, count, first = _PLAIN.unpack_from(value)
    place, pool = _PLAIN.size, ""
    if magic in (_V3, _SPECIFIC):
        pool = struct.unpack_from(f"{_POOL_BYTES}s", value, place)[0].split(b"\0")[0].decode()
        place += _POOL_BYTES
    elif magic != _V1:
        raise not_understood(_TOOL, value.hex())
    name = _PATTERNS.get(pattern & ~_PATTERN_FLAGS, f"{pattern:#x}")
    targets: tuple[int, ...] = ()
    if name == "mdt":
        first = _NONE  # which one is not told here
    elif is_file and not pattern & _RELEASED:
        targets = tuple(_STRIPE.unpack_from(value, place + stripe * _STRIPE.size)[3] for stripe in range(count))
        first = targets[0] if targets else _NONE
    if count >= _LEAST_NEGATIVE:
        count -= 1 << 16
    # In a directory's layout 0 leaves the value to the file system.
    unset = count == 0 and name != "mdt"
    return Layout(
        size or None, None if unset else count, None if first == _NONE else first, pool, name, targets=targets
    )
