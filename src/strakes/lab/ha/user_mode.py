"""Nodes as User-mode Linux: a kernel with real DRBD as a process, whose programs run at this machine's own speed."""

from __future__ import annotations

from pathlib import Path

from strakes.errors import EnvironmentLacksError
from strakes.lab.ha.machines import COMMON_PACKAGES, Machines
from strakes.lab.ha.nodes import put_file
from strakes.lab.packages import Package

PACKAGES = (Package("user-mode-linux", "linux.uml"), Package("gcc", "cc"), *COMMON_PACKAGES)
_MODULES = ("overlay", "drbd", "hmac")
_KERNELS = Path("/usr/lib/uml/modules")


class UserMode(Machines):
    """As the emulated machines, but for the kernel: it needs a tenth of their processor time."""

    machine = "user_mode.sh"
    look_every_s = 2.0

    def make_kernel(self) -> None:
        """Take a kernel's DRBD modules, and compile a helper. Raises EnvironmentLacksError where none has them."""
        site = self.site
        site.step("modules of User-mode Linux")
        kernels = sorted(path.parents[4].name for path in _KERNELS.glob("*/kernel/drivers/block/drbd/drbd.ko"))
        if not kernels:
            raise EnvironmentLacksError(
                "there is no kernel for the machines", where=str(_KERNELS), why="none there has a DRBD module"
            )
        # modprobe looks below lib/modules of the directory that it is given.
        root = site.make_directory("uml", "lib")
        (root / "modules").symlink_to(_KERNELS)
        words = ("--dirname", root.parent, "--set-version", kernels[-1], "--all", "--show-depends", *_MODULES)
        listed = site.run("modprobe", *words)
        paths = dict.fromkeys(line.split()[1] for line in listed.splitlines() if line.startswith("insmod"))
        site.write("modules", "".join(f"{path}\n" for path in paths))
        put_file(site, "user_mode_init.sh", "init")
        source = put_file(site, "xstate.c", "xstate.c")
        site.run("cc", "-O2", "-shared", "-fPIC", "-o", site.directory / "xstate.so", source)
        for part in ("own", "node"):
            site.make_directory("machine", part)
