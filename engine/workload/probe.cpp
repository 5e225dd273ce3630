// Open-loop load: every operation has a due time, independent of earlier ones, and its latency counts from that time.
// An operation that stalls delays the next ones, and their latencies include the delay.
#include <fcntl.h>
#include <sys/prctl.h>

#include <cerrno>
#include <ctime>
#include <string>
#include <type_traits>
#include <utility>

#include "backend/posix.hpp"
#include "data/pattern.hpp"
#include "system/buffer.hpp"
#include "workload/items.hpp"
#include "workload/plan_state.hpp"
#include "workload/transfer_loop.hpp"
#include "workload/workload.hpp"
#ifdef STRAKES_CEPHFS
#include "backend/ceph.hpp"
#endif

namespace strakes {

namespace {

constexpr std::uint64_t kStatFiles = 100;
constexpr std::uint64_t kReadPieces = 256;
// The rank stops sleeping this long before the next operation and then spins, because a sleep may end this much late.
constexpr std::uint64_t kAwakeNs = 60'000;
constexpr std::uint64_t kLongestSleepNs = 200'000'000;  // Longest sleep in ns. A halt is noticed only after a sleep.
constexpr unsigned long kSlackNs = 1'000;

void sleep_ns(std::uint64_t nanoseconds) noexcept {
    const timespec time{.tv_sec = 0, .tv_nsec = static_cast<long>(nanoseconds)};
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
}

void rest() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

template <class Io>
class Probe final : public Workload {
  public:
    Probe(const PhaseSetting& setting, const Seat& seat)
        : setting_(setting),
          seat_(seat),
          phase_(std::get<ProbePhase>(setting.phase())),
          directory_name_(entry_of(phase_, seat.rank)),
          name_(false, seat.rank, std::max(phase_.operations(), kStatFiles)) {}

    Outcome lead() override { return std::nullopt; }

    Outcome prepare(RankResult& /*result*/) override {
        seat_.progress.at("preparing");
        seat_.latencies.waits = std::make_unique<Histogram>();
        if (phase_.log) seat_.log->clear(phase_.operations());
        if (const auto [call, error] = Io::connect(seat_.rank); error != 0) return call_failure(call, "", error);
        const int root = Io::root(setting_.root, seat_.rank);
        if (const int error = Io::make_directory(root, directory_name_.c_str()); error != 0)
            return call_failure("mkdir", setting_.path_of(directory_name_), error);
        if (Outcome failure = open_in(root, directory_name_.c_str(), O_RDONLY | O_DIRECTORY, directory_))
            return failure;
        if (phase_.file_bytes > 0) {
            if (Outcome failure = setting_.make(buffer_, phase_.file_bytes)) return failure;
            fill(buffer_.bytes(), stream(), 0);
        }
        if (phase_.operation == ProbeOperation::write_fsync)
            return open_in(directory_.get(), "data", O_WRONLY | O_CREAT | O_EXCL, data_);
        if (phase_.operation == ProbeOperation::file_read) return make_data();
        if (phase_.operation == ProbeOperation::file_stat) return make_files();
        return std::nullopt;
    }

    void run(RankResult& result) override {
        const Clock clock = setting_.clock;
        const int slack = ::prctl(PR_GET_TIMERSLACK);
        ::prctl(PR_SET_TIMERSLACK, kSlackNs);
        seat_.progress.at("probing");
        start_ = result.start = clock.now();
        if (phase_.log) seat_.log->begin(start_);
        const double interval_ns = 1e9 / phase_.rate_per_s;
        const double first_ns = interval_ns * seat_.rank / setting_.plan.ranks;
        int first_error = 0;
        for (std::uint64_t number = 0; number < phase_.operations(); ++number) {
            const auto due = static_cast<std::uint64_t>(first_ns + interval_ns * static_cast<double>(number));
            make_ready(number);
            if (!wait_until(due)) break;
            const std::uint64_t begun = since_start();
            const int error = operate(number);
            const std::uint64_t end = clock.now();
            const std::uint64_t ended = clock.to_ns(elapsed(start_, end));
            if (phase_.log) seat_.log->add({.due = due, .begun = begun, .ended = ended, .error = error});
            seat_.latencies.waits->record(begun - due);
            if (error != 0) {
                if (first_error == 0) first_error = error;
                ++result.failed_operations;
                continue;
            }
            seat_.latencies.calls.record(ended - due);
            result.slowest_ns = std::max(result.slowest_ns, ended - due);
            ++result.operations;
            result.bytes += phase_.file_bytes;
            seat_.progress.publish(result.operations, result.bytes);
        }
        result.end = clock.now();
        // Failed operations are results of a probe. Only a probe without any acknowledged operation fails.
        if (result.operations == 0 && first_error != 0)
            result.failure = call_failure(name_in(kProbeOperations, phase_.operation),
                                          setting_.path_of(directory_name_), first_error);
        if (slack > 0) ::prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(slack));
    }

    void finish(RankResult& /*result*/) override {
        seat_.progress.at("closing");
        data_ = Handle();
        directory_ = Handle();
        buffer_ = Buffer();
    }

  private:
    using Handle = typename Io::Handle;  // NOLINT(readability-redundant-typename): older Clang asks for it

