#!/bin/sh
# Copied into the lab's directory as ha.sh, next to the files that it uses.
#   ha.sh node NAME            run a node from power-on to power-off
#   ha.sh boot NAME            run the first process of a node, inside it
#   ha.sh enter NAME COMMAND   run a command on a node
#   ha.sh link NUMBER up|down  connect or cut a heartbeat link
#   ha.sh journal NAME         print a node's journal; here all nodes write to the same journal
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"
command=$1 name=${2:-}
alive() { [ -n "$(init "$1")" ]; }

case $command in
node)
    become "$name"
    # Killing the outer process kills the whole node at once, like a power cut.
    # An unmount outside also unmounts inside ("slave"), so the lab never keeps a foreign disk busy.
    exec nsenter --net="$here/net.$name" unshare --mount --uts --ipc --pid --fork --kill-child=KILL --propagation slave \
        "$here/ha.sh" boot "$name"
    ;;
boot)
    export PATH="$here/bin:/usr/sbin:/usr/bin:/sbin:/bin" LC_ALL=C HOME=/root
    hostname "mds-$name"
    mount -t proc proc /proc
    mount -t tmpfs tmpfs /dev/shm
    mount -t tmpfs -o mode=0755 tmpfs /run
    mkdir -p /run/lock /run/resource-agents /run/pacemaker
    # Files and devices that a test substitutes for those on a fresh machine.
    if [ -e "$here/$name/at-boot" ]; then . "$here/$name/at-boot"; fi
    # The node's own disks survive a power cut.
    for place in etc/corosync var/lib/corosync var/lib/pacemaker var/log; do mount --bind "$here/$name/$place" "/$place"; done
    mount --bind "$here/hosts" /etc/hosts
    corosync -f >/var/log/corosync.out 2>&1 &
    sleep 1
    PCMK_logfile=/var/log/pacemaker.log pacemakerd -f >/var/log/pacemakerd.out 2>&1 &
    # The first process of a node must reap orphaned processes.
    while :; do sleep 1; done
    ;;
enter)
    shift 2
    enter_namespaces "$name" "$@"
    ;;
link) exec nsenter --net="$here/net.a" ip link set "ring$name" "$3" ;;
journal) exec cat "$here/mnt/journal" ;;
power | ipmi) shift && "$command" "$@" ;;
esac
