// Opens libcephfs and looks up its functions.
#ifdef STRAKES_CEPHFS
#include "backend/ceph_library.hpp"

#include "system/shared_library.hpp"

namespace strakes {

CephLibrary::CephLibrary() {
    SharedLibrary library{"libcephfs.so.2"};
    library.find(close, "ceph_close");
    library.find(closedir, "ceph_closedir");
    library.find(conf_parse_env, "ceph_conf_parse_env");
    library.find(conf_read_file, "ceph_conf_read_file");
    library.find(conf_set, "ceph_conf_set");
    library.find(create, "ceph_create");
    library.find(fsync, "ceph_fsync");
    library.find(ll_lookup, "ceph_ll_lookup");
    library.find(ll_put, "ceph_ll_put");
    library.find(ll_rename, "ceph_ll_rename");
    library.find(ll_walk, "ceph_ll_walk");
    library.find(mkdir, "ceph_mkdir");
    library.find(mkdirat, "ceph_mkdirat");
    library.find(mount, "ceph_mount");
    library.find(mount_perms, "ceph_mount_perms");
    library.find(open, "ceph_open");
    library.find(openat, "ceph_openat");
    library.find(opendir, "ceph_opendir");
    library.find(read, "ceph_read");
    library.find(readdirplus_r, "ceph_readdirplus_r");
    library.find(release, "ceph_release");
    library.find(rmdir, "ceph_rmdir");
    library.find(statx, "ceph_statx");
    library.find(statxat, "ceph_statxat");
    library.find(unlink, "ceph_unlink");
    library.find(unlinkat, "ceph_unlinkat");
    library.find(unmount, "ceph_unmount");
    library.find(write, "ceph_write");
    trouble = library.trouble();
}

}  // namespace strakes
#endif
