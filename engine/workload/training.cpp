// Training without an accelerator: readers fetch batches of samples. The rank takes the batches in order and sleeps for
// the accelerator's computing time.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <mutex>
#include <span>
#include <system_error>
#include <thread>
#include <vector>

#include "backend/posix.hpp"
#include "measure/page_cache.hpp"
#include "system/buffer.hpp"
#include "system/descriptor.hpp"
#include "workload/plan_state.hpp"
#include "workload/samples.hpp"
#include "workload/transfer_loop.hpp"
#include "workload/workload.hpp"

namespace strakes {

namespace {

constexpr std::uint64_t kMostLookedAt = 1024;  // maximum number of files whose cached pages are counted
constexpr std::uint64_t kSettling = 1;         // number of first steps that utilisation excludes
constexpr std::uint64_t kLongestNapNs = 100'000'000;

struct Read {
    std::uint64_t slowest = 0;
    std::uint64_t verified_bytes = 0;
    std::uint64_t held_ns = 0;
};

class Training final : public Workload {
  public:
    Training(const PhaseSetting& setting, const Seat& seat)
        : setting_(setting),
          seat_(seat),
          phase_(std::get<TrainingPhase>(setting.phase())),
          rule_(phase_, setting.plan, setting.state.samples.at(phase_.files)),
          key_(rule_.key_of_phase(setting.index)),
          order_(phase_, setting.plan.ranks, seat.rank, key_) {}

    Outcome lead() override { return generates() ? make_directories() : std::nullopt; }

    Outcome prepare(RankResult& result) override {
        seat_.progress.at("preparing");
        const auto [descriptor, error] = Posix::enter(setting_.root, entry_of(phase_, 0).c_str());
        if (error != 0) return call_failure("open", setting_.path_of(entry_of(phase_, 0)), error);
        directory_ = Descriptor(descriptor);
        const std::uint64_t buffers = generates() ? 1 : std::max<std::uint64_t>(phase_.readers, 1);
        for (std::uint64_t reader = 0; reader < buffers; ++reader) {
            if (Outcome failure = setting_.make(buffers_.emplace_back(), buffer_bytes_of(phase_))) return failure;
        }
        if (generates()) return std::nullopt;
        seat_.latencies.waits = std::make_unique<Histogram>();
        if (!seat_.leads_node) return std::nullopt;
        if (phase_.cache == Cache::drop_system)
            if (const int failed = drop_system_caches(setting_.root); failed != 0)
                return call_failure("drop_caches", "", failed);
        if (phase_.cache != Cache::as_is)
            if (Outcome failure = drop()) return failure;
        return look(result.cache, &CacheState::resident_before_bytes);
    }

    void run(RankResult& result) override {
        result.start = result.end = setting_.clock.now();
        if (generates())
            generate(result);
        else
            train(result);
        result.operations = samples_;
        result.bytes = bytes_;
        result.end = setting_.clock.now();
        if (failure_) result.failure = std::move(failure_);
    }

    void finish(RankResult& result) override {
        seat_.progress.at("closing");
        if (!generates() && seat_.leads_node) {
            Outcome failure = look(result.cache, &CacheState::resident_after_bytes);
            if (failure && !result.failure) result.failure = std::move(failure);
        }
        buffers_.clear();
        directory_ = Descriptor();
    }

  private:
    [[nodiscard]] bool generates() const noexcept { return phase_.operation == TrainingOperation::generate; }
    [[nodiscard]] std::string shown(std::uint64_t file) const {
        return setting_.path_of(entry_of(phase_, 0) + "/" + rule_.path_of(file));
    }
    [[nodiscard]] bool over() const noexcept { return failed_.load(std::memory_order_relaxed) || setting_.halted(); }

