// A client session of a Ceph file system.
#pragma once

#include <string>
#include <vector>

#include "backend/ceph_library.hpp"
#include "backend/file.hpp"

namespace strakes {

class CephSession {
  public:
    CephSession() = default;
    CephSession(const CephSession&) = delete;
    CephSession& operator=(const CephSession&) = delete;
    ~CephSession();

    // Connects. Configured like every Ceph tool: by CEPH_CONF or the default files, then by CEPH_ARGS.
    [[nodiscard]] FileStep begin();
    [[nodiscard]] ceph_mount_info* mount() const noexcept { return mount_; }

    // Opens the directory to which names are relative.
    [[nodiscard]] FileStep stand_in(const std::string& directory);
    [[nodiscard]] int root() const noexcept { return root_; }

    // Keeps the inodes of open directories: libcephfs renames by inode, since it has no renameat. inode() returns null
    // for a directory whose look-up failed.
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
    int root_ = -1;
    std::vector<Inode*> inodes_;  // by descriptor
};

}  // namespace strakes
