// Transfers of data: opens files, moves data in the order of the plan, synchronises and closes.
#include <fcntl.h>

#include <vector>

#include "backend/file.hpp"
#include "backend/mapped_file.hpp"
#include "backend/posix.hpp"
#include "backend/raw.hpp"
#include "backend/stdio_file.hpp"
#include "workload/transfer_base.hpp"
#include "workload/workload.hpp"
#ifdef STRAKES_URING
#include "backend/uring_file.hpp"
#include "workload/transfer_queue.hpp"
#endif
#ifdef STRAKES_CEPHFS
#include "backend/ceph.hpp"
#endif
#ifdef STRAKES_S3
#include "backend/s3.hpp"
#endif

namespace strakes {

namespace {

template <class File, class Io = Posix>
class Transfer : public TransferBase {
  public:
    Transfer(const PhaseSetting& setting, const Seat& seat)
        : TransferBase(setting, seat),
          file_(setting, phase_, file_number(), seat.rank),
          own_file_(setting, phase_, own_file_number(), seat.rank) {}

    Outcome lead() override { return lead_with(file_); }

    Outcome prepare(RankResult& result) override {
        seat_.progress.at("preparing");
        if (Outcome failure = outcome_of(Io::connect(seat_.rank))) return failure;
        if (Outcome failure = make_buffer()) return failure;
        if (Outcome failure = outcome_of(data_.prepare(buffer_.bytes(), phase_.queue_depth))) return failure;
        count_ = count();
        if (gathers()) note_group();
        if (Outcome failure = prepare_files(file_, seen_file(), result.cache)) return failure;
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
        wear_out_.agree(0);  // Other ranks wait for this call, even if this rank could not open the file.
        // After a failure or a halt, do not wait until data is written back.
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
        else
            note(result);
        if (looks_at_cache()) {
            Outcome failure = seen_file().look(false, result.cache, &CacheState::resident_after_bytes);
            if (failure && !result.failure) result.failure = std::move(failure);
        }
        buffer_ = Buffer();
    }

    [[nodiscard]] std::string tell() const override {
        if (!gathers()) return TransferBase::tell();
        if (!touches_file()) return {};
        Packer packer;
        for (const std::uint32_t member : group_.members) put(packer, member);
        return packer.take();
    }

  private:
    [[nodiscard]] bool gathers() const noexcept { return phase_.gathers(); }
    // The file might not exist if the owner's data was never written.
    [[nodiscard]] bool opens_file() const noexcept { return touches_file() && (writes_new() || count_ > 0); }
    // The file whose cache this rank examines: in a write phase the written file, because others may not exist yet.
    [[nodiscard]] const TransferFile<Io>& seen_file() const noexcept { return writes_new() ? file_ : own_file_; }
    [[nodiscard]] FileUse use() const noexcept {
        using enum TransferOperation;
        if (phase_.access == Access::random_whole) {
            return {.reads = true,
                    .writes = false,
                    .begin = 0,
                    .end = set_.written->bytes_per_rank() * setting_.plan.ranks};
        }
        // The regions of the first and the last member of a group.
        const Region first = gathers() ? regions_.front() : region();
        const Region last = gathers() ? regions_.back() : first;
        const std::uint64_t runs = last.transfers * last.transfer_bytes / last.run_bytes;
        return {.reads = phase_.operation == read || phase_.operation == mixed,
                .writes = phase_.operation != read,
                .begin = first.base,
                .end = last.base + (runs - 1) * last.stride + last.run_bytes};
    }
    [[nodiscard]] Outcome outcome_of(const FileStep& step) const {
        return TransferBase::outcome_of(step, file_.path());
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
        // A shared file may exist already, created by another rank.
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
        const LoopSetting loop = loop_setting(result);
        const LoopEnd end = in_their_order([&](const auto& order) { return run_loop(loop, order, result); });
        done_ = end.in_order;
        if (end.failed) result.failure = describe(end, file_.path());
        wear_out_.agree(done_);  // Wakes the other ranks if this rank finished early.
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

    // A member has finished when the writer has closed the file.
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
        for (std::uint32_t place = 0; place < group_.size(); ++place) {
            set_.done[group_.members[place]] = members_done_[place];
            set_.ages[group_.members[place]] = {.oldest = set_.age, .newest = set_.age};
        }
    }

    template <class Order>
    LoopEnd run_loop(const LoopSetting& loop, Order order, RankResult& result) {
        if constexpr (File::kQueues)
            return QueuedLoop<File, Order>(loop, data_, order, result).run();
        else
            return transfer_loop(loop, data_, order, result);
    }

    TransferFile<Io> file_, own_file_;
    File data_;
    std::vector<Region> regions_;  // regions of the members, if this phase gathers
    std::vector<std::uint64_t> members_done_;
};

}  // namespace

std::unique_ptr<Workload> make_transfer(const PhaseSetting& setting, const Seat& seat) {
    switch (std::get<TransferPhase>(setting.phase()).backend) {
        case Backend::raw:
            return std::make_unique<Transfer<CallFile<Raw>>>(setting, seat);
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
            return std::make_unique<Transfer<CallFile<Ceph>, Ceph>>(setting, seat);
#endif
#ifdef STRAKES_S3
        case Backend::s3:
            return std::make_unique<Explained<Transfer<S3File, S3>, S3>>(setting, seat);
#endif
        case Backend::mpiio:
        case Backend::hdf5:
        case Backend::pnetcdf:
            return make_library_transfer(setting, seat);
        default:
            return std::make_unique<Transfer<CallFile<Posix>>>(setting, seat);
    }
}

}  // namespace strakes