    [[nodiscard]] Outcome make_directories() const {
        const std::string top = entry_of(phase_, 0);
        if (const int error = Posix::make_directory(setting_.root, top.c_str()); error != 0)
            return call_failure("mkdir", setting_.path_of(top), error);
        for (std::uint64_t i = 0; i < phase_.subdirectories; ++i) {
            const std::string below = top + "/s" + std::to_string(i);
            if (const int error = Posix::make_directory(setting_.root, below.c_str()); error != 0)
                return call_failure("mkdir", setting_.path_of(below), error);
        }
        return std::nullopt;
    }

    Outcome open(std::uint64_t file, int flags, Descriptor& into) const {
        const auto [descriptor, error] = Posix::open(directory_.get(), rule_.path_of(file).c_str(), flags | O_NOFOLLOW);
        if (error != 0) return call_failure("open", shown(file), error);
        into = Descriptor(descriptor);
        return std::nullopt;
    }

    [[nodiscard]] Outcome drop() const {
        seat_.progress.at("dropping cached pages");
        for (std::uint64_t file = 0; file < phase_.file_count && !setting_.halted(); ++file) {
            Descriptor descriptor;
            if (Outcome failure = open(file, O_RDONLY, descriptor)) return failure;
            // Dirty pages cannot be dropped.
            if (::fdatasync(descriptor.get()) != 0) return call_failure("fdatasync", shown(file), errno);
            if (const int error = ::posix_fadvise(descriptor.get(), 0, 0, POSIX_FADV_DONTNEED); error != 0)
                return call_failure("posix_fadvise", shown(file), error);
        }
        return std::nullopt;
    }

    // Count cached pages. If there are more than kMostLookedAt files, a random sample is examined, with the error of a
    // binomial proportion.
    Outcome look(CacheState& cache, std::uint64_t CacheState::* resident) const {
        const Permutation drawn(phase_.file_count, key_ + 1);
        const std::uint64_t count = std::min(phase_.file_count, kMostLookedAt);
        std::uint64_t seen_bytes = 0, resident_bytes = 0;
        std::string method = "none";
        for (std::uint64_t i = 0; i < count && !setting_.halted(); ++i) {
            const std::uint64_t file = drawn(i);
            Descriptor descriptor;
            if (Outcome failure = open(file, O_RDONLY, descriptor)) return failure;
            const Residency seen = residency(descriptor.get(), rule_.file_bytes(file));
            method = seen.method;
            seen_bytes += seen.file_bytes;
            resident_bytes += seen.resident_bytes;
        }
        if (seen_bytes == 0) return std::nullopt;
        const double share = static_cast<double>(resident_bytes) / static_cast<double>(seen_bytes);
        const bool all = count == phase_.file_count;
        const double whole = all ? static_cast<double>(seen_bytes)
                                 : static_cast<double>(phase_.samples()) * static_cast<double>(phase_.sample_bytes);
        cache.method = all ? method : method + "-sample";
        cache.file_bytes = static_cast<std::uint64_t>(whole);
        cache.*resident = all ? resident_bytes : static_cast<std::uint64_t>(share * whole);
        constexpr double kTwoSided95 = 1.96;
        const double error = kTwoSided95 * std::sqrt(share * (1 - share) / static_cast<double>(count));
        if (!all) cache.error_bytes = std::max(cache.error_bytes, static_cast<std::uint64_t>(error * whole));
        return std::nullopt;
    }

    void fail(Failure failure) {
        const std::scoped_lock lock(mutex_);
        if (!failure_) failure_ = std::move(failure);
        failed_.store(true, std::memory_order_relaxed);
    }
    void count(std::uint64_t samples, std::uint64_t bytes, std::uint64_t took) {
        const std::scoped_lock lock(mutex_);
        seat_.latencies.calls.record(setting_.clock.to_ns(took));
        samples_ += samples;
        bytes_ += bytes;
        seat_.progress.publish(samples_, bytes_);
    }

