#ifdef STRAKES_CEPHFS
#include "backend/ceph.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string_view>

#include "backend/ceph_session.hpp"
#include "backend/posix.hpp"

namespace strakes {

namespace {

constexpr unsigned kDescriptorBits = 18;
constexpr int kDescriptorMask = (1 << kDescriptorBits) - 1;
constexpr std::size_t kMostBytes = std::size_t{1} << 30U;  // Maximum size of a call: libcephfs returns sizes as int.

Sessions<CephSession> sessions;  // NOLINT(bugprone-dynamic-static-initializers)

CephSession& session_of(int number) noexcept {
    return sessions.at(static_cast<std::size_t>(number) >> kDescriptorBits);
}
int descriptor_of(int number) noexcept { return number & kDescriptorMask; }
int numbered(std::size_t session, int descriptor) noexcept {
    return static_cast<int>(session << kDescriptorBits) | descriptor;
}
int error_of(int result) noexcept { return result < 0 ? -result : 0; }

}  // namespace

FileStep Ceph::connect(std::uint32_t rank) {
    if (!sessions.is_free(rank)) return {"ceph_create", sessions.of(rank) != nullptr ? 0 : EMFILE};
    auto session = std::make_unique<CephSession>();
    FileStep step = session->begin();
    if (step.error == 0) step = session->stand_in();
    if (step.error == 0) sessions.set(rank, std::move(session));
    return step;
}

void Ceph::disconnect(std::uint32_t rank) noexcept { sessions.end(rank); }

int Ceph::root(int /*of_the_process*/, std::uint32_t rank) noexcept {
    return numbered(rank % kMostSessions, sessions.of(rank)->root());
}

Ceph::Opened Ceph::open(int directory, const char* name, int flags) noexcept {
    CephSession& session = session_of(directory);
    const int result = cephfs().openat(session.mount(), descriptor_of(directory), name, flags, Posix::kFileMode);
    if (result < 0) return {-1, -result};
    if (result > kDescriptorMask) {
        cephfs().close(session.mount(), result);
        return {-1, EMFILE};
    }
    if ((flags & O_DIRECTORY) != 0) session.note_directory(descriptor_of(directory), name, result);
    return {numbered(static_cast<std::size_t>(directory) >> kDescriptorBits, result), 0};
}

int Ceph::close(int descriptor) noexcept {
    CephSession& session = session_of(descriptor);
    session.forget(descriptor_of(descriptor));
    return error_of(cephfs().close(session.mount(), descriptor_of(descriptor)));
}

Ceph::Moved Ceph::read_at(int descriptor, std::byte* to, std::size_t bytes, std::uint64_t offset) noexcept {
    const int result =
        cephfs().read(session_of(descriptor).mount(), descriptor_of(descriptor), reinterpret_cast<char*>(to),
                      static_cast<std::int64_t>(std::min(bytes, kMostBytes)), static_cast<std::int64_t>(offset));
    return result < 0 ? Moved{0, -result} : Moved{static_cast<std::size_t>(result), 0};
}

Ceph::Moved Ceph::write_at(int descriptor, const std::byte* from, std::size_t bytes, std::uint64_t offset) noexcept {
    const int result =
        cephfs().write(session_of(descriptor).mount(), descriptor_of(descriptor), reinterpret_cast<const char*>(from),
                       static_cast<std::int64_t>(std::min(bytes, kMostBytes)), static_cast<std::int64_t>(offset));
    return result < 0 ? Moved{0, -result} : Moved{static_cast<std::size_t>(result), 0};
}

int Ceph::synchronise(int descriptor) noexcept {
    return error_of(cephfs().fsync(session_of(descriptor).mount(), descriptor_of(descriptor), 0));
}

int Ceph::make_node(int /*directory*/, const char* /*name*/) noexcept { return ENOSYS; }

int Ceph::make_directory(int directory, const char* name) noexcept {
    return error_of(
        cephfs().mkdirat(session_of(directory).mount(), descriptor_of(directory), name, Posix::kDirectoryMode));
}

int Ceph::status(int directory, const char* name) noexcept {
    struct ceph_statx unused;
    return error_of(cephfs().statxat(session_of(directory).mount(), descriptor_of(directory), name, &unused,
                                     CEPH_STATX_BASIC_STATS, AT_SYMLINK_NOFOLLOW));
}

int Ceph::rename(int directory, const char* from, const char* to) noexcept {
    const CephSession& session = session_of(directory);
    Inode* parent = session.inode(descriptor_of(directory));
    if (parent == nullptr) return EBADF;
    return error_of(
        cephfs().ll_rename(session.mount(), parent, from, parent, to, cephfs().mount_perms(session.mount())));
}

int Ceph::remove_file(int directory, const char* name) noexcept {
    return error_of(cephfs().unlinkat(session_of(directory).mount(), descriptor_of(directory), name, 0));
}

int Ceph::remove_directory(int directory, const char* name) noexcept {
    return error_of(cephfs().unlinkat(session_of(directory).mount(), descriptor_of(directory), name, AT_REMOVEDIR));
}

namespace {

// Mount time-out for a cluster that does not answer, instead of the five minutes that libcephfs waits by default.
constexpr const char* kPatienceSeconds = "30";
constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
constexpr unsigned kWanted = CEPH_STATX_MODE | CEPH_STATX_UID | CEPH_STATX_INO;

// The directories of the current plan. The owner of a directory above them can give their names to something else.
struct Chosen {
    std::string directory, id, marker;
    std::atomic<std::uint64_t> inode{0};  // inode number of `directory`, or 0 if no session has found it
};

Chosen& chosen() {
    static Chosen of_plan;
    return of_plan;
}

void choose(const std::string& directory, const std::string& id, const char* marker, std::uint64_t inode) {
    chosen().directory = directory;
    chosen().id = id;
    chosen().marker = marker;
    chosen().inode = inode;
}

// Returns the client id in CEPH_ARGS, or "". ceph_create() needs the id, but libcephfs reads CEPH_ARGS only later.
std::string client_id() {
    const char* given = std::getenv("CEPH_ARGS");
    std::istringstream arguments(given != nullptr ? given : "");
    std::string id;
    for (std::string word; arguments >> word;) {
        const std::size_t equals = word.find('=');
        const std::string option = word.substr(0, equals);
        const bool names = option == "-n" || option == "--name";
        if (!names && option != "--id") continue;
        if (equals != std::string::npos)
            id = word.substr(equals + 1);
        else
            arguments >> id;
        if (names) id = id.substr(id.find('.') + 1);
    }
    return id;
}

}  // namespace

CephSession::~CephSession() {
    if (mount_ == nullptr) return;
    for (std::size_t descriptor = 0; descriptor < inodes_.size(); ++descriptor) forget(static_cast<int>(descriptor));
    if (root_ >= 0) cephfs().close(mount_, root_);
    if (parent_ != nullptr) cephfs().ll_put(mount_, parent_);
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

int CephSession::look_up(Inode* directory, const char* name, Inode*& found, struct ceph_statx& status) const noexcept {
    return cephfs().ll_lookup(mount_, directory, name, &found, &status, kWanted, AT_SYMLINK_NOFOLLOW, permissions());
}

CephPlace::Outcome CephSession::find_parent() {
    const std::string& path = chosen().directory;
    struct ceph_statx status{};
    const auto planted = [&status] { return status.stx_uid != ::geteuid() && status.stx_uid != 0; };
    const auto failed = [&path](int error) { return CephPlace::Outcome{{"ceph_ll_walk", error}, path}; };
    int result = cephfs().ll_walk(mount_, path.c_str(), &parent_, &status, kWanted, AT_SYMLINK_NOFOLLOW, permissions());
    if (result < 0) return failed(-result);
    if (!S_ISDIR(status.stx_mode)) return failed(ENOTDIR);
    if (planted()) return failed(EPERM);
    const std::uint64_t inode = status.stx_ino;
    Inode* marker = nullptr;
    result = look_up(parent_, chosen().marker.c_str(), marker, status);
    if (marker != nullptr) cephfs().ll_put(mount_, marker);
    if (result == 0 && !S_ISREG(status.stx_mode)) result = -EINVAL;
    if (result < 0) return {{"ceph_ll_lookup", -result}, chosen().marker, true};
    std::uint64_t known = 0;
    const bool same = chosen().inode.compare_exchange_strong(known, inode) || known == inode;
    return planted() || !same ? failed(EPERM) : CephPlace::Outcome{};
}

FileStep CephSession::stand_in() {
    if (const FileStep step = find_parent().step; step.error != 0) return step;
    Inode* found = nullptr;
    struct ceph_statx status{};
    int result = look_up(parent_, chosen().id.c_str(), found, status);
    if (result < 0) return {"ceph_ll_lookup", -result};
    const std::uint64_t inode = status.stx_ino;
    // libcephfs opens no descriptor by inode, so check that the path still leads to this directory.
    result = cephfs().open(mount_, (chosen().directory + "/" + chosen().id).c_str(), kDirectory, 0);
    if (result < 0) {
        cephfs().ll_put(mount_, found);
        return {"ceph_open", -result};
    }
    root_ = result;
    keep(root_, found);
    result = cephfs().fstatx(mount_, root_, &status, kWanted, 0);
    if (result < 0) return {"ceph_fstatx", -result};
    return {"ceph_open", status.stx_ino == inode && S_ISDIR(status.stx_mode) ? 0 : EPERM};
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

namespace {

constexpr std::size_t kMostLeft = 64;

CephPlace::Outcome look(CephSession& session) {
    if (const FileStep step = session.begin(); step.error != 0) return {step, chosen().directory};
    return session.find_parent();
}

// Removes everything in a directory. Names its entries by its inode and follows no link, so that nothing elsewhere is
// removed. `path` begins with the plan's id.
void empty_below(const CephSession& session, Inode* directory, const std::string& path,
                 std::atomic<std::uint64_t>& removed, std::vector<std::string>& left) {
    ceph_mount_info* const mount = session.mount();
    const auto keep = [&](const std::string& what) {
        if (left.size() < kMostLeft) left.push_back(what);
    };
    ceph_dir_result* listing = nullptr;
    if (cephfs().ll_opendir(mount, directory, &listing, session.permissions()) < 0) return keep(path);
    struct Entry {
        std::string name;
        bool directory;
    };
    std::vector<Entry> entries;
    dirent entry{};
    struct ceph_statx status{};
    while (cephfs().readdirplus_r(mount, listing, &entry, &status, CEPH_STATX_MODE, AT_SYMLINK_NOFOLLOW, nullptr) > 0) {
        const std::string_view name(entry.d_name);
        if (name != "." && name != "..") entries.push_back({std::string(name), S_ISDIR(status.stx_mode)});
    }
    cephfs().ll_releasedir(mount, listing);
    for (const auto& [name, is_directory] : entries) {
        std::string inside = path;
        inside.append("/").append(name);
        Inode* below = nullptr;
        if (is_directory && session.look_up(directory, name.c_str(), below, status) == 0)
            empty_below(session, below, inside, removed, left);
        if (below != nullptr) cephfs().ll_put(mount, below);
        const auto remove = is_directory ? cephfs().ll_rmdir : cephfs().ll_unlink;
        const int result = remove(mount, directory, name.c_str(), session.permissions());
        if (result < 0 && result != -ENOENT)
            keep(inside);
        else
            removed.fetch_add(1, std::memory_order_relaxed);
    }
}

}  // namespace

CephPlace::Outcome CephPlace::make(const std::string& directory, const std::string& id, const char* marker,
                                   std::uint64_t inode) {
    choose(directory, id, marker, inode);
    CephSession session;
    if (Outcome outcome = look(session); outcome.step.error != 0) return outcome;
    Inode* made = nullptr;
    struct ceph_statx status{};
    const int result = cephfs().ll_mkdir(session.mount(), session.parent(), id.c_str(), Posix::kDirectoryMode, &made,
                                         &status, kWanted, AT_SYMLINK_NOFOLLOW, session.permissions());
    if (made != nullptr) cephfs().ll_put(session.mount(), made);
    return {{"ceph_ll_mkdir", result < 0 ? -result : 0}, id};
}

CephPlace::Outcome CephPlace::join(const std::string& directory, const std::string& id, const char* marker,
                                   std::uint64_t inode) {
    choose(directory, id, marker, inode);
    CephSession session;
    if (Outcome outcome = look(session); outcome.step.error != 0) return outcome;
    return {session.stand_in(), id};
}

std::vector<std::string> CephPlace::empty(std::atomic<std::uint64_t>& removed) {
    CephSession session;
    std::vector<std::string> left;
    if (session.begin().error != 0 || session.stand_in().error != 0)
        left.push_back(chosen().id);
    else
        empty_below(session, session.inode(session.root()), chosen().id, removed, left);
    return left;
}

FileStep CephPlace::remove() {
    CephSession session;
    if (const FileStep found = look(session).step; found.error != 0) return found.error == ENOENT ? FileStep{} : found;
    const int result = cephfs().ll_rmdir(session.mount(), session.parent(), chosen().id.c_str(), session.permissions());
    return {"ceph_ll_rmdir", result == -ENOENT ? 0 : -result};
}

}  // namespace strakes
#endif
