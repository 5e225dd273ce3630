// Common parts of all transfers, whatever the interface: the rank's part of a file, the order of its transfers, and the
// state left for later phases.
#pragma once

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>

#include "data/pattern.hpp"
#include "measure/page_cache.hpp"
#include "system/buffer.hpp"
#include "system/bytes.hpp"
#include "workload/gathering.hpp"
#include "workload/order.hpp"
#include "workload/plan_state.hpp"
#include "workload/transfer_file.hpp"
#include "workload/transfer_loop.hpp"

namespace strakes {

class TransferBase : public Workload {
  public:
    void declare() override {
        if (phase_.operation == TransferOperation::read) return;
        set_.before = set_.ages_of_all();
        set_.age = set_.written == nullptr || !set_.renews ? 0 : set_.before.newest + 1;
        if (!writes_new()) return;
        set_.written = &phase_;
        std::ranges::fill(set_.done, 0);
    }

    [[nodiscard]] std::string tell() const override {
        if (!writes_new() && !(writes() && set_.renews)) return {};
        Packer packer;
        put(packer, owner_);
        return packer.take();
    }

    void learn(std::string_view told) override {
        for (Unpacker unpacker(told); !unpacker.at_end();) {
            const auto owner = unpacker.get<std::uint32_t>();
            set_.done.at(owner) = unpacker.get<std::uint64_t>();
            set_.ages.at(owner) = unpacker.get<Ages>();
        }
    }

  protected:
    TransferBase(const PhaseSetting& setting, const Seat& seat)
        : setting_(setting),
          seat_(seat),
          phase_(std::get<TransferPhase>(setting.phase())),
          set_(setting.state.data.at(phase_.files)),
          owner_(owner_for(seat.rank, phase_.rank_shift, setting.plan.ranks)),
          group_(phase_.writers > 0 ? group_of(phase_, seat.exchange->nodes(), owner_) : Group{}),
          wear_out_(seat, phase_.stop) {}

