"""CephFS, by ceph-fuse or the kernel's client."""
