// Transfers through a library, either of one file per rank or of one file that all ranks open with a common handle. In
// the second case all ranks open, synchronise and close the file together. Before each of these steps they agree
// whether all of them can take it.
#include <fcntl.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "backend/library_file.hpp"
#include "backend/posix.hpp"
#include "system/descriptor.hpp"
#include "system/queries.hpp"
#include "team/exchange.hpp"
#include "workload/collective_loop.hpp"
#include "workload/transfer_base.hpp"
#include "workload/workload.hpp"

namespace strakes {

namespace {

// Libraries take paths. Return the path of the plan's directory, or a path in /proc that is valid while the directory
// is open.
std::string path_for_library(int directory) {
    const std::string path = path_of(directory);
    return path.empty() ? "/proc/thread-self/fd/" + std::to_string(directory) : path;
}

constexpr const char* kSeeQuota = "Check whether a quota is used up; Open MPI 4 does not report it.";

class LibraryTransfer final : public TransferBase {
  public:
    LibraryTransfer(const PhaseSetting& setting, const Seat& seat)
        : TransferBase(setting, seat),
          file_(setting, phase_, file_number(), seat.rank),
          own_file_(setting, phase_, own_file_number(), seat.rank),
          data_(seat.libraries->file(phase_.backend)) {}
    // If the timed section was not run, the file is still open on all ranks.
    ~LibraryTransfer() override {
        if (data_->is_open()) static_cast<void>(data_->close());
    }

    Outcome lead() override {
        Outcome failure = lead_with(file_);
        Descriptor file;
        if (!failure && makes_trial()) failure = file_.open(O_WRONLY | O_CREAT | O_EXCL, file);
        return failure;
    }

    Outcome prepare(RankResult& result) override {
        seat_.progress.at("preparing");
        Outcome failure = make_buffer();
        count_ = calls_ = count();
        if (!failure) failure = prepare_files(file_, writes_new() ? file_ : own_file_, result.cache);
        if (!failure && keeps_quiet()) failure = try_to_open();
        if (together()) {
            const auto [failed, calls, unused] = agree({failure ? 1U : 0U, count_, 0});
            calls_ = calls;
            if (failed != 0) return failure;
            if (makes_trial() && seat_.rank == 0) failure = file_.remove();
        }
        if (failure || phase_.time_open) return failure;
        return open(result);
    }

    void run(RankResult& result) override {
        const Clock& clock = setting_.clock;
        result.start = result.end = clock.now();
        if (phase_.time_open) {
            seat_.progress.at("opening");
            result.failure = open(result);
        }
        if (data_->is_open()) {
            seat_.progress.at("transferring");
            transfer(result);
            result.end = clock.now();
            const bool orderly = is_orderly(result);
            if (phase_.sync == Sync::none) return;
            if (orderly) close(result, phase_.sync == Sync::fsync);
        }
        result.end = clock.now();
    }

    void finish(RankResult& result) override {
        seat_.progress.at("closing");
        if (data_->is_open()) close(result, false);
        note(result);
        if (writes_new() && !keeps_quiet() && !result.failure && !setting_.halted()) result.failure = look_for_holes();
        if (looks_at_cache()) {
            const TransferFile<Posix>& seen = writes_new() ? file_ : own_file_;
            Outcome failure = seen.look(false, result.cache, &CacheState::resident_after_bytes);
            if (failure && !result.failure) result.failure = std::move(failure);
        }
        buffer_ = Buffer();
    }

  private:
    [[nodiscard]] bool together() const noexcept { return phase_.opens_together(); }
    [[nodiscard]] Numbers agree(Numbers mine) const {
        return together() ? most_of_all(*seat_.exchange, seat_.rank, mine) : mine;
    }

    // If the library hides failures, a collective open may never return when one rank cannot open the file. So every
    // rank first opens the file by POSIX calls, or an empty file if the phase creates the file.
    [[nodiscard]] Outcome try_to_open() const {
        Descriptor file;
        return file_.open(phase_.operation == TransferOperation::read ? O_RDONLY : O_RDWR, file);
    }
    [[nodiscard]] bool makes_trial() const noexcept { return keeps_quiet() && writes_new() && !phase_.preallocate; }

