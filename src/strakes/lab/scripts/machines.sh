#!/bin/sh
# Copied into the lab's directory as ha.sh, next to the files that it uses.
#   ha.sh node NAME            run a machine from power-on to power-off
#   ha.sh boot NAME            run the first process of a machine, inside it
#   ha.sh cluster              start Corosync and Pacemaker, inside
#   ha.sh enter NAME COMMAND   run a command on a machine
#   ha.sh link NUMBER up|down  connect or cut a heartbeat link
#   ha.sh journal NAME         print the machine's journal, read from its disk if it is off
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"
. "$here/user_mode.sh"
command=$1 name=${2:-}
alive() { [ -n "$(outer "$1")" ]; }
enter() { # NAME COMMAND...
    address=10.9.$(number_of "$1").1
    shift
    nsenter --net="$here/net.hub" /usr/bin/python3 "$here/node.py" call "$address" "$@"
}

case $command in
node)
    become "$name"
    power_on "$name"
    ;;
boot)
    export PATH="$here/bin:/usr/sbin:/usr/bin:/sbin:/bin" LC_ALL=C HOME=/root
    hostname "mds-$name"
    n=$(number_of "$name")
    mount -t proc proc /proc
    mount -t sysfs sys /sys
    mount -t tmpfs -o mode=0755 tmpfs /run
    mkdir -p /dev/shm /dev/pts /run/lock /run/resource-agents /run/pacemaker /run/drbd
    mount -t tmpfs tmpfs /dev/shm
    mount -t devpts devpts /dev/pts
    ln -sfn /proc/self/fd /dev/fd
    for link in "lo 127.0.0.1/8" "eth0 10.1.0.$n/24" "eth1 10.2.0.$n/24" "eth2 10.9.$n.1/24"; do
        ip address add "${link#* }" dev "${link%% *}"
        ip link set "${link%% *}" up
    done
    ip route add 10.9.0.0/24 via "10.9.$n.254"
    /usr/bin/python3 "$here/node.py" agent "10.9.$n.1" &
    # A machine that is already configured joins the cluster when it is switched on.
    [ -e /var/lib/drbd/made ] && mount /dev/vdc /srv/plain && "$here/ha.sh" cluster
    # The first process of a machine must reap orphaned processes.
    while :; do sleep 1; done
    ;;
cluster)
    corosync -f >/var/log/corosync.out 2>&1 &
    sleep 2
    # The detailed log writes every configuration change on every node, which is too slow on an emulated machine.
    PCMK_logfile=none setsid pacemakerd -f >/var/log/pacemakerd.out 2>&1 </dev/null &
    ;;
enter)
    shift
    enter "$@"
    ;;
link) exec nsenter --net="$here/net.hub" ip link set "ring$name" "$3" ;;
journal)
    if alive "$name"; then
        enter "$name" cat /srv/journal/journal
    else
        copy=$(mktemp -p "$here")
        cp --sparse=always "$here/$name.replicated" "$copy"
        # Replay the file system's own journal first, as a mount would.
        e2fsck -fy "$copy" >"$here/log/e2fsck.$name.out" 2>&1
        debugfs -R 'cat /journal' "$copy" 2>>"$here/log/e2fsck.$name.out"
        rm -f "$copy"
    fi
    ;;
power | ipmi) shift && "$command" "$@" ;;
esac
