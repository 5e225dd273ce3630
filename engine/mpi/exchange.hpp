// Messages between the ranks of a plan over MPI, and memory that the processes of a node share.
#pragma once

#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <ctime>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "system/descriptor.hpp"
#include "team/exchange.hpp"
#include "team/post.hpp"

namespace strakes {

class Patience {
  public:
    // 0 polls without sleeping.
    explicit Patience(std::uint64_t longest_nap_ns) : longest_(longest_nap_ns) {}

    void pause() {
        if (looks_ < kLooks || longest_ == 0) {
            ++looks_;
            ::sched_yield();
            return;
        }
        const timespec nap{0, static_cast<long>(nap_)};
        ::nanosleep(&nap, nullptr);
        nap_ = std::min(nap_ * 2, longest_);
    }

  private:
    static constexpr int kLooks = 50;
    static constexpr std::uint64_t kShortestNapNs = 20'000;

    int looks_ = 0;
    std::uint64_t nap_ = kShortestNapNs;
    std::uint64_t longest_;
};

inline constexpr std::uint64_t kShortNapNs = 100'000;

// On an error, passes the name of the call and MPI's message to the function set by on_mpi_failure(), which ends the
// process, and does not return. Exits if no function is set. If the cause is the loss of another process, the watching
// threads detect that as well.
void check_mpi(const char* call, int error);
void on_mpi_failure(std::function<void(const std::string&)> tell);

class MpiExchange final : public Exchange {
  public:
    // `ranks` and `nodes`, by member of the circle: rank in the communicator and number of the node. `longest_nap_ns`
    // is the longest sleep of a waiting rank, 0 if every rank has a processor.
    MpiExchange(MPI_Comm messages, Circle circle, std::vector<Rank> ranks, std::vector<std::uint32_t> nodes,
                std::uint64_t longest_nap_ns);
    ~MpiExchange() override { give_back(); }

    [[nodiscard]] std::span<const std::uint32_t> nodes() const override { return nodes_; }
    Ticket send(Rank to, std::span<const std::byte> bytes) override;
    Ticket receive(Rank from, std::span<std::byte> room) override;
    std::optional<std::size_t> wait(Ticket ticket, const std::atomic<Halt>& halt) override;
    std::span<std::byte> node_memory(std::size_t bytes) override;
    void settle() override;

  private:
    struct Message {
        MPI_Request request = MPI_REQUEST_NULL;
        Rank other = 0;
        bool receives = false;
        bool in_use = false;
        std::size_t size = 0;
    };

    [[nodiscard]] Ticket new_ticket() noexcept;
    [[nodiscard]] bool is_done(Message& message);
    void finish(Message& message);
    void withdraw(Message& message);
    void take_rest(Rank from, std::uint64_t messages);
    [[nodiscard]] bool map(int descriptor, std::size_t bytes);
    void give_back() noexcept;

    MPI_Comm messages_;
    std::uint64_t longest_nap_ns_;
    Circle circle_;
    std::vector<Rank> ranks_;
    std::vector<std::uint32_t> nodes_;
    std::array<Message, kMostTickets> under_way_{};
    std::vector<std::uint64_t> sent_, received_;  // since the last settle(), by the other rank
    std::span<std::byte> memory_;
};

}  // namespace strakes
