"""Texts to paste: layouts of Lustre and CephFS, MPI-IO hints, and settings of HDF5, PnetCDF, ADIOS2 and jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from strakes.base.foreign_text import for_terminal
from strakes.base.language import gettext
from strakes.base.units import format_bytes
from strakes.targets.description import Layout, LayoutComponent
from strakes.targets.lustre_layouts import STRIPE_UNIT_BYTES, nearest_stripe, setstripe
from strakes.tuning.advise_app import App, AppPhase
from strakes.tuning.advise_choose import Chosen, SizeClass

_CEPH_OBJECT_BYTES = 1 << 22  # Default size of a CephFS object. An object contains whole stripe units.


@dataclass(frozen=True)
class Paste:
    """A text for users to paste. ``where``: the file or shell to paste it into."""

    title: str
    where: str
    text: str


def pastes(app: App, chosen: Chosen, file_system: str) -> tuple[Paste, ...]:
    """Return the texts for those chosen settings that apply to the application and the file system."""
    snippets: list[Paste] = []
    for phase in app.phases:
        if phase.operation == "write" or phase.files == "same":
            count, size = (chosen.value(phase, what) for what in ("stripe count", "stripe size"))
            layout = _LAYOUTS.get(file_system)
            if layout is not None and (count or size):
                where = f"a shell, before the files of {phase.name} are made in DIR"
                text = layout(int(count) if count else None, int(size) if size else None)
                snippets.append(Paste(f"layout for {phase.name}", where, text))
    if file_system == "lustre" and len(chosen.classes) > 1:
        snippets += class_layouts(chosen.classes, file_system)
    return (*snippets, *(paste for phase in app.phases for paste in _library(app, phase, chosen)), _job(app, chosen))


def class_layouts(classes: tuple[SizeClass, ...], file_system: str) -> tuple[Paste, ...]:
    """Return layouts for the measured file sizes: a progressive layout on Lustre, else a layout for each size."""
    if file_system == "lustre" and len(classes) > 1:
        where = "a shell, once, for a directory of files of all sizes"
        return (Paste(gettext("a layout with more stripes for larger files"), where, progressive(classes)),)
    if (layout := _LAYOUTS.get(file_system)) is None:
        return ()
    where, sizes = "a shell, before the files are made in DIR", [format_bytes(one.file_bytes) for one in classes]
    return tuple(
        Paste(gettext("files of about {size}", size=size), where, layout(one.stripe_count, None))
        for size, one in zip(sizes, classes, strict=True)
    )


def lustre_layout(count: int | None, size: int | None) -> str:
    """Return the lfs command that sets the stripe count, the stripe size, or both.

    >>> lustre_layout(4, 1048576)
    'lfs setstripe -c 4 -S 1M DIR'
    """
    return _setstripe(Layout(stripe_size_bytes=nearest_stripe(size) if size else None, stripe_count=count))


def progressive(classes: tuple[SizeClass, ...]) -> str:
    """Return the lfs command that sets a progressive file layout.

    >>> progressive((SizeClass(1 << 20, 1, ()), SizeClass(1 << 27, 4, ()), SizeClass(1 << 30, 16, ())))
    'lfs setstripe -E 1M -c 1 -E 128M -c 4 -E -1 -c 16 DIR'
    """
    last = [size_class for size_class, after in pairwise(classes) if after.stripe_count != size_class.stripe_count]
    # The stripe size must divide the end of its component. Otherwise, Lustre replaces the stripe size.
    ends = [size_class.file_bytes // STRIPE_UNIT_BYTES * STRIPE_UNIT_BYTES for size_class in last]
    counts = [size_class.stripe_count for size_class in (*last, classes[-1])]
    parts = (
        LayoutComponent(begin, end, Layout(stripe_count=count))
        for begin, end, count in zip([0, *ends], [*ends, None], counts, strict=True)
    )
    return _setstripe(Layout(components=tuple(parts)))


def _setstripe(layout: Layout) -> str:
    return " ".join(setstripe("DIR", layout).argv)


def ceph_layout(count: int | None, size: int | None) -> str:
    """Return the setfattr command that sets the stripe count, the stripe size, or both.

    >>> ceph_layout(3, None)
    'setfattr -n ceph.dir.layout.stripe_count -v 3 DIR'
    """
    if not size:
        return f"setfattr -n ceph.dir.layout.stripe_count -v {count} DIR"
    unit = nearest_stripe(size)
    # Set all values in one call, because CephFS rejects a stripe unit that does not divide the object size.
    objects = max(_CEPH_OBJECT_BYTES, unit)
    striped = f" stripe_count={count}" if count else ""
    return f'setfattr -n ceph.dir.layout -v "stripe_unit={unit} object_size={objects - objects % unit}{striped}" DIR'


_LAYOUTS = {"lustre": lustre_layout} | dict.fromkeys(("ceph", "fuse.ceph", "fuse.ceph-fuse"), ceph_layout)


def _cray_hints(hints: Mapping[str, str]) -> str:
    """Return the shell command that passes hints to Cray's MPI.

    >>> _cray_hints({"striping_factor": "4", "cb_nodes": "8"})
    'export MPICH_MPIIO_HINTS="*:striping_factor=4:cb_nodes=8"'
    """
    # A colon separates hints, so omit hints that contain a colon, such as lists of nodes.
    pairs = (f"{name}={value}" for name, value in hints.items() if ":" not in value)
    return f'export MPICH_MPIIO_HINTS="*:{":".join(pairs)}"'


def _hints(app: App, phase: AppPhase, chosen: Chosen) -> dict[str, str]:
    count, size = chosen.value(phase, "stripe count"), chosen.value(phase, "stripe size")
    writers = _writers_per_node(app, phase, chosen)
    transfer = chosen.value(phase, "transfer size")
    hints: dict[str, str] = {}
    if count:
        hints["striping_factor"] = str(count)
    if size:
        hints["striping_unit"] = str(size)
    if phase.collective:
        hints[f"romio_cb_{phase.operation}"] = "enable"
        if writers:
            hints["cb_nodes"] = str(writers * app.nodes)
            hints["cb_config_list"] = f"*:{writers}"
        if transfer and int(transfer) < phase.data_bytes:
            hints["cb_buffer_size"] = str(max(int(transfer), int(size or 0)))
    return hints


def _writers_per_node(app: App, phase: AppPhase, chosen: Chosen) -> int | None:
    value = chosen.value(phase, "processes per node")
    return None if value is None else min(int(value), app.ranks_per_node)


def _library(app: App, phase: AppPhase, chosen: Chosen) -> list[Paste]:
    if app.interface == "adios2":
        writers = _writers_per_node(app, phase, chosen)
        if writers is None or phase.operation == "read":
            return []
        text = f'<parameter key="NumAggregators" value="{writers * app.nodes}"/>'
        return [Paste(f"ADIOS2 for {phase.name}", "the engine (BP5 or BP4) in adios2.xml", text)]
    if app.interface == "posix" or phase.files != "shared":
        return []
    hints = _hints(app, phase, chosen)
    if not hints:
        return []
    title, lines = f"MPI-IO hints for {phase.name}", "".join(f"{name} {value}\n" for name, value in hints.items())
    snippets = [
        Paste(f"{title}, ROMIO", "a file; then export ROMIO_HINTS=FILE", lines),
        Paste(f"{title}, Cray", "the job script", _cray_hints(hints)),
    ]
    size = chosen.value(phase, "stripe size")
    if app.interface == "hdf5":
        calls = [f"H5Pset_alignment(fapl, {size}, {size});"] if size else []
        if phase.collective:
            calls += [
                "H5Pset_dxpl_mpio(dxpl, H5FD_MPIO_COLLECTIVE);",
                "H5Pset_coll_metadata_write(fapl, true);",
                "H5Pset_all_coll_metadata_ops(fapl, true);",
            ]
        if calls:
            snippets.append(Paste(f"HDF5 for {phase.name}", "where the file is opened, and written", "\n".join(calls)))
    if app.interface == "pnetcdf" and size:
        text = f'export PNETCDF_HINTS="nc_var_align_size={size};nc_header_align_size={size}"'
        snippets.append(Paste(f"PnetCDF for {phase.name}", "the job script", text))
    return snippets


def _job(app: App, chosen: Chosen) -> Paste:
    lines = [
        f"#SBATCH --nodes={app.nodes}",
        f"#SBATCH --ntasks={app.ranks}",
        f"#SBATCH --ntasks-per-node={app.ranks_per_node}",
        "#SBATCH --distribution=block:block",
    ]
    for phase in app.phases:
        writers = _writers_per_node(app, phase, chosen)
        if phase.operation == "write" and writers and app.grouping > 1:
            group = min(app.grouping, -(-app.ranks_per_node // writers))
            writing = -(-app.ranks_per_node // group)
            name = for_terminal(phase.name)  # Escape line breaks, which would end the comment.
            lines.append(f"# {name}: merge groups of {group} ranks, so that {writing} of a node write")
    return Paste("job", "the head of the job script: ranks that are merged stay on one node", "\n".join(lines))
