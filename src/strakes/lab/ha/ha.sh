#!/bin/sh
# Copied into the directory of the lab, where everything that it uses is.
#   ha.sh node NAME            a node from power-on to power-off
#   ha.sh boot NAME            what its first process does, inside
#   ha.sh power NAME OP ...    the power button, pressed by the software BMC
#   ha.sh enter NAME COMMAND   run a command on a node
#   ha.sh ipmi NAME on|off|status  ask the BMC of a node, as a person would
#   ha.sh link NUMBER up|down  plug or pull the cable of a heartbeat
#   ha.sh serve                the service: a synced line with its node's name five times a second
set -u
here=$(cd "$(dirname "$0")" && pwd)
command=$1 name=${2:-}
init() { # the first process of the node, as seen from outside
    read -r outer <"$here/$1.pid" && cut -d' ' -f1 "/proc/$outer/task/$outer/children"
} 2>/dev/null
alive() { [ -n "$(init "$1")" ]; }

case $command in
node)
    echo $$ >"$here/$name.pid"
    # What kills the outer process kills the node: all at once, as a power cut does.
    exec nsenter --net="$here/net.$name" unshare --mount --uts --ipc --pid --fork --kill-child=KILL --propagation private \
        "$here/ha.sh" boot "$name"
    ;;
boot)
    export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C HOME=/root
    hostname "mds-$name"
    mount -t proc proc /proc
    mount -t tmpfs tmpfs /dev/shm
    mount -t tmpfs -o mode=0755 tmpfs /run
    mkdir -p /run/lock /run/resource-agents /run/pacemaker
    # Its own disks: they survive a power cut.
    for place in etc/corosync var/lib/corosync var/lib/pacemaker var/log; do mount --bind "$here/$name/$place" "/$place"; done
    mount --bind "$here/hosts" /etc/hosts
    corosync -f >/var/log/corosync.out 2>&1 &
    sleep 1
    PCMK_logfile=/var/log/pacemaker.log pacemakerd -f >/var/log/pacemakerd.out 2>&1 &
    # The first process has to fetch those that lost their parents.
    while :; do sleep 1; done
    ;;
power)
    shift 2
    echo "$(date +%s.%N) mds-$name $*" >>"$here/bmc.log"
    case "$*" in
    'get power'*) if alive "$name"; then echo power:1; else echo power:0; fi ;;
    'set power 0' | 'set reset 1')
        read -r outer <"$here/$name.pid" && alive "$name" && kill -KILL "$outer"
        tries=0
        while alive "$name" && [ $tries -lt 100 ]; do
            sleep 0.05
            tries=$((tries + 1))
        done
        ;;
    esac
    case "$*" in 'set power 1' | 'set reset 1') alive "$name" || setsid "$here/ha.sh" node "$name" </dev/null >>"$here/log/node.$name.out" 2>&1 & ;; esac
    exit 0
    ;;
enter)
    shift 2
    inner=$(init "$name")
    [ -n "$inner" ] || {
        echo "mds-$name is off" >&2
        exit 126
    }
    exec nsenter --target "$inner" --net --mount --uts --ipc --pid "$@"
    ;;
ipmi)
    [ "$name" = a ] && address=10.9.0.1 || address=10.9.0.2
    IPMI_PASSWORD=$("$here/bmc-password")
    export IPMI_PASSWORD
    exec nsenter --net="$here/net.hub" ipmitool -I lanplus -C 3 -H "$address" -U fence -E chassis power "$3"
    ;;
link) exec nsenter --net="$here/net.a" ip link set "ring$name" "$3" ;;
serve)
    while :; do
        echo "$(date +%s.%N) $(hostname)" >>"$here/mnt/journal" || exit 1
        sleep 0.2
    done
    ;;
esac
