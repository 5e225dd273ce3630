#!/bin/sh
# First program of a lab machine under User-mode Linux: the host's files are read-only, and writes go to the machine's disk.
# The kernel passes "node=NAME" on as a variable.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
lab=$(dirname "$0")
place=$lab/machine
mount -t proc proc /proc
while read -r module; do insmod "$module"; done <"$lab/modules"
for disk in a b c; do ln -s "ubd$disk" "/dev/vd$disk"; done
mount -t ext4 -o noatime /dev/vda "$place/own" || exec sh
mkdir -p "$place/own/over" "$place/own/work"
mount -t overlay -o "lowerdir=/,upperdir=$place/own/over,workdir=$place/own/work" node "$place/node" || exec sh
for part in etc/corosync etc/drbd.d var/lib/corosync var/lib/pacemaker var/lib/drbd var/log; do
    mkdir -p "$place/node/$part"
    mount --bind "$place/own/$part" "$place/node/$part"
done
for file in etc/hosts etc/drbd.conf; do cp "$place/own/$file" "$place/node/$file"; done
mkdir -p "$place/node/srv/journal" "$place/node/srv/plain"
for number in 0 1 2; do ip link set "vec$number" name "eth$number"; done
mount -n --move /dev "$place/node/dev"
umount /proc
exec chroot "$place/node" /bin/sh "$lab/ha.sh" boot "$node"
