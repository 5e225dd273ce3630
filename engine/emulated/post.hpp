// Replaces MPI for ranks that are threads of a few processes, to test the control plane with more ranks than this
// machine could run as processes.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "system/descriptor.hpp"
#include "team/post.hpp"

namespace strakes {

// The ranks of one process, and streams to the other processes.
class PostOffice {
  public:
    using Rank = Post::Rank;

    // `process_of`: the process of each rank. `streams`: a stream socket to each process; this process's entry is
    // empty.
    PostOffice(std::vector<std::uint8_t> process_of, std::uint8_t mine, std::vector<Descriptor> streams);
    ~PostOffice();
    PostOffice(const PostOffice&) = delete;
    PostOffice& operator=(const PostOffice&) = delete;

    [[nodiscard]] Rank size() const noexcept { return static_cast<Rank>(process_of_.size()); }
    void send(Rank from, Rank to, std::string_view bytes);
    [[nodiscard]] std::string receive(Rank from, Rank to);

  private:
    struct Box {
        std::mutex mutex;
        std::condition_variable changed;
        std::deque<std::pair<Rank, std::string>> letters;  // with their senders
    };
    struct Line {
        Descriptor stream;
        std::mutex mutex;  // for writing
        std::thread reader;
    };

    void deliver(Rank from, Rank to, std::string bytes);
    void read(Line& line);

    std::vector<std::uint8_t> process_of_;
    std::uint8_t mine_;
    std::vector<std::unique_ptr<Box>> boxes_;   // by rank; null for ranks of other processes
    std::vector<std::unique_ptr<Line>> lines_;  // by process
};

// The post of one rank.
class EmulatedPost final : public Post {
  public:
    EmulatedPost(PostOffice& office, Rank rank) : office_(office), rank_(rank) {}

    [[nodiscard]] Rank rank() const override { return rank_; }
    [[nodiscard]] Rank size() const override { return office_.size(); }
    void send(Rank to, std::string_view bytes) override { office_.send(rank_, to, bytes); }
    std::string receive(Rank from, Wait /*wait*/) override { return office_.receive(from, rank_); }
    std::string swap(Rank to, std::string_view bytes, Rank from, Wait wait) override {
        send(to, bytes);
        return receive(from, wait);
    }
    std::unique_ptr<Exchange> exchange(Circle circle, std::vector<Rank> ranks,
                                       std::vector<std::uint32_t> nodes) override;
    std::unique_ptr<LibraryFiles> libraries(std::vector<Rank> ranks) override;

  private:
    PostOffice& office_;
    Rank rank_;
};

}  // namespace strakes
