// Clock comparison, start line and introductions of processes, which are threads in these tests.
#include <doctest/doctest.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend/library_file.hpp"
#include "crew/clocks.hpp"
#include "crew/process_crew.hpp"
#include "system/bytes.hpp"
#include "system/processors.hpp"

using namespace strakes;

namespace {

using Rank = Post::Rank;

// Messages in flight, by sender and receiver.
class Mail {
  public:
    void put(Rank from, Rank to, std::string_view bytes) {
        const std::lock_guard lock(mutex_);
        boxes_[{from, to}].emplace_back(bytes);
        changed_.notify_all();
    }
    std::string take(Rank from, Rank to) {
        std::unique_lock lock(mutex_);
        auto& box = boxes_[{from, to}];
        changed_.wait(lock, [&box] { return !box.empty(); });
        std::string bytes = std::move(box.front());
        box.pop_front();
        return bytes;
    }
    // Whether all messages have been received.
    bool is_empty() {
        const std::lock_guard lock(mutex_);
        return std::ranges::all_of(boxes_, [](const auto& box) { return box.second.empty(); });
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<std::pair<Rank, Rank>, std::deque<std::string>> boxes_;
};

class MailPost final : public Post {
  public:
    MailPost(Mail& mail, Rank rank, Rank size) : mail_(mail), rank_(rank), size_(size) {}

    [[nodiscard]] Rank rank() const override { return rank_; }
    [[nodiscard]] Rank size() const override { return size_; }
    void send(Rank to, std::string_view bytes) override { mail_.put(rank_, to, bytes); }
    std::string receive(Rank from, Wait /*wait*/) override { return mail_.take(from, rank_); }
    std::string swap(Rank to, std::string_view bytes, Rank from, Wait wait) override {
        send(to, bytes);
        return receive(from, wait);
    }
    std::unique_ptr<Exchange> exchange(Circle /*circle*/, std::vector<Rank> /*ranks*/,
                                       std::vector<std::uint32_t> /*nodes*/) override {
        return nullptr;
    }
    std::unique_ptr<LibraryFiles> libraries(std::vector<Rank> /*ranks*/) override { return nullptr; }

