#!/bin/sh
# Copied into the directory of the lab as ha.sh, where everything that it uses is.
#   ha.sh node NAME            a machine from power-on to power-off
#   ha.sh boot NAME            what its first process does, inside
#   ha.sh cluster              start Corosync and Pacemaker, inside
#   ha.sh enter NAME COMMAND   run a command on a machine
#   ha.sh link NUMBER up|down  switch of a heartbeat on or off
#   ha.sh journal NAME         the journal as that machine has it: of one that is off, what is on its disk
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"
. "$here/user_mode.sh"
command=$1 name=${2:-}
alive() { # a zombie has no command line any more
    read -r outer <"$here/$1.pid" && grep -q "$running" "/proc/$outer/cmdline"
} 2>/dev/null
enter() { # NAME COMMAND...
    address=10.9.$(number_of "$1").1
    shift
    nsenter --net="$here/net.hub" /usr/bin/python3 "$here/agent.py" call "$address" "$@"
}

case $command in
node)
    echo $$ >"$here/$name.pid"
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
    /usr/bin/python3 "$here/agent.py" serve "10.9.$n.1" &
    # One that has been set up takes part when it is switched on.
    [ -e /var/lib/drbd/made ] && mount /dev/vdc /srv/plain && "$here/ha.sh" cluster
    # The first process has to fetch those that lost their parents.
    while :; do sleep 1; done
    ;;
cluster)
    corosync -f >/var/log/corosync.out 2>&1 &
    sleep 2
    # Its detailed log writes out every change of the configuration, on every node: too dear where everything is emulated.
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
        # What the file system's own journal has is played back first, as a mount would do it.
        e2fsck -fy "$copy" >"$here/log/e2fsck.$name.out" 2>&1
        debugfs -R 'cat /journal' "$copy" 2>>"$here/log/e2fsck.$name.out"
        rm -f "$copy"
    fi
    ;;
power | ipmi) shift && "$command" "$@" ;;
esac
