// Connects a client and opens its root directory.
#ifdef STRAKES_CEPHFS
#include "backend/ceph_session.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <string_view>

namespace strakes {

namespace {

// Mount time-out for a cluster that does not answer. The default of libcephfs is five minutes.
constexpr const char* kPatienceSeconds = "30";
constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;

// Returns the client id in CEPH_ARGS, empty if absent: ceph_create() needs it before libcephfs reads CEPH_ARGS.
std::string client_id() {
    const char* given = std::getenv("CEPH_ARGS");
    std::istringstream arguments(given != nullptr ? given : "");
    std::string id;
    for (std::string word; arguments >> word;) {
        if (word.starts_with("--id=")) id = word.substr(5);
        if (word == "--id") arguments >> id;
        if ((word == "-n" || word == "--name") && arguments >> word) id = word.substr(word.find('.') + 1);
    }
    return id;
}

}  // namespace

CephSession::~CephSession() {
    if (mount_ == nullptr) return;
    for (std::size_t descriptor = 0; descriptor < inodes_.size(); ++descriptor) forget(static_cast<int>(descriptor));
    if (root_ >= 0) cephfs().close(mount_, root_);
    if (mounted_) cephfs().unmount(mount_);
    cephfs().release(mount_);
}

FileStep CephSession::begin() {
    const std::string id = client_id();
    int result = cephfs().create(&mount_, id.empty() ? nullptr : id.c_str());
    if (result < 0) return {"ceph_create", -result};
    result = cephfs().conf_read_file(mount_, nullptr);
    if (result < 0) return {"ceph_conf_read_file", -result};
    static_cast<void>(cephfs().conf_set(mount_, "client_mount_timeout", kPatienceSeconds));
    result = cephfs().conf_parse_env(mount_, nullptr);
    if (result < 0) return {"ceph_conf_parse_env", -result};
    result = cephfs().mount(mount_, "/");
    if (result < 0) return {"ceph_mount", -result};
    mounted_ = true;
    return {};
}

FileStep CephSession::stand_in(const std::string& directory) {
    const int result = cephfs().open(mount_, directory.c_str(), kDirectory, 0);
    if (result < 0) return {"ceph_open", -result};
    root_ = result;
    Inode* found = nullptr;
    struct ceph_statx status{};
    const int walked = cephfs().ll_walk(mount_, directory.c_str(), &found, &status, CEPH_STATX_INO, AT_SYMLINK_NOFOLLOW,
                                        cephfs().mount_perms(mount_));
    if (walked < 0) return {"ceph_ll_walk", -walked};
    keep(root_, found);
    return {};
}

void CephSession::note_directory(int parent, const char* name, int descriptor) noexcept {
    Inode* above = inode(parent);
    Inode* found = nullptr;
    struct ceph_statx status{};
    if (above == nullptr || cephfs().ll_lookup(mount_, above, name, &found, &status, CEPH_STATX_INO,
                                               AT_SYMLINK_NOFOLLOW, cephfs().mount_perms(mount_)) < 0)
        return;
    keep(descriptor, found);
}

void CephSession::keep(int descriptor, Inode* inode) noexcept {
    const auto at = static_cast<std::size_t>(descriptor);
    if (inodes_.size() <= at) inodes_.resize(at + 1);
    inodes_[at] = inode;
}

void CephSession::forget(int descriptor) noexcept {
    Inode* known = inode(descriptor);
    if (known == nullptr) return;
    cephfs().ll_put(mount_, known);
    inodes_[static_cast<std::size_t>(descriptor)] = nullptr;
}

}  // namespace strakes
#endif
