// Moving data: files opened, transferred in order or shuffled, synchronised and closed as the plan says.
#include "workload/transfer.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "backend/mapped_file.hpp"
#include "backend/posix.hpp"
#include "backend/posix_file.hpp"
#include "backend/stdio_file.hpp"
#include "data/pattern.hpp"
#include "measure/page_cache.hpp"
#include "system/buffer.hpp"
#include "system/bytes.hpp"
#include "workload/entries.hpp"
#include "workload/gathering.hpp"
#include "workload/group.hpp"
#include "workload/order.hpp"
#include "workload/transfer_file.hpp"
#include "workload/transfer_loop.hpp"
#ifdef STRAKES_URING
#include "backend/uring_file.hpp"
#include "workload/transfer_queue.hpp"
#endif
#ifdef STRAKES_CEPHFS
#include "backend/ceph_file.hpp"
#endif

namespace strakes {

namespace {

template <class File, class Io = Posix>
class Transfer final : public Workload {
  public:
    Transfer(const PhaseSetting& setting, const Seat& seat)
        : setting_(setting),
          seat_(seat),
          phase_(std::get<TransferPhase>(setting.phase())),
          set_(setting.state.data.at(phase_.files)),
          owner_(owner_for(seat.rank, phase_.rank_shift, setting.plan.ranks)),
          group_(phase_.writers > 0 ? group_of(phase_, seat.exchange->nodes(), owner_) : Group{}),
          file_(setting, phase_, merged() ? group_.number : owner_, seat.rank),
          own_file_(setting, phase_, own_file_number(), seat.rank) {}

    Outcome lead() override {
        if (phase_.operation != TransferOperation::write) return require_written();
        if (Outcome failure = outcome_of(Io::connect(seat_.rank))) return failure;
        if (shared() && set_.written != nullptr)
            if (Outcome failure = file_.remove()) return failure;
        if (shared() && phase_.preallocate) return file_.allocate(phase_.bytes_per_rank() * setting_.plan.ranks);
        return std::nullopt;
    }

    void declare() override {
        if (!writes_new()) return;
        set_.written = &phase_;
        std::ranges::fill(set_.done, 0);
    }

    Outcome prepare(RankResult& result) override {
        seat_.progress.at("preparing");
        if (Outcome failure = outcome_of(Io::connect(seat_.rank))) return failure;
        if (phase_.operation == TransferOperation::mixed) seat_.latencies.reads = std::make_unique<Histogram>();
        if (Outcome failure = make_buffer()) return failure;
        count_ = accessed_as_written() && !writes_new() ? set_.done[owner_] : region().transfers;
        if (gathers()) note_group();
        if (writes_new() && !shared() && touches_file()) {
            if (Outcome failure = file_.remove()) return failure;
            if (phase_.preallocate)
                if (Outcome failure = file_.allocate(phase_.bytes_per_rank() * (merged() ? group_.size() : 1)))
                    return failure;
        }
        if (phase_.cache == Cache::drop_system && seat_.leads_node) {
            seat_.progress.at("dropping the system's caches");
            if (const int error = drop_system_caches(setting_.root); error != 0)
                return call_failure("drop_caches", "", error);
        }
        if (looks_at_cache() && !(writes_new() && !phase_.preallocate)) {
            seat_.progress.at("dropping cached pages");
            if (Outcome failure =
                    seen_file().look(phase_.cache != Cache::as_is, result.cache, &CacheState::resident_before_bytes))
                return failure;
        }
        if (phase_.cache != Cache::as_is && !seat_.one_process && !shared() && !writes_new() && count_ > 0 &&
            (owner_ != seat_.rank || merged())) {
            // Another node than that of the file's own rank; an earlier phase may have read it here.
            CacheState unused;
            if (Outcome failure = file_.look(true, unused, &CacheState::resident_before_bytes)) return failure;
        }
        if (!opens_file()) result.direct = phase_.direct;
        return phase_.time_open || !opens_file() ? std::nullopt : open(result);
    }

