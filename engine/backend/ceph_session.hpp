// A client session of a Ceph file system.
#pragma once

#include <cephfs/libcephfs.h>

#include <string>
#include <vector>

#include "backend/ceph.hpp"
#include "backend/file.hpp"
#include "system/shared_library.hpp"

namespace strakes {

struct CephLibrary {
    SharedLibrary library{"libcephfs.so.2"};

    decltype(&::ceph_close) close = library.symbol("ceph_close");
    decltype(&::ceph_conf_parse_env) conf_parse_env = library.symbol("ceph_conf_parse_env");
    decltype(&::ceph_conf_read_file) conf_read_file = library.symbol("ceph_conf_read_file");
    decltype(&::ceph_conf_set) conf_set = library.symbol("ceph_conf_set");
    decltype(&::ceph_create) create = library.symbol("ceph_create");
    decltype(&::ceph_fstatx) fstatx = library.symbol("ceph_fstatx");
    decltype(&::ceph_fsync) fsync = library.symbol("ceph_fsync");
    decltype(&::ceph_ll_lookup) ll_lookup = library.symbol("ceph_ll_lookup");
    decltype(&::ceph_ll_mkdir) ll_mkdir = library.symbol("ceph_ll_mkdir");
    decltype(&::ceph_ll_opendir) ll_opendir = library.symbol("ceph_ll_opendir");
    decltype(&::ceph_ll_put) ll_put = library.symbol("ceph_ll_put");
    decltype(&::ceph_ll_releasedir) ll_releasedir = library.symbol("ceph_ll_releasedir");
    decltype(&::ceph_ll_rename) ll_rename = library.symbol("ceph_ll_rename");
    decltype(&::ceph_ll_rmdir) ll_rmdir = library.symbol("ceph_ll_rmdir");
    decltype(&::ceph_ll_unlink) ll_unlink = library.symbol("ceph_ll_unlink");
    decltype(&::ceph_ll_walk) ll_walk = library.symbol("ceph_ll_walk");
    decltype(&::ceph_mkdirat) mkdirat = library.symbol("ceph_mkdirat");
    decltype(&::ceph_mount) mount = library.symbol("ceph_mount");
    decltype(&::ceph_mount_perms) mount_perms = library.symbol("ceph_mount_perms");
    decltype(&::ceph_open) open = library.symbol("ceph_open");
    decltype(&::ceph_openat) openat = library.symbol("ceph_openat");
    decltype(&::ceph_read) read = library.symbol("ceph_read");
    decltype(&::ceph_readdirplus_r) readdirplus_r = library.symbol("ceph_readdirplus_r");
    decltype(&::ceph_release) release = library.symbol("ceph_release");
    decltype(&::ceph_statxat) statxat = library.symbol("ceph_statxat");
    decltype(&::ceph_unlinkat) unlinkat = library.symbol("ceph_unlinkat");
    decltype(&::ceph_unmount) unmount = library.symbol("ceph_unmount");
    decltype(&::ceph_write) write = library.symbol("ceph_write");
    std::string trouble = library.trouble();
};

inline const CephLibrary& cephfs() {
    static const CephLibrary kLibrary;
    return kLibrary;
}

class CephSession {
  public:
    CephSession() = default;
    CephSession(const CephSession&) = delete;
    CephSession& operator=(const CephSession&) = delete;
    ~CephSession();

    // Connects to the cluster. Reads CEPH_CONF or the default files, then CEPH_ARGS, as every Ceph tool does.
    [[nodiscard]] FileStep begin();
    [[nodiscard]] ceph_mount_info* mount() const noexcept { return mount_; }

    [[nodiscard]] const UserPerm* permissions() const noexcept { return cephfs().mount_perms(mount_); }

    // Finds the directory in which the plan's directory is: it must have the marker, both must belong to this user or
    // root, and it must be the directory that the first session of the plan in this process has found.
    [[nodiscard]] CephPlace::Outcome find_parent();
    [[nodiscard]] Inode* parent() const noexcept { return parent_; }
    // Opens the plan's directory, to which all names in this session are relative.
    [[nodiscard]] FileStep stand_in();
    [[nodiscard]] int root() const noexcept { return root_; }
    // Finds a directory entry without following it if it is a link. Returns 0 or a negative error number.
    int look_up(Inode* directory, const char* name, Inode*& found, struct ceph_statx& status) const noexcept;

    // These functions record the inodes of open directories, because libcephfs renames by inode (it has no renameat).
    // inode() returns null if the look-up of the directory failed.
    void note_directory(int parent, const char* name, int descriptor) noexcept;
    void forget(int descriptor) noexcept;
    [[nodiscard]] Inode* inode(int descriptor) const noexcept {
        const auto at = static_cast<std::size_t>(descriptor);
        return at < inodes_.size() ? inodes_[at] : nullptr;
    }

  private:
    void keep(int descriptor, Inode* inode) noexcept;

    ceph_mount_info* mount_ = nullptr;
    bool mounted_ = false;
    Inode* parent_ = nullptr;
    int root_ = -1;
    std::vector<Inode*> inodes_;  // Inodes of open directories, by descriptor.
};

}  // namespace strakes
