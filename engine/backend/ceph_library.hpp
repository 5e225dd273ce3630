// The functions of libcephfs, which is opened on first use.
#pragma once

#include <cephfs/libcephfs.h>

#include <string>

namespace strakes {

struct CephLibrary {
    CephLibrary();

    std::string trouble;  // why the library cannot be used; empty if it can
    decltype(&::ceph_close) close = nullptr;
    decltype(&::ceph_closedir) closedir = nullptr;
    decltype(&::ceph_conf_parse_env) conf_parse_env = nullptr;
    decltype(&::ceph_conf_read_file) conf_read_file = nullptr;
    decltype(&::ceph_conf_set) conf_set = nullptr;
    decltype(&::ceph_create) create = nullptr;
    decltype(&::ceph_fsync) fsync = nullptr;
    decltype(&::ceph_ll_lookup) ll_lookup = nullptr;
    decltype(&::ceph_ll_put) ll_put = nullptr;
    decltype(&::ceph_ll_rename) ll_rename = nullptr;
    decltype(&::ceph_ll_walk) ll_walk = nullptr;
    decltype(&::ceph_mkdir) mkdir = nullptr;
    decltype(&::ceph_mkdirat) mkdirat = nullptr;
    decltype(&::ceph_mount) mount = nullptr;
    decltype(&::ceph_mount_perms) mount_perms = nullptr;
    decltype(&::ceph_open) open = nullptr;
    decltype(&::ceph_openat) openat = nullptr;
    decltype(&::ceph_opendir) opendir = nullptr;
    decltype(&::ceph_read) read = nullptr;
    decltype(&::ceph_readdirplus_r) readdirplus_r = nullptr;
    decltype(&::ceph_release) release = nullptr;
    decltype(&::ceph_rmdir) rmdir = nullptr;
    decltype(&::ceph_statx) statx = nullptr;
    decltype(&::ceph_statxat) statxat = nullptr;
    decltype(&::ceph_unlink) unlink = nullptr;
    decltype(&::ceph_unlinkat) unlinkat = nullptr;
    decltype(&::ceph_unmount) unmount = nullptr;
    decltype(&::ceph_write) write = nullptr;
};

inline const CephLibrary& cephfs() {
    static const CephLibrary kLibrary;
    return kLibrary;
}

}  // namespace strakes