    [[nodiscard]] std::uint64_t file_bytes() const {
        return set_.written->bytes_per_rank() * (shared() ? setting_.plan.ranks : 1);
    }

    // A file of one rank may be missing if nothing was written to it.
    Outcome open(RankResult& result) {
        using enum TransferOperation;
        if (!together() && !writes_new() && count_ == 0) return std::nullopt;
        const std::uint64_t before = setting_.clock.now();
        const FileStep step =
            data_->open({.path = path_for_library(setting_.root) + "/" + entry_of(phase_, file_number()),
                         .creates = writes_new(),
                         .exclusively = writes_new() && !shared() && !phase_.preallocate,
                         .reads = phase_.operation == read || phase_.operation == mixed,
                         .writes = phase_.operation != read,
                         .together = together(),
                         .collective = phase_.collective,
                         .bytes = file_bytes(),
                         .chunk_bytes = phase_.chunk_bytes,
                         .hints = phase_.hints});
        Outcome failure = outcome_of(step);
        const bool knows_why = failure && is_in_words_of_system(step.error);
        const auto [failed, closed, known] =
            agree({failure ? 1U : 0U, data_->is_open() ? 0U : 1U, knows_why ? 1U : 0U});
        if (failed != 0 && data_->is_open()) {
            if (closed == 0)
                static_cast<void>(data_->close());
            else
                data_->forget();
        }
        result.open = elapsed(before, setting_.clock.now());
        if (failed == 0 && seat_.rank == 0) result.hints = data_->hints();
        // If a library fails on one rank, it fails on all ranks, but only the first failing rank knows the cause.
        if (known != 0 && !knows_why) return std::nullopt;
        return failure;
    }

    void transfer(RankResult& result) {
        const LoopSetting loop = loop_setting(result);
        const LoopEnd end = in_their_order([&](const auto& order) {
            return phase_.collective && together() ? collective_loop(loop, *data_, calls_, order, result)
                                                   : transfer_loop(loop, *data_, order, result);
        });
        done_ = end.in_order;
        if (!end.failed) return;
        if (end.error > 0 || end.error == kUnnumbered)
            result.failure = failure_of(end.reading ? "read" : "write", end.error);
        else
            result.failure = describe(end, file_.path());
        if (end.error == LoopEnd::kEndOfFile && !end.reading) {
            result.failure->remedy = kSeeQuota;
            blame_space(*result.failure);
        }
        result.failure->offset_bytes = end.mismatch ? end.mismatch->offset_bytes : end.offset;
    }

    // Synchronising and closing wait for all ranks that have the file open. If a rank has failed or was halted, all
    // ranks skip both steps.
    bool is_orderly(RankResult& result) {
        if (result.failure) seat_.alarm();
        auto [failed, halted, unused] = agree({result.failure ? 1U : 0U, setting_.halted() ? 1U : 0U, 0});
        if (failed == 0 && halted == 0 && writes_new() && keeps_quiet()) {
            result.failure = look_for_holes();
            failed = agree({result.failure ? 1U : 0U, 0, 0})[0];
        }
        if (failed != 0 && keeps_quiet()) abandon();
        return failed == 0 && halted == 0;
    }
    [[nodiscard]] bool keeps_quiet() const { return together() && seat_.libraries->keep_failures_quiet(); }
    // The library keeps the file open until the process ends. Truncate a new file to free its space.
    void abandon() {
        data_->forget();
        if (!writes_new() || seat_.rank != 0) return;
        Descriptor file;
        static_cast<void>(file_.open(O_WRONLY | O_TRUNC, file));
    }

    void close(RankResult& result, bool synchronise) {
        const std::uint64_t before = setting_.clock.now();
        Outcome failure;
        if (synchronise) {
            seat_.progress.at("synchronising");
            failure = outcome_of(data_->synchronise());
        }
        seat_.progress.at("closing");
        Outcome closed = outcome_of(data_->close());
        if (!failure) failure = std::move(closed);
        result.close = elapsed(before, setting_.clock.now());
        if (!result.failure) result.failure = std::move(failure);
    }

