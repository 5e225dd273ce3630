#!/bin/sh
# Sourced by machines.sh: a machine is User-mode Linux, a kernel as a process.
power_on() { # NAME
    n=$(number_of "$1")
    # The lab machine sees this machine's files through the mounts at its start, all read-only except the lab's directory.
    # In a separate process namespace, killing the outer process kills all processes of the lab machine, like a power cut.
    exec nsenter --net="$here/net.hub" unshare --mount --propagation slave --pid --fork --kill-child=KILL sh -c '
        here=$1
        mount --bind "$here" "$here" && mount -o remount,bind,ro / || exit 1
        export TMPDIR=/dev/shm LD_PRELOAD="$here/xstate.so"
        shift
        exec linux.uml "$@"
    ' linux.uml "$here" mem=512M root=/dev/root rootfstype=hostfs rootflags=/ ro "init=$here/init" "node=$1" \
        "uml_dir=$here" "umid=mds-$1.uml" con0=null,fd:1 con=null quiet panic=1 random.trust_cpu=on \
        "vec0:transport=tap,ifname=ring0-$1,gro=1,mac=52:54:00:00:00:0$n" "vec1:transport=tap,ifname=ring1-$1,gro=1,mac=52:54:00:01:00:0$n" \
        "vec2:transport=tap,ifname=to-$1,gro=1,mac=52:54:00:02:00:0$n" \
        "ubda=$here/$1.own" "ubdb=$here/$1.replicated" "ubdc=$here/$1.plain"
}
