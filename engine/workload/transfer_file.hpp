// One data file of a set: its name, and the operations on it outside timed loops.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>

#include "measure/page_cache.hpp"
#include "workload/plan_state.hpp"
#include "workload/workload.hpp"

namespace strakes {

template <class Io>
class TransferFile {
  public:
    using Handle = typename Io::Handle;  // NOLINT(readability-redundant-typename): older Clang asks for it

    TransferFile(const PhaseSetting& setting, const TransferPhase& phase, std::uint32_t file, std::uint32_t rank)
        : setting_(setting),
          directory_(phase.own_directory ? directory_of(phase, file) : std::string()),
          name_(entry_of(phase, file)),
          rank_(rank) {}

    [[nodiscard]] std::string path() const { return setting_.path_of(name_); }

    Workload::Outcome open(int flags, Handle& into) const {
        const auto [descriptor, error] = Io::open(Io::root(setting_.root, rank_), name_.c_str(), flags | O_NOFOLLOW);
        if (error == 0) {
            into = Handle(descriptor);
            return std::nullopt;
        }
        Failure failure = call_failure("open", path(), error);
        if (error == EINVAL && (flags & O_DIRECT) != 0) {
            failure.what = "this file system does not support O_DIRECT";
            failure.remedy = "Set direct to false.";
        }
        return failure;
    }

    Workload::Outcome check_flags(int descriptor, bool& direct) const {
        if constexpr (!Io::kKernelFiles) return std::nullopt;
        const int flags = ::fcntl(descriptor, F_GETFL);
        if (flags < 0) return call_failure("fcntl", path(), errno);
        direct = (flags & O_DIRECT) != 0;
        const bool wanted = std::get<TransferPhase>(setting_.phase()).direct;
        if (direct == wanted) return std::nullopt;
        return Failure{.what = wanted ? "the file was opened without O_DIRECT though it was asked for"
                                      : "the file was opened with O_DIRECT though it was not asked for",
                       .path = path(),
                       .operation = "fcntl",
                       .why = "the flags read back from the descriptor differ",
                       .remedy = wanted ? "Set direct to false." : "Set direct to true."};
    }

    // Create the file's separate directory, if the layout has one. The directory may exist already.
    Workload::Outcome make_directory() const {
        if (directory_.empty()) return std::nullopt;
        const int error = Io::make_directory(Io::root(setting_.root, rank_), directory_.c_str());
        if (error == 0 || error == EEXIST) return std::nullopt;
        return call_failure("mkdir", setting_.path_of(directory_), error);
    }

    Workload::Outcome remove() const {
        const int error = Io::remove_file(Io::root(setting_.root, rank_), name_.c_str());
        return error == 0 || error == ENOENT ? std::nullopt : Workload::Outcome(call_failure("unlink", path(), error));
    }

    // Uses fallocate(2), because the emulation in posix_fallocate(3) writes the file.
    Workload::Outcome allocate(std::uint64_t bytes) const {
        if constexpr (!Io::kKernelFiles) return call_failure("fallocate", path(), EOPNOTSUPP);
        Handle file;
        if (Workload::Outcome failure = open(O_WRONLY | O_CREAT | O_EXCL, file)) return failure;
        int error = 0;
        do error = ::fallocate(file.get(), 0, 0, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
        while (error == EINTR);
        return error == 0 ? std::nullopt : Workload::Outcome(call_failure("fallocate", path(), error));
    }

    // Measure how much of the file is cached, after dropping its pages if `drop` is set.
    Workload::Outcome look(bool drop, CacheState& cache, std::uint64_t CacheState::* resident) const {
        if constexpr (!Io::kKernelFiles) return std::nullopt;
        Handle file;
        if (Workload::Outcome failure = open(O_RDONLY, file)) return failure;
        if (drop) {
            // Dirty pages cannot be dropped.
            if (::fdatasync(file.get()) != 0) return call_failure("fdatasync", path(), errno);
            if (const int error = ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED); error != 0)
                return call_failure("posix_fadvise", path(), error);
        }
        struct stat status{};
        if (::fstat(file.get(), &status) != 0) return call_failure("fstat", path(), errno);
        const Residency found = residency(file.get(), static_cast<std::uint64_t>(status.st_size));
        cache.method = found.method;
        cache.file_bytes = found.file_bytes;
        cache.*resident = found.resident_bytes;
        return std::nullopt;
    }

  private:
    const PhaseSetting& setting_;
    std::string directory_, name_;
    std::uint32_t rank_;
};

}  // namespace strakes
