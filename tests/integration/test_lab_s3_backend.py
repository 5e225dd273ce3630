"""The backend s3 on a real object gateway that shares its object stores with a CephFS."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from conftest import ROOT, StrakesRunner, wait_for
from integration.conftest import items_of
from lab.running import Labs, need
from strakes.model.phases import TransferPhase
from strakes.model.plan import Plan
from strakes.runs.engine import LocalEngine, find_engine
from strakes.targets.clean import clean
from strakes.targets.marker import Marker
from strakes.targets.removal import NOTE

pytestmark = [pytest.mark.lab, pytest.mark.more]

MIB = 1 << 20
RUN = "20260101-000000-test"


def ask(method: str, path: str) -> str:
    variables = os.environ
    nothing = hashlib.sha256(b"").hexdigest()
    words = ["curl", "-sS", "--fail", "-X", method, "--path-as-is", "-H", f"x-amz-content-sha256: {nothing}"]
    words += ["--aws-sigv4", f"aws:amz:{variables['AWS_REGION']}:s3"]
    words += ["--user", f"{variables['AWS_ACCESS_KEY_ID']}:{variables['AWS_SECRET_ACCESS_KEY']}"]
    words.append(f"{variables['AWS_ENDPOINT_URL']}/{variables['STRAKES_S3_BUCKET']}{path}")
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def lab(shared_labs: Labs) -> tuple[Path, dict[str, str]]:
    """Start a lab with a gateway, and return its mount and the environment variables with its keys."""
    need("ceph", "radosgw")
    mount = shared_labs.up("ceph --s3 --osds 1 --mds 1 --standby 0 --store memstore --osd-size 2GiB")
    keys = Path(shared_labs.status("ceph")["facts"]["s3_environment"])
    assert keys.stat().st_mode & 0o777 == 0o600
    return mount, dict(re.findall(r"export (\w+)='(.*)'", keys.read_text()))


@pytest.fixture
def mount(lab: tuple[Path, dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Put the keys into the environment and yield the mount; check afterwards that the bucket is empty."""
    mount, variables = lab
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with LocalEngine() as engine:
        if why := engine.start().absent.get("s3"):
            pytest.skip(why["why"])
    yield mount
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert keys_in_bucket() == [] and uploads_in_bucket() == []


def workspace_in(place: Path) -> Path:
    directory = place / f"strakes-{RUN}"
    directory.mkdir()
    (directory / ".strakes-marker").write_bytes(Marker.of_this_process(RUN).to_bytes())
    return directory


def keys_in_bucket() -> list[str]:
    return re.findall("<Key>(.*?)</Key>", ask("GET", "?list-type=2"))


def uploads_in_bucket() -> list[str]:
    return re.findall("<UploadId>(.*?)</UploadId>", ask("GET", "?uploads="))


def data(name: str, operation: str, transfer: int = 5 * MIB, transfers: int = 3, **more: object) -> TransferPhase:
    more = {"backend": "s3"} | more
    return TransferPhase(
        name,
        operation,  # type: ignore[arg-type]
        "file-per-process",
        "segmented",
        transfer,
        transfer,
        transfers,
        **more,  # type: ignore[arg-type]
    )


def test_objects_and_files_return_the_written_data_and_are_removed(place: Path) -> None:
    phases = (
        data("parts", "write"),
        data("whole-parts", "read", verify=True, rank_shift=1),
        data("ranges", "read", 64 << 10, 240, verify=True),
        data("one", "write", 4096, 1, files="one"),
        data("read-one", "read", 4096, 1, files="one", verify=True),
        data("file", "write", backend="posix", files="file"),
        data("read-file", "read", backend="posix", files="file", verify=True),
        items_of("s3", "file-create"),
        items_of("s3", "file-stat", share="all"),
        items_of("s3", "file-read", rank_shift=1),
        items_of("s3", "file-remove"),
    )
    with LocalEngine() as engine:
        result = engine.run(Plan(ranks=3, phases=phases, seed=7), place, "p", limit_s=120)
    assert result.ended == "ok", result.errors
    assert result.cleaned
    samples = {sample.name: sample for sample in result.samples}
    assert samples["whole-parts"].effective["verified_bytes"] == 3 * 15 * MIB
    assert samples["ranges"].effective["verified_bytes"] == 3 * 240 * (64 << 10)
    assert all(samples[f"file-{name}"].operations == 120 for name in ("create", "read", "remove"))


def test_foreign_objects_below_the_prefix_refuse_the_plan_before_any_change(place: Path) -> None:
    plan = Plan(ranks=1, phases=(data("w", "write"),))
    with LocalEngine() as engine:
        assert engine.run(plan, place, "p", limit_s=60, keep=True).ended == "ok"
        before = keys_in_bucket()
        again = engine.run(plan, place, "p", limit_s=60, prepared=True)
    assert again.ended == "refused" and again.errors[0].where["key"] == "id"
    assert keys_in_bucket() == before
    for key in before:
        ask("DELETE", f"/{quote(key)}")
    (place / f"{NOTE}p").unlink()
    (place / "p").rmdir()


@pytest.mark.parametrize(
    ("variable", "value", "ended", "why"),
    [
        ("AWS_SECRET_ACCESS_KEY", "entirelywrong", "failed", "status 403, SignatureDoesNotMatch"),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:1", "failed", "libcurl says: "),
        ("AWS_SECRET_ACCESS_KEY", "", "refused", "AWS_SECRET_ACCESS_KEY"),
    ],
)
def test_wrong_keys_or_addresses_of_an_object_store_end_the_plan_with_the_reason(
    place: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, ended: str, why: str
) -> None:
    monkeypatch.setenv(variable, value)
    if not value:
        monkeypatch.delenv(variable)
    with LocalEngine() as engine:
        result = engine.run(Plan(ranks=1, phases=(data("w", "write"),)), place, "p", limit_s=60)
        reasons = [result.errors[0].why, str(engine.start().absent.get("s3"))]
    assert result.ended == ended and why in " ".join(reasons)
    assert "entirelywrong" not in repr(result)


def test_clean_removes_objects_and_unfinished_uploads_of_a_killed_engine(place: Path) -> None:
    directory = workspace_in(place)
    plan = Plan(ranks=2, phases=(data("w", "write", transfers=100),))
    request = {
        "type": "plan",
        "version": 1,
        "id": "p",
        "directory": str(directory),
        "plan": plan.to_json(),
        "limit_s": 120,
        "impact": {"operations_per_s": 4},
    }
    with subprocess.Popen([find_engine()], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as engine:
        assert engine.stdin is not None
        engine.stdin.write(json.dumps(request).encode() + b"\n")
        engine.stdin.flush()
        wait_for(lambda: len(uploads_in_bucket()) >= 2)
        engine.kill()
    assert keys_in_bucket() == [f"{directory.name}/p/.strakes-marker"]
    assert clean(place, force=True).left == () and not directory.exists()


def test_files_and_objects_are_measured_in_one_run(mount: Path, strakes: StrakesRunner, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    example = ROOT / "examples" / "ceph" / "files-and-objects.toml"
    done = strakes("run", example, mount, "--budget", "20s", "--json", out)
    assert done.returncode == 0, done.stderr
    cells = [cell["id"].partition(":")[2] for cell in json.loads(out.read_text())["cells"]]
    assert cells[:4] == ["files-write", "objects-write", "files-read", "objects-read"] and not list(mount.iterdir())
    secret = os.environ["AWS_SECRET_ACCESS_KEY"]
    assert secret not in out.read_text() and secret not in done.stdout + done.stderr