    void run(RankResult& result) override {
        const Clock& clock = setting_.clock;
        result.start = result.end = clock.now();
        if (phase_.time_open && opens_file()) {
            seat_.progress.at("opening");
            result.failure = open(result);
        }
        if (!result.failure) {
            seat_.progress.at("transferring");
            if (gathers())
                gather(result);
            else
                transfer(result);
        }
        // Data that nobody asked for any more is not worth waiting for.
        const bool orderly = !result.failure && !setting_.halted();
        if (orderly && phase_.sync != Sync::none && opens_file()) close(result, phase_.sync == Sync::fsync);
        if (orderly && gathers() && !result.failure) meet_group();
        result.end = clock.now();
    }

    void finish(RankResult& result) override {
        seat_.progress.at("closing");
        if (data_.is_open()) close(result, false);
        if (gathers())
            settle_group();
        else if (writes_new())
            set_.done[owner_] = done_;
        if (looks_at_cache()) {
            Outcome failure = seen_file().look(false, result.cache, &CacheState::resident_after_bytes);
            if (failure && !result.failure) result.failure = std::move(failure);
        }
        buffer_ = Buffer();
    }

    [[nodiscard]] std::string tell() const override {
        if (!writes_new()) return {};
        Packer packer;
        if (!gathers()) {
            packer.put(owner_);
            packer.put(done_);
        } else if (touches_file()) {
            for (const std::uint32_t member : group_.members) {
                packer.put(member);
                packer.put(set_.done[member]);
            }
        }
        return packer.take();
    }

    void learn(std::string_view told) override {
        for (Unpacker unpacker(told); !unpacker.at_end();) {
            const auto owner = unpacker.get<std::uint32_t>();
            set_.done.at(owner) = unpacker.get<std::uint64_t>();
        }
    }

  private:
    [[nodiscard]] bool shared() const noexcept { return phase_.layout == Layout::shared_file; }
    [[nodiscard]] bool writes_new() const noexcept { return phase_.operation == TransferOperation::write; }
    [[nodiscard]] bool merged() const noexcept { return phase_.layout == Layout::file_per_writer; }
    [[nodiscard]] bool gathers() const noexcept { return phase_.gathers(); }
    [[nodiscard]] bool touches_file() const noexcept { return !gathers() || group_.writer() == seat_.rank; }
    // Where nothing of the owner was written there may be no file.
    [[nodiscard]] bool opens_file() const noexcept { return touches_file() && (writes_new() || count_ > 0); }
    // One rank for each file of the set; a shared file may be in the memory of every node.
    [[nodiscard]] bool looks_at_cache() const noexcept {
        if (merged()) return group_of(phase_, seat_.exchange->nodes(), seat_.rank).writer() == seat_.rank;
        return shared() ? seat_.leads_node : writes_new() || set_.done[seat_.rank] > 0;
    }
    [[nodiscard]] std::uint32_t own_file_number() const { return file_of(phase_, seat_.exchange->nodes(), seat_.rank); }
    // The one that this rank looks at: in a write phase its own work, since other ranks may not have made theirs yet.
    [[nodiscard]] const TransferFile<Io>& seen_file() const noexcept { return writes_new() ? file_ : own_file_; }
    [[nodiscard]] Region region() const noexcept { return region_of_owner(owner_); }
    [[nodiscard]] Region region_of_owner(std::uint32_t owner) const noexcept {
        return merged() ? region_of(phase_, group_.size(), group_.place_of(owner))
                        : region_of(phase_, setting_.plan.ranks, owner);
    }
    [[nodiscard]] Stream stream() const noexcept {
        const std::uint32_t file = merged() ? group_.number : owner_;
        return stream_of(setting_.plan.seed, (std::uint64_t{set_.number} << 32U) + (shared() ? 0 : file));
    }
    [[nodiscard]] Content content() const noexcept {
        return {.stream = stream(),
                .compressible_percent = phase_.compressible_percent,
                .duplicate_percent = phase_.duplicate_percent};
    }
    [[nodiscard]] FileUse use() const noexcept {
        using enum TransferOperation;
        // Of a group the first and the last of its members.
        const Region first = gathers() ? regions_.front() : region();
        const Region last = gathers() ? regions_.back() : first;
        const std::uint64_t runs = last.transfers * last.transfer_bytes / last.run_bytes;
        return {.reads = phase_.operation == read || phase_.operation == mixed,
                .writes = phase_.operation != read,
                .begin = first.base,
                .end = last.base + (runs - 1) * last.stride + last.run_bytes};
    }
    [[nodiscard]] Outcome outcome_of(const FileStep& step) const {
        return step.error == 0 ? std::nullopt : Outcome(call_failure(step.call, file_.path(), step.error));
    }
    [[nodiscard]] bool accessed_as_written() const noexcept { return same_geometry(*set_.written, phase_); }
    [[nodiscard]] bool complete() const noexcept {
        const std::uint64_t all = set_.written->bytes_per_rank() / set_.written->transfer_bytes;
        return std::ranges::all_of(set_.done, [all](std::uint64_t done) { return done == all; });
    }