    [[nodiscard]] Stream stream() const noexcept {
        return stream_of(setting_.plan.seed, setting_.plan.salt, seat_.rank);
    }
    [[nodiscard]] std::uint64_t since_start() const noexcept {
        return setting_.clock.to_ns(elapsed(start_, setting_.clock.now()));
    }

    Outcome open_in(int directory, const char* name, int flags, Handle& into) {
        const auto [descriptor, error] = Io::open(directory, name, flags | O_NOFOLLOW);
        if (error != 0) return call_failure("open", setting_.path_of(directory_name_), error);
        into = Handle(descriptor);
        return std::nullopt;
    }

    Outcome make_files() {
        for (std::uint64_t number = 0; number < kStatFiles; ++number) {
            name_.set(number, false);
            Handle file;
            if (Outcome failure = open_in(directory_.get(), name_.c_str(), O_WRONLY | O_CREAT | O_EXCL, file))
                return failure;
        }
        return std::nullopt;
    }

    Outcome make_data() {
        if (Outcome failure = open_in(directory_.get(), "data", O_RDWR | O_CREAT | O_EXCL, data_)) return failure;
        int error = 0;
        for (std::uint64_t piece = 0; piece < kReadPieces && error == 0; ++piece) {
            fill(buffer_.bytes(), stream(), piece * phase_.file_bytes);
            error = move(false, data_.get(), piece * phase_.file_bytes);
        }
        // Only clean pages can be dropped.
        if (error == 0) error = Io::synchronise(data_.get());
        if (error == 0) return std::nullopt;
        return call_failure("write", setting_.path_of(directory_name_) + "/data", error);
    }

    void make_ready(std::uint64_t number) noexcept {
        if (phase_.operation != ProbeOperation::file_read && phase_.file_bytes > 0)
            fill(buffer_.bytes(), stream(), number * phase_.file_bytes);
        if (phase_.operation == ProbeOperation::file_read)
            drop_piece(number);
        else if (phase_.operation != ProbeOperation::write_fsync)
            name_.set(phase_.operation == ProbeOperation::file_stat ? number % kStatFiles : number, false);
    }

    void drop_piece(std::uint64_t number) const noexcept {
        if constexpr (std::is_same_v<Io, Posix>)
            static_cast<void>(::posix_fadvise(data_.get(), static_cast<off_t>(offset_of(number)),
                                              static_cast<off_t>(phase_.file_bytes), POSIX_FADV_DONTNEED));
    }
    // Return the offset of a piece to read. Consecutive pieces are far apart, which defeats read-ahead.
    [[nodiscard]] std::uint64_t offset_of(std::uint64_t number) const noexcept {
        constexpr std::uint64_t kStep = 97;  // step between pieces; coprime to kReadPieces
        return number * kStep % kReadPieces * phase_.file_bytes;
    }

    [[nodiscard]] bool wait_until(std::uint64_t due) const noexcept {
        for (;;) {
            if (setting_.halted()) return false;
            const std::uint64_t now = since_start();
            if (now >= due) return true;
            if (due - now > kAwakeNs)
                sleep_ns(std::min(due - now - kAwakeNs, kLongestSleepNs));
            else
                rest();
        }
    }

    [[nodiscard]] int operate(std::uint64_t number) noexcept {
        switch (phase_.operation) {
            case ProbeOperation::file_stat:
                return Io::status(directory_.get(), name_.c_str());
            case ProbeOperation::write_fsync: {
                const int error = move(false, data_.get(), number * phase_.file_bytes);
                return error != 0 ? error : Io::synchronise(data_.get());
            }
            case ProbeOperation::file_read:
                return move(true, data_.get(), offset_of(number));
            case ProbeOperation::file_cycle:
                return cycle();
            default:
                return create();
        }
    }

    [[nodiscard]] int create() noexcept {
        const auto [descriptor, error] = Io::open(directory_.get(), name_.c_str(), O_WRONLY | O_CREAT | O_EXCL);
        if (error != 0) return error;
        int written = phase_.file_bytes > 0 ? move(false, descriptor, 0) : 0;
        if (written == 0 && phase_.operation == ProbeOperation::file_fsync) written = Io::synchronise(descriptor);
        const int closed = Io::close(descriptor);
        return written != 0 ? written : closed;
    }

    [[nodiscard]] int cycle() noexcept {
        int error = create();
        if (error == 0) error = Io::status(directory_.get(), name_.c_str());
        return error != 0 ? error : Io::remove_file(directory_.get(), name_.c_str());
    }

    [[nodiscard]] int move(bool reading, int descriptor, std::uint64_t offset) noexcept {
        const int error = move_all<Io>(reading, descriptor, buffer_.bytes(), offset);
        return error == LoopEnd::kEndOfFile ? EIO : error;
    }

    const PhaseSetting& setting_;
    Seat seat_;
    const ProbePhase& phase_;
    std::string directory_name_;
    ItemName name_;
    Handle directory_, data_;
    Buffer buffer_;
    std::uint64_t start_ = 0;
};

}  // namespace

std::unique_ptr<Workload> make_probe(const PhaseSetting& setting, const Seat& seat) {
#ifdef STRAKES_CEPHFS
    if (std::get<ProbePhase>(setting.phase()).backend == Backend::cephfs)
        return std::make_unique<Probe<Ceph>>(setting, seat);
#endif
    return std::make_unique<Probe<Posix>>(setting, seat);
}

}  // namespace strakes
