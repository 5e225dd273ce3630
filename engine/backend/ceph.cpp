// The table of libcephfs sessions, and the calls made through them.
#ifdef STRAKES_CEPHFS
#include "backend/ceph.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include "backend/ceph_place.hpp"
#include "backend/ceph_session.hpp"

namespace strakes {

namespace {

constexpr unsigned kDescriptorBits = 18;
constexpr int kDescriptorMask = (1 << kDescriptorBits) - 1;
constexpr std::size_t kMostBytes = std::size_t{1} << 30U;  // libcephfs returns the number of bytes as an int

// The client of one rank, at the rank's number modulo kMostSessions: the ranks of a process are consecutive. Only the
// rank's thread uses its entry.
struct Client {
    std::uint32_t rank = 0;
    std::unique_ptr<CephSession> session;
};
std::array<Client, Ceph::kMostSessions> clients;  // NOLINT(bugprone-dynamic-static-initializers)

Client& client_of(std::uint32_t rank) noexcept { return clients[rank % Ceph::kMostSessions]; }
CephSession& session_of(int number) noexcept {
    return *clients[static_cast<std::size_t>(number) >> kDescriptorBits].session;
}
int descriptor_of(int number) noexcept { return number & kDescriptorMask; }
int numbered(std::size_t session, int descriptor) noexcept {
    return static_cast<int>(session << kDescriptorBits) | descriptor;
}
int error_of(int result) noexcept { return result < 0 ? -result : 0; }

}  // namespace

FileStep Ceph::connect(std::uint32_t rank) {
    Client& client = client_of(rank);
    if (client.session != nullptr) return {"ceph_create", client.rank == rank ? 0 : EMFILE};
    auto session = std::make_unique<CephSession>();
    FileStep step = session->begin();
    if (step.error == 0) step = session->stand_in(CephPlace::of_plan());
    if (step.error == 0) client = {.rank = rank, .session = std::move(session)};
    return step;
}

void Ceph::disconnect(std::uint32_t rank) noexcept {
    if (Client& client = client_of(rank); client.rank == rank) client.session.reset();
}

int Ceph::root(int /*of_the_process*/, std::uint32_t rank) noexcept {
    return numbered(rank % kMostSessions, client_of(rank).session->root());
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

}  // namespace strakes
#endif