    [[nodiscard]] Outcome require_written() const {
        if (accessed_as_written() || complete()) return std::nullopt;
        return Failure{.what = "the files '" + phase_.files + "' were not written to the end, and phase '" +
                               phase_.name + "' does not access them as phase '" + set_.written->name + "' wrote them",
                       .path = {},
                       .operation = {},
                       .why = "the write phase ended early; only what it wrote may be touched",
                       .error_name = {},
                       .remedy =
                           "Use the access, transfer_bytes, block_bytes and segments of the write phase, or give that "
                           "phase the rule amount."};
    }

    Outcome make_buffer() {
        const std::uint64_t bytes = buffer_bytes_of(phase_);
        buffer_ = Buffer::of(bytes);
        if (buffer_.empty()) {
            Failure failure = call_failure("mmap", "", ENOMEM);
            failure.what = "there is no memory for a buffer of " + std::to_string(bytes) + " bytes";
            return failure;
        }
        if (phase_.operation != TransferOperation::read) fill(buffer_.bytes(), content(), 0);
        return outcome_of(data_.prepare(buffer_.bytes(), phase_.queue_depth));
    }

    Outcome open(RankResult& result) {
        const std::uint64_t before = setting_.clock.now();
        typename Io::Handle descriptor;
        Outcome failure = file_.open(open_flags(), descriptor);
        if (!failure) failure = file_.check_flags(descriptor.get(), result.direct);
        if (!failure) failure = outcome_of(data_.attach(std::move(descriptor), use()));
        result.open = elapsed(before, setting_.clock.now());
        return failure;
    }

    [[nodiscard]] int open_flags() const noexcept {
        using enum TransferOperation;
        int flags = O_RDONLY;
        if (use().writes) flags = use().reads || File::kWritingReads ? O_RDWR : O_WRONLY;
        if (phase_.operation == write) flags |= O_CREAT;
        // In a shared file all but the first find it there.
        if (phase_.operation == write && !shared() && !phase_.preallocate) flags |= O_EXCL;
        return phase_.direct ? flags | O_DIRECT : flags;
    }

    void close(RankResult& result, bool synchronise) {
        const std::uint64_t before = setting_.clock.now();
        FileStep step;
        if (synchronise) {
            seat_.progress.at("synchronising");
            step = data_.synchronise();
        }
        seat_.progress.at("closing");
        const FileStep closed = data_.close();
        if (step.error == 0) step = closed;
        result.close = elapsed(before, setting_.clock.now());
        if (!result.failure) result.failure = outcome_of(step);
    }

    void transfer(RankResult& result) {
        using enum TransferOperation;
        const std::uint64_t deadline = deadline_after(setting_.clock, result.start, phase_.stop);
        const LoopSetting loop{.setting = setting_,
                               .seat = seat_,
                               .buffer = buffer_.bytes(),
                               .content = content(),
                               .count = count_,
                               .read_percent = phase_.operation == read ? 100 : phase_.read_percent.value_or(0),
                               .choice_key = key(setting_.index + 1),
                               .stamp = phase_.pattern == Pattern::stamped,
                               .verify = phase_.verify,
                               .repeat = phase_.stop.rule == StopRule::seconds,
                               .delay_ns = phase_.delay_ns,
                               .deadline = deadline,
                               .pace = setting_.pace(result.start, deadline, setting_.plan.ranks)};
        LoopEnd end;
        if (phase_.access == Access::random_whole)
            end = run_loop(loop, anywhere(), result);
        else if (phase_.access != Access::random)
            end = run_loop(loop, InOrder(region()), result);
        else
            end = run_loop(loop, shuffled(), result);
        done_ = end.in_order;
        if (end.failed) result.failure = describe(end, file_.path());
    }