    [[nodiscard]] bool shared() const noexcept { return phase_.layout == Layout::shared_file; }
    [[nodiscard]] bool writes_new() const noexcept { return phase_.operation == TransferOperation::write; }
    [[nodiscard]] bool writes() const noexcept { return phase_.operation != TransferOperation::read; }
    [[nodiscard]] bool merged() const noexcept { return phase_.layout == Layout::file_per_writer; }
    [[nodiscard]] bool touches_file() const noexcept {
        return phase_.takes_part(owner_) && (!phase_.gathers() || group_.writer() == seat_.rank);
    }
    // Return whether this rank examines the cache: one rank per file of the set, but one rank per node for a shared
    // file, which every node may cache.
    [[nodiscard]] bool looks_at_cache() const noexcept {
        if (merged()) return group_of(phase_, seat_.exchange->nodes(), seat_.rank).writer() == seat_.rank;
        return shared() ? seat_.leads_node : writes_new() ? touches_file() : set_.done[seat_.rank] > 0;
    }
    [[nodiscard]] std::uint32_t file_number() const { return merged() ? group_.number : owner_; }
    [[nodiscard]] std::uint32_t own_file_number() const { return file_of(phase_, seat_.exchange->nodes(), seat_.rank); }
    [[nodiscard]] Region region() const noexcept { return region_of_owner(owner_); }
    [[nodiscard]] Region region_of_owner(std::uint32_t owner) const noexcept {
        return merged() ? region_of(phase_, group_.size(), group_.place_of(owner))
                        : region_of(phase_, setting_.plan.ranks, owner);
    }
    [[nodiscard]] Content content() const noexcept {
        const std::uint64_t file = shared() ? 0 : file_number();
        return {.stream = stream_of(setting_.plan.seed, setting_.plan.salt, (std::uint64_t{set_.number} << 32U) + file),
                .compressible_percent = phase_.compressible_percent,
                .duplicate_percent = phase_.duplicate_percent,
                .age = set_.age,
                .oldest = set_.age};
    }
    // Return the range of ages that a read may find, including ages that this phase may write meanwhile.
    [[nodiscard]] Content found() const noexcept {
        constexpr std::uint64_t kMostPasses = std::uint64_t{1} << 32U;
        const Ages there = shared() || merged() ? set_.ages_of_all() : set_.ages[owner_];
        Content content = this->content();
        content.oldest = there.oldest;
        content.age = writes() && set_.renews ? set_.age + kMostPasses : there.newest;
        return content;
    }
    void put(Packer& packer, std::uint32_t owner) const {
        packer.put(owner);
        packer.put(set_.done[owner]);
        packer.put(set_.ages[owner]);
    }
    void note(const RankResult& result) {
        if (writes_new()) set_.done[owner_] = done_;
        note_ages(result.operations);
    }
    void note_ages(std::uint64_t transfers) {
        if (!writes() || !set_.renews || count_ == 0) return;
        Ages& ages = set_.ages[owner_];
        const std::uint64_t passes = transfers / count_;
        const bool even = transfers % count_ == 0;
        if (transfers > 0) ages.newest = set_.age + passes - (even ? 1 : 0);
        if (writes_new() && passes == 0)
            ages.oldest = set_.age;
        else if (passes > 0 && covers())
            ages.oldest = ages.newest - (even ? 0 : 1);
        else if (shared() || merged())
            ages.oldest = set_.before.oldest;  // Other ranks wrote parts in earlier phases.
    }
    // Return whether each pass writes all existing data of the owner's part.
    [[nodiscard]] bool covers() const noexcept {
        return writes_new() || (phase_.operation == TransferOperation::rewrite && phase_.access != Access::draws &&
                                count_ * phase_.transfer_bytes == set_.done[owner_] * set_.written->transfer_bytes);
    }
    [[nodiscard]] bool accessed_as_written() const noexcept { return same_geometry(*set_.written, phase_); }
    [[nodiscard]] std::uint64_t count() const noexcept {
        if (writes_new()) return phase_.takes_part(owner_) ? region().transfers : 0;
        if (accessed_as_written()) return set_.done[owner_];
        if (!reads_the_front()) return region().transfers;
        return std::min(region().transfers, set_.done[owner_] * set_.written->transfer_bytes / phase_.transfer_bytes);
    }
    // Return whether the written data is a prefix of the rank's part, and this phase works on a prefix of this data.
    [[nodiscard]] bool reads_the_front() const noexcept {
        if (set_.written->access != Access::segmented || merged() || set_.written->gathers()) return false;
        if (phase_.access != Access::segmented && phase_.access != Access::random) return false;
        return !shared() || set_.written->bytes_per_rank() == phase_.bytes_per_rank();
    }

    [[nodiscard]] Outcome require_written() const {
        const std::uint64_t all = set_.written->bytes_per_rank() / set_.written->transfer_bytes;
        const bool complete = std::ranges::all_of(set_.done, [all](std::uint64_t done) { return done == all; });
        if (accessed_as_written() || reads_the_front() || complete) return std::nullopt;
        return Failure{.what = "the files '" + phase_.files + "' were not written to the end, and phase '" +
                               phase_.name + "' does not access them as phase '" + set_.written->name + "' wrote them",
                       .why = "the write phase ended early; only what it wrote may be touched",
                       .remedy =
                           "Use the access, transfer_bytes, block_bytes and segments of the write phase, or give that "
                           "phase the rule amount."};
    }

    // Steps of rank 0 before the other ranks prepare.
    template <class Io>
    [[nodiscard]] Outcome lead_with(const TransferFile<Io>& file) const {
        if (!writes_new()) return require_written();
        if (Outcome failure = outcome_of(Io::connect(seat_.rank), file.path())) return failure;
        if (shared() && set_.written != nullptr)
            if (Outcome failure = file.remove()) return failure;
        if (shared() && phase_.preallocate) return file.allocate(phase_.bytes_per_rank() * setting_.plan.ranks);
        return std::nullopt;
    }

