#!/bin/sh
# Sourced by machines.sh: a machine is a process of QEMU.
running=qemu-system
power_on() { # NAME
    n=$(number_of "$1")
    exec nsenter --net="$here/net.hub" qemu-system-x86_64 -name "mds-$1" -accel tcg,tb-size=96 -M pc -cpu Nehalem -smp 1 -m 512 -nodefaults \
        -display none -kernel "$here/kernel" -initrd "$here/initrd" -serial "file:$here/log/mds-$1.console" -device virtio-rng-pci \
        -append "console=ttyS0 quiet mitigations=off nokaslr tsc=unstable random.trust_cpu=on panic=1 lab=$here node=$1" \
        -netdev "tap,id=ring0,ifname=ring0-$1,script=no,downscript=no" -device "virtio-net-pci,netdev=ring0,romfile=,mac=52:54:00:00:00:0$n" \
        -netdev "tap,id=ring1,ifname=ring1-$1,script=no,downscript=no" -device "virtio-net-pci,netdev=ring1,romfile=,mac=52:54:00:01:00:0$n" \
        -netdev "tap,id=to,ifname=to-$1,script=no,downscript=no" -device "virtio-net-pci,netdev=to,romfile=,mac=52:54:00:02:00:0$n" \
        -drive "file=$here/$1.own,format=raw,if=virtio,cache=unsafe" \
        -drive "file=$here/$1.replicated,format=raw,if=virtio,cache=unsafe" \
        -drive "file=$here/$1.plain,format=raw,if=virtio,cache=unsafe" \
        -virtfs local,path=/,mount_tag=machine,security_model=none,readonly=on,multidevs=remap
}