  private:
    Mail& mail_;
    Rank rank_, size_;
};

// Introduction of a process on this host and machine that may use `processors` processors.
std::string introduction(std::string_view host, std::string_view machine, std::size_t processors) {
    Packer packer;
    packer.put_text(host);
    packer.put_text(machine);
    packer.put(pid_t{1});
    packer.put_text(std::string(processors / 8, '\xff') + static_cast<char>((1U << (processors % 8)) - 1));
    return packer.take();
}

// A crowd with two processes on each host. Each host is a machine.
Crowd crowd_of(Rank hosts) {
    std::vector<std::string> introductions;
    introductions.reserve(std::size_t{2} * hosts);
    for (Rank rank = 0; rank < 2 * hosts; ++rank)
        introductions.push_back(introduction("n" + std::to_string(rank / 2), std::to_string(rank / 2), 2));
    return Crowd(introductions);
}

// Run the body in all processes, each of them a thread.
void run_all(const Crowd& crowd, Mail& mail, const std::function<void(MailPost&)>& body) {
    std::vector<std::thread> threads;
    threads.reserve(crowd.size());
    for (Rank rank = 0; rank < crowd.size(); ++rank) {
        threads.emplace_back([&, rank] {
            MailPost post(mail, rank, crowd.size());
            body(post);
        });
    }
    for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("comparing a clock with itself gives an offset of zero within the uncertainty, for any number of nodes") {
    for (const Rank hosts : {1U, 2U, 3U, 5U, 8U}) {
        const Crowd crowd = crowd_of(hosts);
        Mail mail;
        std::atomic<int> wrong{0}, exact{0};
        run_all(crowd, mail, [&](MailPost& post) {
            Clocks clocks(post, crowd);
            const auto off = [&] { return static_cast<std::uint64_t>(std::llabs(clocks.timeline().offset_ns)); };
            if (off() > clocks.uncertainty_ns()) ++wrong;
            if (clocks.uncertainty_ns() == 0) ++exact;
            std::vector<Rank> half(hosts);  // the first half of the processes
            for (Rank rank = 0; rank < hosts; ++rank) half[rank] = rank;
            if (post.rank() >= hosts) return;
            clocks.compare(half);
            if (off() > clocks.uncertainty_ns()) ++wrong;
        });
        CHECK(wrong == 0);
        CHECK(exact == 2);  // both processes of rank 0's node
        CHECK(mail.is_empty());
    }
}

TEST_CASE("no process passes the start line before all have reached it, and all learn how they started") {
    constexpr int kRounds = 20;
    const Crowd crowd = crowd_of(3);
    for (const Rank count : {1U, 2U, 5U, 6U}) {
        Mail mail;
        std::atomic<int> come{0}, too_early{0}, wrong{0};
        run_all(crowd, mail, [&](MailPost& post) {
            Clocks clocks(post, crowd);
            if (post.rank() >= count) return;
            std::vector<Rank> ranks(count);
            for (Rank rank = 0; rank < count; ++rank) ranks[rank] = rank;
            Performer performer;
            Members members(performer, post, crowd, clocks, ranks, post.rank(), {});
            for (int round = 1; round <= kRounds; ++round) {
                ++come;
                const Start start = members.start_line();
                if (come < round * static_cast<int>(count)) ++too_early;
                if (!start.begun || start.crowded ||
                    (start.clock_uncertainty_ns > 0) != (post.rank() >= 2 && count > 1))
                    ++wrong;
                static_cast<void>(members.any(false));
            }
        });
        CHECK(too_early == 0);
        CHECK(wrong == 0);
        CHECK(mail.is_empty());
    }
}

TEST_CASE("all processes derive the same crowd from the introductions") {
    const std::vector<std::string> introductions{introduction("n1", "a", 2), introduction("n2", "b", 9),
                                                 introduction("n1", "a", 2), introduction("n1", "c", 2),
                                                 introduction("n2", "b", 3)};
    const Crowd expected(introductions);
    Mail mail;
    std::atomic<int> wrong{0};
    run_all(expected, mail, [&](MailPost& post) {
        const Crowd crowd = Crowd::meet(post, introductions[post.rank()]);
        if (crowd.size() != expected.size() || crowd.nodes().size() != 3) ++wrong;
        for (Rank rank = 0; rank < crowd.size(); ++rank) {
            if (crowd.node_of(rank).host != expected.node_of(rank).host ||
                crowd.node_of(rank).ranks != expected.node_of(rank).ranks ||
                crowd.place_of(rank) != expected.place_of(rank) || crowd.pid_of(rank) != expected.pid_of(rank))
                ++wrong;
            const Crowd::Share share = crowd.share_of(rank, std::vector<Rank>{0, 1, 2, 3, 4});
            const Crowd::Share known = expected.share_of(rank, std::vector<Rank>{0, 1, 2, 3, 4});
            if (share.ranks != known.ranks || share.processors.count() != known.processors.count()) ++wrong;
        }
    });
    CHECK(wrong == 0);
    CHECK(mail.is_empty());
    CHECK(expected.node_of(4).ranks == std::vector<Rank>{1, 4});
    CHECK(expected.place_of(2) == 1);
}

TEST_CASE("ranks on one machine share its processors, also if the machine appears as several nodes") {
    const Crowd crowd({introduction("n1", "a", 2), introduction("n1", "a", 2), introduction("n2", "a", 2),
                       introduction("n3", "b", 9)});
    CHECK(crowd.nodes().size() == 3);
    const auto crowded = [&crowd](Rank one, const std::vector<Rank>& ranks) {
        const Crowd::Share share = crowd.share_of(one, ranks);
        return share.processors.too_few_for(share.ranks.size());
    };
    CHECK_FALSE(crowded(0, {0, 1}));
    CHECK_FALSE(crowded(2, {0, 2, 3}));
    CHECK(crowded(2, {0, 1, 2, 3}));
    CHECK_FALSE(crowded(3, {0, 1, 2, 3}));
    CHECK(crowd.share_of(3, std::vector<Rank>{0, 3}).processors.count() == 9);
}

TEST_CASE("the processors of ranks with different affinity are added up") {
    Processors both(std::string("\x01", 1));
    both.add(Processors(std::string("\x00\x80", 2)));
    CHECK(both.count() == 2);
    CHECK_FALSE(both.too_few_for(2));
    CHECK(both.too_few_for(3));
    CHECK_FALSE(Processors().too_few_for(99));  // unknown
    CHECK(Processors::allowed().count() >= 1);
}
