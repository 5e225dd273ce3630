// Each step connects a separate client: the steps run outside the timed sections, in different threads.
#ifdef STRAKES_CEPHFS
#include "backend/ceph_place.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <string_view>

#include "backend/ceph_session.hpp"
#include "backend/posix.hpp"

namespace strakes {

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
