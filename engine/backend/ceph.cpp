#ifdef STRAKES_CEPHFS
#include "backend/ceph.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
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
    if (step.error == 0) step = session->stand_in(CephPlace::of_plan());
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

namespace {

constexpr std::size_t kMostLeft = 64;

std::string& plan_directory() {
    static std::string directory;
    return directory;
}

CephPlace::Outcome look(CephSession& session, const std::string& directory, const char* marker) {
    if (const FileStep step = session.begin(); step.error != 0) return {step, directory};
    struct ceph_statx status{};
    const auto stat = [&](const std::string& path) {
        const int result = cephfs().statx(session.mount(), path.c_str(), &status, CEPH_STATX_MODE, AT_SYMLINK_NOFOLLOW);
        return FileStep{"ceph_statx", result < 0 ? -result : 0};
    };
    if (FileStep step = stat(directory); step.error != 0) return {step, directory};
    if (!S_ISDIR(status.stx_mode)) return {{"ceph_statx", ENOTDIR}, directory};
    if (FileStep step = stat(directory + "/" + marker); step.error != 0) return {step, marker, true};
    if (!S_ISREG(status.stx_mode)) return {{"ceph_statx", EINVAL}, marker, true};
    return {};
}

// Removes everything below `path`. Unlinks symbolic links without following them.
void empty_below(ceph_mount_info* mount, const std::string& path, std::atomic<std::uint64_t>& removed,
                 std::vector<std::string>& left) {
    const auto keep = [&](const std::string& what) {
        if (left.size() < kMostLeft) left.push_back(what.substr(CephPlace::of_plan().rfind('/') + 1));
    };
    ceph_dir_result* listing = nullptr;
    if (cephfs().opendir(mount, path.c_str(), &listing) < 0) return keep(path);
    struct Entry {
        std::string path;
        bool directory;
    };
    std::vector<Entry> entries;
    dirent entry{};
    struct ceph_statx status{};
    while (cephfs().readdirplus_r(mount, listing, &entry, &status, CEPH_STATX_MODE, AT_SYMLINK_NOFOLLOW, nullptr) > 0) {
        const std::string_view name(entry.d_name);
        if (name != "." && name != "..") entries.push_back({path + "/" + entry.d_name, S_ISDIR(status.stx_mode)});
    }
    cephfs().closedir(mount, listing);
    for (const auto& [inside, directory] : entries) {
        if (directory) empty_below(mount, inside, removed, left);
        const int result = directory ? cephfs().rmdir(mount, inside.c_str()) : cephfs().unlink(mount, inside.c_str());
        if (result < 0 && result != -ENOENT)
            keep(inside);
        else
            removed.fetch_add(1, std::memory_order_relaxed);
    }
}

}  // namespace

const std::string& CephPlace::of_plan() noexcept { return plan_directory(); }

CephPlace::Outcome CephPlace::make(const std::string& directory, const std::string& id, const char* marker) {
    CephSession session;
    if (Outcome outcome = look(session, directory, marker); outcome.step.error != 0) return outcome;
    plan_directory() = directory + "/" + id;
    const int result = cephfs().mkdir(session.mount(), of_plan().c_str(), Posix::kDirectoryMode);
    return {{"ceph_mkdir", result < 0 ? -result : 0}, id};
}

CephPlace::Outcome CephPlace::join(const std::string& directory, const std::string& id, const char* marker) {
    CephSession session;
    if (Outcome outcome = look(session, directory, marker); outcome.step.error != 0) return outcome;
    plan_directory() = directory + "/" + id;
    return {session.stand_in(of_plan()), id};
}

std::vector<std::string> CephPlace::empty(std::atomic<std::uint64_t>& removed) {
    CephSession session;
    std::vector<std::string> left;
    if (session.begin().error != 0)
        left.push_back(of_plan().substr(of_plan().rfind('/') + 1));
    else
        empty_below(session.mount(), of_plan(), removed, left);
    return left;
}

FileStep CephPlace::remove() {
    CephSession session;
    if (const FileStep begun = session.begin(); begun.error != 0) return begun;
    const int result = cephfs().rmdir(session.mount(), of_plan().c_str());
    return {"ceph_rmdir", result == -ENOENT ? 0 : -result};
}

}  // namespace strakes
#endif
