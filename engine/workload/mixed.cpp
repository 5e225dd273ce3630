// A mixed phase. Each rank runs the workload of its part, and then receives the state that the other parts have left.
#include <string>
#include <vector>

#include "system/bytes.hpp"
#include "workload/workload.hpp"

namespace strakes {

namespace {

// The first rank of a part on a node has the duties of the node's first rank.
Seat seat_in_part(const Seat& seat, std::uint32_t first) {
    Seat mine = seat;
    const auto nodes = seat.exchange->nodes();
    mine.leads_node =
        seat.rank == first || (!seat.one_process && seat.rank > first && nodes[seat.rank] != nodes[seat.rank - 1]);
    return mine;
}

class Mixed final : public Workload {
  public:
    Mixed(const PhaseSetting& setting, const Seat& seat)
        : mixed_(std::get<MixedPhase>(setting.phase())), mine_(mixed_.part_of(seat.rank)) {
        const bool first_here = !seat.one_process || seat.rank == 0;
        settings_.reserve(mixed_.parts());
        parts_.resize(mixed_.parts());
        for (std::size_t part = 0; part < mixed_.parts(); ++part) {
            settings_.push_back(setting.at(setting.index + 1 + part));
            if (part == mine_ || first_here)
                parts_[part] = make_workload(settings_.back(), seat_in_part(seat, mixed_.first_rank_of(part)));
        }
    }

    Outcome lead() override {
        for (const auto& part : parts_)
            if (Outcome failure = part->lead()) return failure;
        return std::nullopt;
    }
    void declare() override {
        for (const auto& part : parts_) part->declare();
    }

    Outcome prepare(RankResult& result) override { return mine().prepare(result); }
    void run(RankResult& result) override { mine().run(result); }
    void finish(RankResult& result) override { mine().finish(result); }

    [[nodiscard]] std::string tell() const override {
        Packer packer;
        packer.put(mine_);
        packer.put_text(parts_[mine_]->tell());
        return packer.take();
    }
    void learn(std::string_view told) override {
        Unpacker unpacker(told);
        Workload& part = *parts_.at(unpacker.get<std::size_t>());
        part.learn(unpacker.get_text());
    }

  private:
    [[nodiscard]] Workload& mine() { return *parts_[mine_]; }

    const MixedPhase& mixed_;
    std::size_t mine_;
    std::vector<PhaseSetting> settings_;            // settings of the parts, to which their workloads refer
    std::vector<std::unique_ptr<Workload>> parts_;  // all parts on the first rank of a process, else the rank's part
};

}  // namespace

std::unique_ptr<Workload> make_mixed(const PhaseSetting& setting, const Seat& seat) {
    return std::make_unique<Mixed>(setting, seat);
}

}  // namespace strakes
