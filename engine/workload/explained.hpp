// A workload that adds the server's messages to its failures.
#pragma once

#include <utility>

#include "workload/workload.hpp"

namespace strakes {

// Io::explain() adds the message.
template <class Inner, class Io>
class Explained final : public Inner {
  public:
    Explained(const PhaseSetting& setting, const Seat& seat) : Inner(setting, seat), rank_(seat.rank) {}

    Workload::Outcome lead() override { return explained(Inner::lead()); }
    Workload::Outcome prepare(RankResult& result) override { return explained(Inner::prepare(result)); }
    void run(RankResult& result) override {
        Inner::run(result);
        result.failure = explained(std::move(result.failure));
    }
    void finish(RankResult& result) override {
        const bool before = result.failure.has_value();
        Inner::finish(result);
        if (!before) result.failure = explained(std::move(result.failure));
    }

  private:
    Workload::Outcome explained(Workload::Outcome outcome) const {
        if (outcome) Io::explain(rank_, *outcome);
        return outcome;
    }

    std::uint32_t rank_;
};

}  // namespace strakes
