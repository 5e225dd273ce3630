// Messages between the ranks of a plan over MPI, and memory that the processes of a node share. Uses non-blocking
// calls. At the end of a phase the ranks exchange message counts, so that no message is left for the next phase.
#pragma once

#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "mpi/libraries.hpp"
#include "system/bytes.hpp"
#include "system/descriptor.hpp"
#include "team/exchange.hpp"
#include "team/post.hpp"

namespace strakes {

class Patience {
  public:
    // With `longest_nap_ns` 0, pause() never sleeps.
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

inline constexpr int kExchangeTag = 2;
inline constexpr std::uint64_t kShortNapNs = 100'000;

// The function that handles an error of MPI and ends the process. Until it is set, an error ends the process directly,
// and its exit status makes the launcher end the other processes.
inline std::function<void(const std::string&)>& told_of_mpi_failure() {
    static std::function<void(const std::string&)> told;
    return told;
}

inline void check_mpi(const char* call, int error) {
    if (error == MPI_SUCCESS) return;
    const std::string words = std::string(call) + ": " + words_of_mpi(error);
    std::fprintf(stderr, "strakes-engine-mpi: %s\n", words.c_str());
    if (!told_of_mpi_failure()) ::_exit(1);
    told_of_mpi_failure()(words);
    for (;;) ::pause();
}

class MpiExchange final : public Exchange {
  public:
    // `ranks` and `nodes`: for each member of the circle, the rank in the communicator and the node's number.
    // `longest_nap_ns`: the longest sleep of a waiting rank; 0 if every rank has a processor.
    MpiExchange(MPI_Comm messages, Circle circle, std::vector<Rank> ranks, std::vector<std::uint32_t> nodes,
                std::uint64_t longest_nap_ns)
        : messages_(messages),
          longest_nap_ns_(longest_nap_ns),
          circle_(std::move(circle)),
          ranks_(std::move(ranks)),
          nodes_(std::move(nodes)),
          sent_(ranks_.size()),
          received_(ranks_.size()) {}

    ~MpiExchange() override { give_back(); }

