"""An object gateway (radosgw) in a CephFS lab: S3 on the same object stores, for one user."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
from email.utils import formatdate
from pathlib import Path

from strakes.base.errors import EnvironmentLacksError
from strakes.base.files import write_kept
from strakes.lab import network
from strakes.lab.packages import Package
from strakes.lab.site import LabSite

GATEWAY, BUCKET, REGION = "client.rgw.a", "lab", "us-east-1"
# Its name in the lab's directory: the keys are in no other file, and on no command line.
KEYS = "s3.env"
PACKAGES = (Package("radosgw", "radosgw"), Package("radosgw", "radosgw-admin"))
_LIMIT_S = 60


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
    _make_bucket(port, keys["access_key"], keys["secret_key"])
    exports = {
        "AWS_ENDPOINT_URL": f"http://{network.LOOPBACK}:{port}",
        "AWS_REGION": REGION,
        "AWS_ACCESS_KEY_ID": keys["access_key"],
        "AWS_SECRET_ACCESS_KEY": keys["secret_key"],
        "STRAKES_S3_BUCKET": BUCKET,
    }
    write_kept(site.directory / KEYS, "".join(f"export {name}='{value}'\n" for name, value in exports.items()))


def _make_bucket(port: int, key: str, secret: str) -> None:
    # The gateway also accepts signature version 2, which is one line.
    date = formatdate(usegmt=True)
    proof = hmac.new(secret.encode(), f"PUT\n\n\n{date}\n/{BUCKET}".encode(), hashlib.sha1).digest()
    headers = {"Date": date, "Authorization": f"AWS {key}:{base64.b64encode(proof).decode()}"}
    connection = http.client.HTTPConnection(network.LOOPBACK, port, timeout=_LIMIT_S)
    try:
        connection.request("PUT", f"/{BUCKET}", headers=headers)
        answer = connection.getresponse()
        why = answer.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        raise EnvironmentLacksError("the object gateway of the lab does not answer", why=str(error)) from error
    finally:
        connection.close()
    if answer.status not in (200, 409):
        raise EnvironmentLacksError(
            f"the object gateway of the lab did not make the bucket (status {answer.status})", why=why
        )
