// Sent messages, and buffers for messages, wait in two lists at the receiver. The rank that finds a matching message or
// buffer in a list removes it from the list and copies the bytes.
#include "team/threads.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "measure/clock.hpp"

namespace strakes {

namespace {

// A sleeping rank checks for a halt at this interval.
constexpr std::chrono::milliseconds kLook{20};
// Waking a thread takes longer than most messages, and would be measured as time of the file system. So a rank polls
// first, for about 1 ms, and yields the processor between polls.
constexpr int kLooks = 1000;

// A message that was sent, or a buffer for a message.
struct Message {
    enum class State : std::uint8_t { unused, under_way, done };

    State state = State::unused;
    std::uint32_t from = 0;
    const std::byte* bytes = nullptr;
    std::byte* room = nullptr;
    std::size_t size = 0;
    Message* next = nullptr;
};

// Messages in order of arrival. A linear search is enough, since few messages of each rank wait at the same time.
class Messages {
  public:
    void add(Message& post) noexcept {
        post.next = nullptr;
        *end_ = &post;
        end_ = &post.next;
    }
    Message* take(std::uint32_t from) noexcept {
        for (Message** link = &first_; *link != nullptr; link = &(*link)->next) {
            Message* const found = *link;
            if (found->from != from) continue;
            *link = found->next;
            if (end_ == &found->next) end_ = link;
            return found;
        }
        return nullptr;
    }
    void clear() noexcept {
        first_ = nullptr;
        end_ = &first_;
    }

  private:
    Message* first_ = nullptr;
    Message** end_ = &first_;
};

}  // namespace

class ThreadExchange::End final : public Exchange {
  public:
    End(ThreadExchange& all, Rank rank) : all_(all), rank_(rank) {}

    [[nodiscard]] std::span<const std::uint32_t> nodes() const override { return all_.nodes_; }

    Ticket send(Rank to, std::span<const std::byte> bytes) override {
        End& receiver = *all_.ends_[to];
        const Ticket ticket = new_ticket();
        Message& message = posts_[ticket.number];
        message.from = rank_;
        message.bytes = bytes.data();
        message.size = bytes.size();
        Message* room = nullptr;
        {
            const std::lock_guard lock(receiver.mutex_);
            room = receiver.rooms_.take(rank_);
            if (room == nullptr) receiver.messages_.add(message);
        }
        if (room != nullptr) deliver(message, *this, *room, receiver);
        return ticket;
    }

    Ticket receive(Rank from, std::span<std::byte> room) override {
        const Ticket ticket = new_ticket();
        Message& mine = posts_[ticket.number];
        mine.from = from;
        mine.room = room.data();
        mine.size = room.size();
        Message* message = nullptr;
        {
            const std::lock_guard lock(mutex_);
            message = messages_.take(from);
            if (message == nullptr) rooms_.add(mine);
        }
        if (message != nullptr) deliver(*message, *all_.ends_[from], mine, *this);
        return ticket;
    }

    std::optional<std::size_t> wait(Ticket ticket, const std::atomic<Halt>& halt) override {
        std::unique_lock lock(mutex_);
        Message& post = posts_[ticket.number];
        int looks = 0;
        while (post.state != Message::State::done) {
            if (halt.load(std::memory_order_relaxed) != Halt::none) return std::nullopt;
            if (looks++ < kLooks) {
                lock.unlock();
                ::sched_yield();
                lock.lock();
            } else {
                changed_.wait_for(lock, kLook);
            }
        }
        post.state = Message::State::unused;
        return post.size;
    }

    std::span<std::byte> node_memory(std::size_t bytes) override {
        Node& node = *all_.shared_[all_.nodes_[rank_]];
        const std::lock_guard lock(node.mutex);
        if (node.holders == 0) node.memory = Buffer::of(bytes);
        ++node.holders;
        holds_memory_ = true;
        return node.memory.bytes();
    }

    void settle() override {
        {
            const std::lock_guard lock(mutex_);
            messages_.clear();
            rooms_.clear();
            for (Message& post : posts_) post.state = Message::State::unused;
        }
        if (!holds_memory_) return;
        holds_memory_ = false;
        Node& node = *all_.shared_[all_.nodes_[rank_]];
        const std::lock_guard lock(node.mutex);
        if (--node.holders == 0) node.memory = Buffer();
    }

  private:
    // A free entry exists, because a rank has at most kMostTickets messages in flight.
    [[nodiscard]] Ticket new_ticket() noexcept {
        const std::lock_guard lock(mutex_);
        Ticket ticket;
        while (ticket.number + 1 < kMostTickets && posts_[ticket.number].state != Message::State::unused)
            ++ticket.number;
        posts_[ticket.number].state = Message::State::under_way;
        return ticket;
    }

    static void deliver(Message& message, End& sender, Message& room, End& receiver) {
        const std::size_t size = std::min(message.size, room.size);
        if (size > 0) std::memcpy(room.room, message.bytes, size);
        sender.finish(message, message.size);
        receiver.finish(room, size);
    }
    void finish(Message& post, std::size_t size) {
        {
            const std::lock_guard lock(mutex_);
            post.size = size;
            post.state = Message::State::done;
        }
        changed_.notify_one();
    }

    ThreadExchange& all_;
    Rank rank_;
    std::mutex mutex_;  // Protects all members below. A message belongs to its rank until it is in a list.
    std::condition_variable changed_;
    std::array<Message, kMostTickets> posts_{};
    Messages messages_, rooms_;  // messages without a buffer, and buffers without a message
    bool holds_memory_ = false;
};

ThreadExchange::ThreadExchange(Rank ranks, Rank ranks_per_node) {
    for (Rank rank = 0; rank < ranks; ++rank) {
        nodes_.push_back(rank / ranks_per_node);
        if (rank % ranks_per_node == 0) shared_.push_back(std::make_unique<Node>());
        ends_.push_back(std::make_unique<End>(*this, rank));
    }
}

ThreadExchange::~ThreadExchange() = default;

Exchange& ThreadExchange::of(Rank rank) { return *ends_[rank]; }

namespace {

// Time from the choice of the start time to the start, in which all polling threads see the start time.
constexpr std::uint64_t kLeadNs = 20'000;

}  // namespace

void ThreadStart::reset() {
    taken_ = {};
    come_ = 0;
    start_ = 0;
}

Start ThreadStart::pass() {
    const Start start{.begun = true, .crowded = crowded_};
    if (threads_ == 1 || crowded_) return start;
    const Clock& clock = Clock::system();
    std::optional<Aside> aside;
    take_processor(aside);
    if (come_.fetch_add(1) + 1 == threads_) start_ = clock.now();
    // A thread that has not arrived may need this processor.
    while (start_ == 0) ::sched_yield();
    clock.wait(start_, kLeadNs);
    return start;
}

void ThreadStart::take_processor(std::optional<Aside>& aside) {
    const std::lock_guard lock(mutex_);
    const Processors mine = Processors::current();
    if (taken_.has_all(mine)) aside.emplace(Processors::allowed(), taken_);
    taken_.add(Processors::current());
}

}  // namespace strakes
