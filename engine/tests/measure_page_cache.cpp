// Page-cache residency of a file that is written, dropped and read again.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "measure/page_cache.hpp"

using strakes::Residency;

namespace {

// An unnamed file in the temporary directory.
class ScratchFile {
  public:
    ScratchFile() {
        std::string path = std::filesystem::temp_directory_path() / "strakes-test-XXXXXX";
        fd_ = mkstemp(path.data());
        REQUIRE(fd_ >= 0);
        unlink(path.c_str());
    }
    ScratchFile(const ScratchFile&) = delete;
    ScratchFile& operator=(const ScratchFile&) = delete;
    ~ScratchFile() { close(fd_); }

    int fd() const { return fd_; }
    bool lives_in_memory() const {
        struct statfs facts{};
        return fstatfs(fd_, &facts) == 0 && facts.f_type == TMPFS_MAGIC;
    }

  private:
    int fd_;
};

// Not a multiple of the page size: only the used part of the last page counts.
constexpr std::uint64_t kBytes = (std::uint64_t{3} << 20U) + 1000;

void write_and_sync(int fd) {
    const std::vector<char> data(kBytes, 'x');
    REQUIRE(write(fd, data.data(), data.size()) == static_cast<ssize_t>(kBytes));
    REQUIRE(fsync(fd) == 0);
}

}  // namespace

TEST_CASE("a file just written is resident, a dropped one is not, and both methods agree") {
    const ScratchFile file;
    write_and_sync(file.fd());
    for (const bool dropped : {false, true}) {
        if (dropped) {
            if (file.lives_in_memory()) return;
            REQUIRE(posix_fadvise(file.fd(), 0, 0, POSIX_FADV_DONTNEED) == 0);
        }
        const Residency best = strakes::residency(file.fd(), kBytes);
        CHECK(best.method != "none");
        CHECK(best.file_bytes == kBytes);
        CHECK(best.resident_bytes == (dropped ? 0 : kBytes));
        if (const auto cachestat = strakes::residency_by_cachestat(file.fd(), kBytes)) {
            CHECK(cachestat->method == "cachestat");
            CHECK(cachestat->resident_bytes == best.resident_bytes);
        }
        const Residency mincore = strakes::residency_by_mincore(file.fd(), kBytes).value_or(Residency{"refused", 0, 0});
        CHECK(mincore.method == "mincore");
        CHECK(mincore.resident_bytes == best.resident_bytes);
    }
}

TEST_CASE("a part that was read back is the resident part") {
    const ScratchFile file;
    if (file.lives_in_memory()) return;
    write_and_sync(file.fd());
    REQUIRE(posix_fadvise(file.fd(), 0, 0, POSIX_FADV_DONTNEED) == 0);
    REQUIRE(posix_fadvise(file.fd(), 0, 0, POSIX_FADV_RANDOM) == 0);
    std::vector<char> part(std::size_t{64} << 10U);
    REQUIRE(pread(file.fd(), part.data(), part.size(), 0) == static_cast<ssize_t>(part.size()));
    const Residency found = strakes::residency(file.fd(), kBytes);
    CHECK(found.resident_bytes >= part.size());
    CHECK(found.resident_bytes < kBytes);
}

TEST_CASE("an empty file has no resident bytes, and those of a pipe are unknown") {
    const ScratchFile file;
    CHECK(strakes::residency(file.fd(), 0).resident_bytes == 0);
    int ends[2] = {-1, -1};
    REQUIRE(pipe(ends) == 0);
    const Residency unknown = strakes::residency(ends[0], 4096);
    CHECK(unknown.resident_bytes == 0);
    CHECK_FALSE(strakes::residency_by_mincore(ends[0], 4096).has_value());
    close(ends[0]);
    close(ends[1]);
}