    // `seen`: the file whose cache this rank examines.
    template <class Io>
    [[nodiscard]] Outcome prepare_files(const TransferFile<Io>& file, const TransferFile<Io>& seen,
                                        CacheState& cache) const {
        if (writes_new() && !shared() && touches_file()) {
            if (Outcome failure = file.make_directory()) return failure;
            if (Outcome failure = file.remove()) return failure;
            if (phase_.preallocate)
                if (Outcome failure = file.allocate(phase_.bytes_per_rank() * (merged() ? group_.size() : 1)))
                    return failure;
        }
        if (phase_.cache == Cache::drop_system && seat_.leads_node) {
            seat_.progress.at("dropping the system's caches");
            if (const int error = drop_system_caches(setting_.root); error != 0)
                return call_failure("drop_caches", "", error);
        }
        const bool drops = phase_.cache != Cache::as_is;
        if (looks_at_cache() && (!writes_new() || phase_.preallocate)) {
            seat_.progress.at("dropping cached pages");
            if (Outcome failure = seen.look(drops, cache, &CacheState::resident_before_bytes)) return failure;
        }
        if (drops && !seat_.one_process && !shared() && !writes_new() && count_ > 0 &&
            (owner_ != seat_.rank || merged())) {
            // Another rank examines this file: only drop the pages that an earlier phase cached on this node.
            CacheState unused;
            return file.look(true, unused, &CacheState::resident_before_bytes);
        }
        return std::nullopt;
    }

    Outcome make_buffer() {
        if (Outcome failure = setting_.make(buffer_, buffer_bytes_of(phase_))) return failure;
        if (phase_.operation != TransferOperation::read) fill(buffer_.bytes(), content(), 0);
        if (phase_.operation == TransferOperation::mixed) seat_.latencies.reads = std::make_unique<Histogram>();
        return std::nullopt;
    }

    [[nodiscard]] static Outcome outcome_of(const FileStep& step, const std::string& path) {
        return step.error == 0 ? std::nullopt : Outcome(call_failure(step.call, path, step.error));
    }

    [[nodiscard]] LoopSetting loop_setting(const RankResult& result) {
        using enum TransferOperation;
        const std::uint64_t deadline = deadline_after(setting_.clock, result.start, phase_.stop);
        return {.setting = setting_,
                .seat = seat_,
                .buffer = buffer_.bytes(),
                .content = content(),
                .found = found(),
                .ages_a_pass = set_.renews ? 1U : 0U,
                .count = count_,
                .read_percent = phase_.operation == read ? 100 : phase_.read_percent.value_or(0),
                .choice_key = key(setting_.index + 1),
                .read_sizes = phase_.read_sizes,
                .write_sizes = phase_.write_sizes,
                .stamp = phase_.pattern == Pattern::stamped,
                .verify = phase_.verify,
                .repeat = phase_.stop.rule == StopRule::seconds,
                .synchronise = phase_.sync == Sync::fsync_each,
                .deadline = deadline,
                .pace = setting_.pace(result.start, setting_.plan.ranks),
                .wear_out = wear_out_.wanted() ? &wear_out_ : nullptr};
    }

    template <class Loop>
    LoopEnd in_their_order(Loop loop) const {
        if (phase_.access == Access::random_whole) return loop(anywhere());
        if (phase_.access == Access::random) return loop(shuffled());
        if (phase_.access == Access::draws) return loop(Drawn(region(), key(setting_.index + 1)));
        return loop(InOrder(region()));
    }

    const PhaseSetting& setting_;
    Seat seat_;
    const TransferPhase& phase_;
    DataSet& set_;
    std::uint32_t owner_;
    Group group_;  // group of the owner, if the phase has writers
    Buffer buffer_;
    WearOut wear_out_;
    std::uint64_t count_ = 0;  // number of transfers of one pass
    std::uint64_t done_ = 0;

  private:
    // New files are written in one seeded order per set. Later phases use other orders of the existing transfers.
    [[nodiscard]] Shuffled shuffled() const noexcept {
        const Permutation as_written(region().transfers, key(0));
        if (writes_new()) return {region(), as_written};
        const Permutation own(std::max<std::uint64_t>(count_, 1), key(setting_.index + 1));
        if (count_ == region().transfers || !accessed_as_written()) return {region(), own};
        return {region(), own, as_written};
    }
    // Return a seeded order of the transfers in the whole file. The order differs from rank to rank.
    [[nodiscard]] Shuffled anywhere() const noexcept {
        Region file = region();
        file.transfers = set_.written->bytes_per_rank() * setting_.plan.ranks / phase_.transfer_bytes;
        return {file, Permutation(file.transfers, key(setting_.index + 1))};
    }
    [[nodiscard]] std::uint64_t key(std::uint64_t purpose) const noexcept {
        return mix(mix(mix(setting_.plan.seed) + set_.number) + owner_) + mix(purpose);
    }
};

}  // namespace strakes
