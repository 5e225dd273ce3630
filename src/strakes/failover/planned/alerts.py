"""Alert programs of Pacemaker: by mail, and to a webhook whose address is a secret."""

from __future__ import annotations

from strakes.failover.cluster import Cluster
from strakes.failover.planned.pacemaker import ALERTS
from strakes.failover.planned.planned_file import PlannedFile

_HEAD = """\
#!/bin/sh
# Pacemaker calls this with what happened in CRM_alert_*; $CRM_alert_recipient is from the configuration.
case $CRM_alert_kind in
    node) text="node $CRM_alert_node is now $CRM_alert_desc" ;;
    fencing) text="fencing: $CRM_alert_desc" ;;
    resource)
        # Every successful monitoring would be a message, and a copy of DRBD that hears what happens to the other.
        case $CRM_alert_rc/$CRM_alert_task in 0/monitor | 0/notify) exit 0 ;; esac
        text="$CRM_alert_task of $CRM_alert_rsc on $CRM_alert_node: $CRM_alert_desc" ;;
    *) exit 0 ;;
esac
"""
_MAIL = """\
printf '%s\\n' "$text" "at $CRM_alert_timestamp, version $CRM_alert_version" |
    mail -s "[$(uname -n)] $text" "$CRM_alert_recipient"
"""
_WEBHOOK = """\
# The recipient is a file with the address, readable by hacluster alone: who knows the address can post there.
escaped=$(printf '%s' "[$(uname -n)] $text" | tr '\\n' ' ' | sed 's/[\\\\"]/\\\\&/g')
printf 'url = "%s"\\n' "$(cat "$CRM_alert_recipient")" |
    curl --silent --show-error --max-time 20 --header 'Content-Type: application/json' \\
        --data "{\\"text\\": \\"$escaped\\"}" --config -
"""


def alert_files(cluster: Cluster) -> tuple[PlannedFile, ...]:
    """Return the alert programs that the cluster asks for."""
    wanted = {"mail": (cluster.alerts.mail_to, _MAIL), "webhook": (cluster.alerts.webhook_url_file, _WEBHOOK)}
    return tuple(
        PlannedFile(f"etc/strakes/alert-{name}", _HEAD + body, f"{ALERTS}/alert-{name}", 0o755)
        for name, (recipient, body) in wanted.items()
        if recipient
    )