    void generate(RankResult& result) {
        seat_.progress.at("generating");
        Pace pace = setting_.pace(result.start, setting_.plan.ranks);
        for (std::uint64_t file = seat_.rank; file < phase_.file_count && !over(); file += setting_.plan.ranks) {
            const std::uint64_t before = setting_.clock.now();
            if (Outcome failure = write(file)) return fail(std::move(*failure));
            const std::uint64_t now = setting_.clock.now();
            const std::uint64_t took = elapsed(before, now);
            result.slowest = std::max(result.slowest, took);
            count(phase_.samples_per_file, rule_.file_bytes(file), took);
            if (!pace.on()) continue;
            static_cast<void>(pace.hold(now, {.operations = 1, .bytes = rule_.file_bytes(file), .ticks = took}));
            result.held_ns = pace.held_ns();
        }
    }

    Outcome write(std::uint64_t file) const {
        Descriptor descriptor;
        if (Outcome failure = open(file, O_WRONLY | O_CREAT | O_EXCL, descriptor)) return failure;
        const std::span<std::byte> buffer = buffers_.front().bytes();
        const Stream stream = rule_.stream_of(file);
        const std::uint64_t end = rule_.file_bytes(file);
        for (std::uint64_t at = 0; at < end && !setting_.halted();) {
            const auto piece = buffer.first(std::min<std::uint64_t>(buffer.size(), end - at));
            fill(piece, stream, at);
            LoopEnd moved;
            moved.offset = at;
            moved.error = move_all<Posix>(false, descriptor.get(), piece, moved.offset);
            if (moved.error != 0) return describe(moved, shown(file));
            at += piece.size();
        }
        const int error = Posix::close(descriptor.release());
        return error == 0 ? std::nullopt : Outcome(call_failure("close", shown(file), error));
    }

    void train(RankResult& result) {
        const std::uint64_t steps = phase_.steps > 0 ? phase_.steps : phase_.most_steps(setting_.plan.ranks);
        seat_.progress.at("training");
        Batches batches(steps, phase_.ahead());
        std::vector<Read> reads(buffers_.size());
        std::vector<std::thread> readers;
        try {
            for (std::uint64_t reader = 0; reader < phase_.readers; ++reader)
                readers.emplace_back([&, reader] { bring(batches, reader, reads[reader], result.start); });
        } catch (const std::system_error& error) {
            fail(call_failure("pthread_create", "", error.code().value()));
        }
        Pace own = setting_.pace(result.start, setting_.plan.ranks);
        take_steps(steps, batches, own, reads.front(), result);
        for (std::thread& reader : readers) reader.join();
        for (const Read& read : reads) {
            result.slowest = std::max(result.slowest, read.slowest);
            result.verified_bytes += read.verified_bytes;
            result.held_ns += read.held_ns;
        }
    }

    // The accelerator's steps. Utilisation is defined as in DLIO (statscounter.py, compute_metrics_train) and MLPerf
    // Storage: computing time divided by the time from the end of the first step to the end of the last.
    void take_steps(std::uint64_t steps, Batches& batches, Pace& own, Read& read, RankResult& result) {
        const Clock& clock = setting_.clock;
        const auto over_now = [this] { return over(); };
        std::uint64_t counted_from = result.start, counted_ns = 0;
        std::uint64_t now = result.start;
        Trained& trained = result.trained;
        trained.ranks = 1;
        for (std::uint64_t step = 0; step < steps; ++step) {
            const std::uint64_t asked = now;
            if (phase_.readers == 0 ? !bring_one(step, 0, own, read) : !batches.next(over_now)) break;
            const std::uint64_t begun = clock.now();
            const std::uint64_t waited = clock.to_ns(elapsed(asked, begun));
            seat_.latencies.waits->record(waited);
            compute(begun, compute_ns_of(phase_, key_, seat_.rank, step));
            now = clock.now();
            const std::uint64_t computed = clock.to_ns(elapsed(begun, now));
            ++trained.steps;
            trained.wait_ns += waited;
            trained.compute_ns += computed;
            if (steps > kSettling && step < kSettling)
                counted_from = now;
            else
                counted_ns += computed;
        }
        const std::uint64_t whole_ns = clock.to_ns(elapsed(counted_from, now));
        if (whole_ns > 0 && phase_.compute_ns > 0)
            trained.utilisation = static_cast<double>(counted_ns) / static_cast<double>(whole_ns);
    }