    [[nodiscard]] std::span<const std::uint32_t> nodes() const override { return nodes_; }
    Ticket send(Rank to, std::span<const std::byte> bytes) override {
        const Ticket ticket = new_ticket();
        Message& message = under_way_[ticket.number];
        message = {.other = to, .receives = false, .in_use = true, .size = bytes.size()};
        check_mpi("MPI_Isend", MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE,
                                         static_cast<int>(ranks_[to]), kExchangeTag, messages_, &message.request));
        ++sent_[to];
        return ticket;
    }
    Ticket receive(Rank from, std::span<std::byte> room) override {
        const Ticket ticket = new_ticket();
        Message& message = under_way_[ticket.number];
        message = {.other = from, .receives = true, .in_use = true, .size = 0};
        check_mpi("MPI_Irecv", MPI_Irecv(room.data(), static_cast<int>(room.size()), MPI_BYTE,
                                         static_cast<int>(ranks_[from]), kExchangeTag, messages_, &message.request));
        return ticket;
    }
    std::optional<std::size_t> wait(Ticket ticket, const std::atomic<Halt>& halt) override {
        Message& message = under_way_[ticket.number];
        Patience patience(longest_nap_ns_);
        while (!is_done(message)) {
            if (halt.load(std::memory_order_relaxed) != Halt::none) return std::nullopt;
            patience.pause();
        }
        message.in_use = false;
        return message.size;
    }
    // The first rank of a node creates a memfd, which the other ranks of the node open through /proc.
    std::span<std::byte> node_memory(std::size_t bytes) override {
        const Rank mine = circle_.mine();
        const auto first = static_cast<Rank>(std::ranges::find(nodes_, nodes_[mine]) - nodes_.begin());
        const auto end = static_cast<Rank>(std::ranges::upper_bound(nodes_, nodes_[mine]) - nodes_.begin());
        Descriptor file;
        bool good = false;
        if (mine == first) {
            file = Descriptor(::memfd_create("strakes", MFD_CLOEXEC));
            good = file && ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes)) == 0 && map(file.get(), bytes);
            const std::string path = good ? "/proc/" + std::to_string(::getpid()) + "/task/" +
                                                std::to_string(::gettid()) + "/fd/" + std::to_string(file.get())
                                          : "";
            for (Rank other = first + 1; other < end; ++other) circle_.send(other, path);
            for (Rank other = first + 1; other < end; ++other) good &= !circle_.receive(other).empty();
            for (Rank other = first + 1; other < end; ++other) circle_.send(other, good ? "good" : "");
        } else {
            const std::string path = circle_.receive(first);
            if (!path.empty()) file = Descriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC));
            circle_.send(first, file && map(file.get(), bytes) ? "good" : "");
            good = !circle_.receive(first).empty();
        }
        if (!good) give_back();
        return memory_;
    }
    void settle() override {
        for (Message& message : under_way_)
            if (message.in_use && message.receives) withdraw(message);
        Packer packer;
        for (Rank other = 0; other < circle_.size(); ++other) {
            if (sent_[other] == 0) continue;
            packer.put(other);
            packer.put(sent_[other]);
        }
        const std::vector<std::string> said = circle_.all(packer.take());
        for (Rank other = 0; other < circle_.size(); ++other) {
            for (Unpacker unpacker(said[other]); !unpacker.at_end();) {
                const auto to = unpacker.get<Rank>();
                const auto messages = unpacker.get<std::uint64_t>();
                if (to == circle_.mine()) take_rest(other, messages);
            }
        }
        for (Message& message : under_way_)
            if (message.in_use) finish(message);
        std::ranges::fill(sent_, 0);
        std::ranges::fill(received_, 0);
        give_back();
    }

  private:
    struct Message {
        MPI_Request request = MPI_REQUEST_NULL;
        Rank other = 0;
        bool receives = false;
        bool in_use = false;
        std::size_t size = 0;
    };

    // Always finds a free ticket, since callers keep at most kMostTickets messages in flight.
    [[nodiscard]] Ticket new_ticket() noexcept {
        Ticket ticket;
        while (ticket.number + 1 < kMostTickets && under_way_[ticket.number].in_use) ++ticket.number;
        return ticket;
    }
    [[nodiscard]] bool is_done(Message& message) {
        int done = 0;
        MPI_Status status;
        check_mpi("MPI_Test", MPI_Test(&message.request, &done, &status));
        if (done == 0 || !message.receives) return done != 0;
        int cancelled = 0;
        MPI_Test_cancelled(&status, &cancelled);
        if (cancelled != 0) return true;
        int size = 0;
        MPI_Get_count(&status, MPI_BYTE, &size);
        message.size = static_cast<std::size_t>(size);
        ++received_[message.other];
        return true;
    }
    void finish(Message& message) {
        Patience patience(longest_nap_ns_);
        while (!is_done(message)) patience.pause();
        message.in_use = false;
    }
    void withdraw(Message& message) {
        check_mpi("MPI_Cancel", MPI_Cancel(&message.request));
        finish(message);
    }
    void take_rest(Rank from, std::uint64_t messages) {
        for (; received_[from] < messages; ++received_[from]) {
            Patience patience(longest_nap_ns_);
            MPI_Message message = MPI_MESSAGE_NULL;
            MPI_Status status;
            for (int there = 0;;) {
                check_mpi("MPI_Improbe", MPI_Improbe(static_cast<int>(ranks_[from]), kExchangeTag, messages_, &there,
                                                     &message, &status));
                if (there != 0) break;
                patience.pause();
            }
            int size = 0;
            MPI_Get_count(&status, MPI_BYTE, &size);
            std::vector<std::byte> unread(static_cast<std::size_t>(size));
            check_mpi("MPI_Mrecv", MPI_Mrecv(unread.data(), size, MPI_BYTE, &message, MPI_STATUS_IGNORE));
        }
    }
    [[nodiscard]] bool map(int descriptor, std::size_t bytes) {
        void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor, 0);
        if (memory == MAP_FAILED) return false;
        memory_ = {static_cast<std::byte*>(memory), bytes};
        return true;
    }
    void give_back() noexcept {
        if (!memory_.empty()) ::munmap(memory_.data(), memory_.size());
        memory_ = {};
    }

    MPI_Comm messages_;
    std::uint64_t longest_nap_ns_;
    Circle circle_;
    std::vector<Rank> ranks_;
    std::vector<std::uint32_t> nodes_;
    std::array<Message, kMostTickets> under_way_{};
    std::vector<std::uint64_t> sent_, received_;  // numbers of messages since the last settle(), by rank
    std::span<std::byte> memory_;
};

}  // namespace strakes
