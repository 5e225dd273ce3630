#!/bin/sh
# Copied into the lab's directory, next to the files that it uses.
#   host.sh host NAME ADDRESS   run a host from power-on to power-off
#   host.sh boot NAME ADDRESS   run the first process of a host, inside it
#   host.sh enter NAME COMMAND  run a command on a host
#   host.sh power NAME off      cut the link and the power of a host
#   host.sh link NAME up|down   connect or cut the link of a host
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"
command=$1 name=$2

case $command in
host)
    become "$name"
    # Killing the outer process kills the whole host at once, like a power cut.
    exec nsenter --net="$here/net.$name" unshare --mount --uts --ipc --pid --fork --kill-child=KILL --propagation slave \
        "$here/host.sh" boot "$name" "$3"
    ;;
boot)
    export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C HOME=/root
    hostname "$name"
    mount -t proc proc /proc
    # Empty directories for this host, into which the paths of strakes and the lab are mounted. /mnt is free again afterwards.
    for own in /tmp:1777 /dev/shm:1777 /run:0755; do
        place=${own%:*}
        mount -t tmpfs -o "mode=${own#*:}" tmpfs /mnt
        while read -r kept; do
            case $kept in "$place"/*) ;; *) continue ;; esac
            mkdir -p "/mnt${kept#"$place"}"
            mount --rbind "$kept" "/mnt${kept#"$place"}"
        done <"$here/kept"
        mount --move /mnt "$place"
    done
    mkdir -p /run/sshd /run/munge
    for place in etc/hosts etc/ssh/ssh_config etc/slurm; do
        [ ! -e "$here/$place" ] || mount --bind "$here/$place" "/$place"
    done
    ip link set lo up
    ip address add "$3/24" dev eth0
    ip link set eth0 up
    # sshd goes to the background as soon as it listens.
    /usr/sbin/sshd -f "$here/sshd_config" -E "$here/log/sshd.$name" && touch "$here/$name.up"
    # The first process of a host must reap orphaned processes.
    while :; do sleep 1; done
    ;;
enter)
    shift 2
    enter_namespaces "$name" sh -c 'cd "$0" 2>/dev/null || cd /; exec "$@"' "$PWD" "$@"
    ;;
power)
    nsenter --net="$here/net.hub" ip link set "$name" down
    [ -n "$(init "$name")" ] && kill -KILL "$(outer "$name")"
    ;;
link) exec nsenter --net="$here/net.hub" ip link set "$name" "$3" ;;
esac
