"""An object gateway (radosgw) in a CephFS lab: S3 on the same object stores, for one user."""

from __future__ import annotations

import json
from pathlib import Path

from strakes.base.files import write_kept
from strakes.lab import network
from strakes.lab.packages import Package
from strakes.lab.site import LabSite

GATEWAY, BUCKET, REGION = "client.rgw.a", "lab", "us-east-1"
# Its name in the lab's directory: the keys are in no other file, and on no command line.
KEYS = "s3.env"
PACKAGES = (Package("radosgw", "radosgw"), Package("radosgw", "radosgw-admin"), Package("curl", "curl"))
# The hash is that of an empty body; curl 7.88 does not add the header.
_SIGNED = f"""aws-sigv4 = "aws:amz:{REGION}:s3"
header = "x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
"""


def section(directory: Path, port: int) -> dict[str, object]:
    """Return what its section of the configuration holds."""
    return {
        # It insists on encryption towards the monitors, which needs keys.
        "ms_mon_client_mode": "crc",
        "rgw_data": f"{directory}/rgw",
        "rgw_frontends": f"beast endpoint={network.LOOPBACK}:{port}",
        "rgw_thread_pool_size": 32,
        "rgw_run_sync_thread": "false",
        "rgw_dynamic_resharding": "false",
        "rgw_enable_ops_log": "false",
        # By default deleted objects take space for two hours.
        "rgw_gc_obj_min_wait": 5,
        "rgw_gc_processor_period": 5,
        "rgw_gc_processor_max_time": 5,
    }


def start_gateway(site: LabSite, config: Path, port: int) -> None:
    """Start it, make its user and a bucket, and leave the keys in a file for this user alone."""
    site.step("object gateway")
    site.make_directory("rgw")
    words = ("-c", config, "-n", GATEWAY)
    made = site.run("radosgw-admin", *words, "user", "create", "--uid=strakes", "--display-name=strakes", limit_s=120)
    keys = json.loads(made)["keys"][0]
    site.start("rgw.a", "radosgw", *words, "-f")
    site.wait_until("the object gateway", lambda: "" if network.is_listening(port) else "it does not listen yet")
    # The keys are in a file for this user alone, and on no command line.
    user = f'user = "{keys["access_key"]}:{keys["secret_key"]}"'
    lines = (f'url = "http://{network.LOOPBACK}:{port}/{BUCKET}"', 'request = "PUT"', user, _SIGNED, "fail", "silent")
    request = site.directory / "bucket.curl"
    write_kept(request, "\n".join((*lines, "show-error", "")))
    site.run("curl", "--config", request)
    exports = {
        "AWS_ENDPOINT_URL": f"http://{network.LOOPBACK}:{port}",
        "AWS_REGION": REGION,
        "AWS_ACCESS_KEY_ID": keys["access_key"],
        "AWS_SECRET_ACCESS_KEY": keys["secret_key"],
        "STRAKES_S3_BUCKET": BUCKET,
    }
    write_kept(site.directory / KEYS, "".join(f"export {name}='{value}'\n" for name, value in exports.items()))
