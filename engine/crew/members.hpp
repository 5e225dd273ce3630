// The processes of one plan, which communicate over the post.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/library_file.hpp"
#include "crew/clocks.hpp"
#include "crew/crowd.hpp"
#include "crew/performer.hpp"
#include "system/placement.hpp"
#include "team/circle.hpp"
#include "team/processes.hpp"

namespace strakes {

class Members final : public Processes {
  public:
    // `ranks` are the members of the crowd that take part; this process is number `mine` among them.
    Members(Performer& performer, Post& post, const Crowd& crowd, Clocks& clocks, std::vector<Rank> ranks, Rank mine,
            const Placement& placement);

    void perform(std::function<void()> body) override { performer_.perform(std::move(body)); }
    void wait() override { performer_.wait(); }
    bool any(bool mine) override { return circle_.most(mine ? 1 : 0) != 0; }
    Start start_line() override;
    std::uint64_t least(std::uint64_t mine) override { return circle_.least(mine); }
    std::vector<std::string> all(std::string_view mine) override { return circle_.all(mine); }
    void send(Rank to, std::string_view bytes) override { circle_.send(to, bytes); }
    std::string receive(Rank from) override { return circle_.receive(from); }
    [[nodiscard]] Exchange& exchange() override { return *exchange_; }
    [[nodiscard]] LibraryFiles* libraries() override { return libraries_.get(); }
    [[nodiscard]] const Timeline& timeline() const override { return clocks_.timeline(); }
    [[nodiscard]] bool leads_node() const override { return leads_node_; }
    [[nodiscard]] Rank ranks_on_node() const override { return ranks_on_node_; }
    [[nodiscard]] Rank place_on_machine() const override { return on_machine_.mine(); }
    [[nodiscard]] std::size_t nodes() const override { return nodes_; }

  private:
    Performer& performer_;
    Clocks& clocks_;
    std::vector<Rank> ranks_;
    Circle circle_;
    Circle on_machine_;  // the ranks on this machine
    bool leads_node_;
    Rank ranks_on_node_;
    std::size_t nodes_;
    bool crowded_;  // the machine has fewer processors than ranks
    std::unique_ptr<Exchange> exchange_;
    std::unique_ptr<LibraryFiles> libraries_;
};

}  // namespace strakes
