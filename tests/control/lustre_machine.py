"""A simulated Lustre client whose parameters can be set; refusals and adjustments come from recordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from strakes.targets.command import DEFAULT_TIMEOUT_S, Completed
from strakes.targets.lustre_tool import read_params
from targets.lustre.recorded import recording
from targets.lustre.replay import Replay

# (parameter, value) -> the recording of its refusal.
_REFUSED = {
    ("max_dirty_mb", "2000"): "client/set_param_dirty_2000.txt",
    ("max_read_ahead_mb", "10000000"): "client/err_set_param_ra.txt",
    ("max_pages_per_rpc", "4096"): "client/set_param_pages_4096.txt",
}
# (parameter, value) -> the recording of the adjusted value that was read back.
_READ_BACK = {("max_pages_per_rpc", "100000"): "client/set_param_pages_100000.txt"}


@dataclass
class Machine:
    """Runner of ``lctl`` commands; ``values`` has the parameters that differ from the recorded ones."""

    replay: Replay
    values: dict[str, str] = field(default_factory=dict)

    def __call__(self, argv: Sequence[str], timeout_s: float = DEFAULT_TIMEOUT_S) -> Completed:
        if list(argv[:2]) == ["lctl", "set_param"]:
            return self._set(*argv[2].split("=", 1))
        if list(argv[:2]) == ["lctl", "get_param"] and argv[2] in self.values:
            return Completed(tuple(argv), 0, f"{argv[2]}={self.values[argv[2]]}\n", "")
        return self.replay(argv, timeout_s)

    def made(self, parameter: str, value: str) -> str:
        if (parameter, value) not in _READ_BACK:
            return value
        # Line 5 is the first value read back; lines 1 to 4 are the output of set_param.
        return recording(_READ_BACK[parameter, value]).done.stdout.splitlines()[4].partition("=")[2]

    def _set(self, name: str, value: str) -> Completed:
        parameter = name.rpartition(".")[2]
        if refusal := _REFUSED.get((parameter, value)):
            return self.recorded(refusal, name)
        if parameter == "max_read_ahead_per_file_mb":  # lustre/llite/lproc_llite.c
            limit = name.replace("_per_file", "")
            if int(value) > int(read_params(self(["lctl", "get_param", limit])).values[limit]):
                return self.recorded("client/err_set_param_ra.txt", name)
        self.values[name] = self.made(parameter, value)
        if parameter == "max_rpcs_in_flight" and int(value) > 8:  # client_adjust_max_dirty() in Lustre's obd.h
            self.values[name.replace(parameter, "max_dirty_mb")] = "64"
        was = read_params(self.replay(["lctl", "get_param", name])).values[name]
        if self.values[name] == was:
            del self.values[name]
        return Completed(("lctl", "set_param", f"{name}={value}"), 0, f"{name}={value}\n", "")

    @staticmethod
    def recorded(name: str, parameter: str) -> Completed:
        done = recording(name).done
        return replace(done, argv=("lctl", "set_param", parameter), status=done.status or 34, stdout="")