    void note_group() {
        regions_.clear();
        for (const std::uint32_t member : group_.members) regions_.push_back(region_of_owner(member));
        members_done_.assign(group_.size(), 0);
        if (touches_file()) seat_.latencies.waits = std::make_unique<Histogram>();
    }

    [[nodiscard]] GatherSetting gather_setting(std::uint64_t start) const {
        return {.setting = setting_,
                .seat = seat_,
                .phase = phase_,
                .group = group_,
                .regions = regions_,
                .buffer = buffer_.bytes(),
                .content = content(),
                .deadline = deadline_after(setting_.clock, start, phase_.stop)};
    }

    void gather(RankResult& result) {
        const GatherSetting setting = gather_setting(result.start);
        if (!touches_file()) {
            send_pieces(setting, result);
        } else if constexpr (!File::kQueues) {
            const LoopEnd end = write_pieces(setting, data_, members_done_, result);
            if (end.failed) result.failure = describe(end, file_.path());
        }
    }

    // A member has done its part when the file is what the phase asked for.
    void meet_group() {
        const GatherSetting setting = gather_setting(0);
        if (touches_file())
            release_members(setting);
        else
            wait_for_writer(setting);
    }

    void settle_group() {
        seat_.exchange->settle();
        if (!touches_file()) return;
        for (std::uint32_t place = 0; place < group_.size(); ++place)
            set_.done[group_.members[place]] = members_done_[place];
    }

    template <class Order>
    LoopEnd run_loop(const LoopSetting& loop, Order order, RankResult& result) noexcept {
        if constexpr (File::kQueues)
            return QueuedLoop<File, Order>(loop, data_, order, result).run();
        else
            return transfer_loop(loop, data_, order, result);
    }

    // A new file is written in the set's own order; later phases have an order of their own over what there is.
    [[nodiscard]] Shuffled shuffled() const noexcept {
        const Permutation as_written(region().transfers, key(0));
        if (writes_new()) return {region(), as_written};
        const Permutation own(std::max<std::uint64_t>(count_, 1), key(setting_.index + 1));
        if (count_ == region().transfers) return {region(), own};
        return {region(), own, as_written};
    }
    // The first `count_` transfers of a seeded order of the rank's own over the whole file.
    [[nodiscard]] Shuffled anywhere() const noexcept {
        Region file = region();
        file.transfers = set_.written->bytes_per_rank() * setting_.plan.ranks / phase_.transfer_bytes;
        return {file, Permutation(file.transfers, key(setting_.index + 1))};
    }
    [[nodiscard]] std::uint64_t key(std::uint64_t purpose) const noexcept {
        return mix(mix(mix(setting_.plan.seed) + set_.number) + owner_) + mix(purpose);
    }

    const PhaseSetting& setting_;
    Seat seat_;
    const TransferPhase& phase_;
    DataSet& set_;
    std::uint32_t owner_;
    Group group_;  // of the owner, where there are writers
    TransferFile<Io> file_, own_file_;
    Buffer buffer_;
    File data_;
    std::uint64_t count_ = 0;
    std::uint64_t done_ = 0;
    std::vector<Region> regions_;              // of the members, where this phase gathers
    std::vector<std::uint64_t> members_done_;  // their transfers
};

}  // namespace

std::unique_ptr<Workload> make_transfer(const PhaseSetting& setting, const Seat& seat) {
    switch (std::get<TransferPhase>(setting.phase()).backend) {
        case Backend::stdio:
            return std::make_unique<Transfer<StdioFile>>(setting, seat);
        case Backend::mmap:
            return std::make_unique<Transfer<MappedFile>>(setting, seat);
#ifdef STRAKES_URING
        case Backend::uring:
            return std::make_unique<Transfer<UringFile>>(setting, seat);
#endif
#ifdef STRAKES_CEPHFS
        case Backend::cephfs:
            return std::make_unique<Transfer<CephFile, Ceph>>(setting, seat);
#endif
        default:
            return std::make_unique<Transfer<PosixFile>>(setting, seat);
    }
}

}  // namespace strakes