    void compute(std::uint64_t since, std::uint64_t ns) const {
        const Clock& clock = setting_.clock;
        while (!over()) {
            const std::uint64_t gone = clock.to_ns(elapsed(since, clock.now()));
            if (gone >= ns) return;
            std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(ns - gone, kLongestNapNs)));
        }
    }

    // A reader: fetch batches until no batch is left, waiting for room in the queue.
    void bring(Batches& batches, std::uint64_t reader, Read& read, std::uint64_t start) {
        Pace pace = setting_.pace(start, static_cast<std::uint32_t>(setting_.plan.ranks * phase_.readers));
        while (const auto batch = batches.take([this] { return over(); })) {
            if (!bring_one(*batch, reader, pace, read)) return;
            batches.put(*batch);
        }
    }

    bool bring_one(std::uint64_t batch, std::uint64_t reader, Pace& pace, Read& read) {
        Descriptor descriptor;
        std::uint64_t is_open = phase_.file_count;
        for (std::uint64_t i = 0; i < phase_.batch_samples; ++i) {
            if (over()) return false;
            const Sample sample = order_.at(batch, i);
            const std::uint64_t before = setting_.clock.now();
            Outcome failure;
            if (sample.file != is_open) failure = open(sample.file, O_RDONLY, descriptor);
            is_open = sample.file;
            if (!failure) failure = read_sample(descriptor.get(), sample, buffers_[reader].bytes(), read);
            if (failure) {
                fail(std::move(*failure));
                return false;
            }
            const std::uint64_t now = setting_.clock.now();
            const std::uint64_t took = elapsed(before, now);
            const std::uint64_t bytes = rule_.size_of(sample.file);
            read.slowest = std::max(read.slowest, took);
            count(1, bytes, took);
            if (!pace.on()) continue;
            static_cast<void>(pace.hold(now, {.operations = 1, .bytes = bytes, .ticks = took}));
            read.held_ns = pace.held_ns();
        }
        return true;
    }

    Outcome read_sample(int descriptor, const Sample& sample, std::span<std::byte> buffer, Read& read) const {
        const std::uint64_t bytes = rule_.size_of(sample.file);
        const std::uint64_t end = (sample.place + 1) * bytes;
        const Stream stream = phase_.verify ? rule_.stream_of(sample.file) : Stream{};
        for (std::uint64_t at = sample.place * bytes; at < end;) {
            const auto piece = buffer.first(std::min<std::uint64_t>(buffer.size(), end - at));
            LoopEnd moved;
            moved.reading = true;
            moved.offset = at;
            moved.error = move_all<Posix>(true, descriptor, piece, moved.offset);
            if (moved.error == 0 && phase_.verify) moved.mismatch = verify(piece, stream, at);
            if (moved.error != 0 || moved.mismatch) return describe(moved, shown(sample.file));
            if (phase_.verify) read.verified_bytes += piece.size();
            at += piece.size();
        }
        return std::nullopt;
    }

    const PhaseSetting& setting_;
    Seat seat_;
    const TrainingPhase& phase_;
    SampleRule rule_;
    std::uint64_t key_;
    EpochOrder order_;
    Descriptor directory_;
    std::vector<Buffer> buffers_;
    std::mutex mutex_;
    std::uint64_t samples_ = 0, bytes_ = 0;
    Outcome failure_;  // first failure of any reader
    std::atomic<bool> failed_{false};
};

}  // namespace

std::unique_ptr<Workload> make_training(const PhaseSetting& setting, const Seat& seat) {
    return std::make_unique<Training>(setting, seat);
}

}  // namespace strakes