    [[nodiscard]] Outcome outcome_of(const FileStep& step) const {
        return step.error == 0 ? std::nullopt : Outcome(failure_of(step.call, step.error));
    }
    [[nodiscard]] Failure failure_of(std::string_view operation, int error) const {
        Failure failure = call_failure(operation, file_.path(), error == kUnnumbered ? 0 : error);
        if (error == kUnnumbered) {
            failure.error_name.clear();
            failure.remedy = "Check the file system, quotas, and that this MPI library works on the file system.";
        }
        const std::string in_system = std::exchange(failure.why, data_->said());
        if (error != kUnnumbered && !is_in_words_of_system(error)) failure.why += ": " + in_system;
        if (error == kUnnumbered && operation != "read") blame_space(failure);
        return failure;
    }

    [[nodiscard]] bool is_in_words_of_system(int error) const {
        return error > 0 && data_->said().find(std::system_category().message(error)) != std::string::npos;
    }

    // Some libraries (OMPIO of Open MPI 4) do not report failed collective writes, which leave holes.
    [[nodiscard]] Outcome look_for_holes() const {
        if (done_ == 0) return std::nullopt;
        const auto at = data_->data_offset();
        const bool whole = done_ == region().transfers;
        if (at ? phase_.access == Access::random && !whole : !whole || phase_.stop.rule != StopRule::amount)
            return std::nullopt;
        if (!at && shared() && seat_.rank != 0) return std::nullopt;
        Descriptor file;
        if (Outcome failure = file_.open(O_RDONLY, file)) return failure;
        const std::uint64_t missing = at ? missing_of_mine(file.get(), *at) : missing_of_all(file.get());
        if (missing == 0) return std::nullopt;
        Failure failure{.what = "data that were written are missing",
                        .path = file_.path(),
                        .operation = "write",
                        .why = "the library reported no error but " + std::to_string(missing) + " bytes are missing",
                        .remedy = kSeeQuota};
        blame_space(failure);
        return failure;
    }
    void blame_space(Failure& failure) const {
        struct statvfs space{};
        if (::fstatvfs(setting_.root, &space) != 0 || space.f_bavail > 0) return;
        const Failure full = call_failure("", "", ENOSPC);
        failure.error_name = full.error_name;
        failure.why += "; the file system is full";
        failure.remedy = full.remedy;
    }
    [[nodiscard]] std::uint64_t missing_of_mine(int file, std::uint64_t at) const {
        const Region mine = region();
        std::uint64_t missing = 0;
        std::uint64_t left = done_ * mine.transfer_bytes;
        for (std::uint64_t begin = at + mine.base; left > 0; begin += mine.stride) {
            const std::uint64_t bytes = std::min(left, mine.run_bytes);
            left -= bytes;
            missing += hole_bytes(file, begin, begin + bytes);
        }
        return missing;
    }
    // Return the number of missing bytes if the position of the data in the file is unknown: the bytes that all ranks
    // wrote minus the allocated bytes of the file.
    [[nodiscard]] std::uint64_t missing_of_all(int file) const {
        const off_t end = ::lseek(file, 0, SEEK_END);
        const std::uint64_t size = end > 0 ? static_cast<std::uint64_t>(end) : 0;
        const std::uint64_t there = size - hole_bytes(file, 0, size);
        return file_bytes() > there ? file_bytes() - there : 0;
    }

    TransferFile<Posix> file_, own_file_;
    std::unique_ptr<LibraryFile> data_;
    std::uint64_t calls_ = 0;  // maximum of the transfers of a rank
};

}  // namespace

std::unique_ptr<Workload> make_library_transfer(const PhaseSetting& setting, const Seat& seat) {
    return std::make_unique<LibraryTransfer>(setting, seat);
}

}  // namespace strakes
