#!/bin/busybox sh
# First program of a machine of the lab: its root is this machine's own, read-only, with what it writes on a disk of its own.
b=/bin/busybox
$b mkdir -p /proc /dev /machine /own /node
$b mount -t proc proc /proc
$b mount -t devtmpfs dev /dev
for module in /modules/*; do $b insmod "$module" 2>/dev/null; done
for word in $($b cat /proc/cmdline); do
    case $word in
    lab=*) lab=${word#lab=} ;;
    node=*) node=${word#node=} ;;
    esac
done
until [ -b /dev/vda ]; do $b usleep 50000; done
$b mount -t 9p -o ro,trans=virtio,version=9p2000.L,cache=loose,msize=262144 machine /machine || exec $b sh
$b mount -t ext4 -o noatime /dev/vda /own || exec $b sh
$b mkdir -p /own/over /own/work
$b mount -t overlay -o lowerdir=/machine,upperdir=/own/over,workdir=/own/work node /node || exec $b sh
for place in etc/corosync etc/drbd.d var/lib/corosync var/lib/pacemaker var/lib/drbd var/log; do
    $b mkdir -p "/node/$place"
    $b mount -o bind "/own/$place" "/node/$place"
done
for file in etc/hosts etc/drbd.conf; do $b cp "/own/$file" "/node/$file"; done
$b mkdir -p /node/srv/journal /node/srv/plain
$b mount -o move /dev /node/dev
$b umount /proc
exec $b switch_root /node /bin/sh "$lab/ha.sh" boot "$node"
