// Mailboxes, and a thread for each stream that delivers its messages to them.
#include "emulated/post.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <stdexcept>

#include "backend/library_file.hpp"
#include "team/circle.hpp"

namespace strakes {

namespace {

struct Envelope {
    Post::Rank from, to;
    std::uint64_t bytes;
};

// Returns false if the other process has ended.
bool write_all(int stream, const void* data, std::size_t size) {
    for (const auto* next = static_cast<const std::byte*>(data); size > 0;) {
        const ssize_t sent = ::send(stream, next, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        next += sent;
        size -= static_cast<std::size_t>(sent);
    }
    return true;
}

// For phases that move no data between ranks.
class NoExchange final : public Exchange {
  public:
    explicit NoExchange(std::vector<std::uint32_t> nodes) : nodes_(std::move(nodes)) {}

    [[nodiscard]] std::span<const std::uint32_t> nodes() const override { return nodes_; }
    Ticket send(Rank /*to*/, std::span<const std::byte> /*bytes*/) override { never(); }
    Ticket receive(Rank /*from*/, std::span<std::byte> /*room*/) override { never(); }
    std::optional<std::size_t> wait(Ticket /*ticket*/, const std::atomic<Halt>& /*halt*/) override { never(); }
    std::span<std::byte> node_memory(std::size_t /*bytes*/) override { return {}; }
    void settle() override {}

  private:
    [[noreturn]] static void never() { throw std::logic_error("emulated ranks move no data"); }

    std::vector<std::uint32_t> nodes_;
};

}  // namespace

PostOffice::PostOffice(std::vector<std::uint8_t> process_of, std::uint8_t mine, std::vector<Descriptor> streams)
    : process_of_(std::move(process_of)), mine_(mine), boxes_(process_of_.size()) {
    for (Rank rank = 0; rank < size(); ++rank)
        if (process_of_[rank] == mine_) boxes_[rank] = std::make_unique<Box>();
    for (Descriptor& stream : streams) {
        lines_.push_back(std::make_unique<Line>());
        lines_.back()->stream = std::move(stream);
    }
    for (const auto& line : lines_)
        if (line->stream) line->reader = std::thread([this, &line = *line] { read(line); });
}

PostOffice::~PostOffice() {
    for (const auto& line : lines_) {
        if (!line->stream) continue;
        ::shutdown(line->stream.get(), SHUT_RDWR);
        line->reader.join();
    }
}

void PostOffice::send(Rank from, Rank to, std::string_view bytes) {
    if (process_of_[to] == mine_) return deliver(from, to, std::string(bytes));
    Line& line = *lines_[process_of_[to]];
    const Envelope envelope{.from = from, .to = to, .bytes = bytes.size()};
    const std::lock_guard lock(line.mutex);
    // An error means that the other process has ended, which its peers detect.
    if (write_all(line.stream.get(), &envelope, sizeof envelope))
        static_cast<void>(write_all(line.stream.get(), bytes.data(), bytes.size()));
}

void PostOffice::deliver(Rank from, Rank to, std::string bytes) {
    Box& box = *boxes_[to];
    {
        const std::lock_guard lock(box.mutex);
        box.letters.emplace_back(from, std::move(bytes));
    }
    box.changed.notify_one();
}

std::string PostOffice::receive(Rank from, Rank to) {
    Box& box = *boxes_[to];
    std::unique_lock lock(box.mutex);
    auto letter = box.letters.end();
    box.changed.wait(lock, [&] {
        letter = std::ranges::find(box.letters, from, [](const auto& each) { return each.first; });
        return letter != box.letters.end();
    });
    std::string bytes = std::move(letter->second);
    box.letters.erase(letter);
    return bytes;
}

void PostOffice::read(Line& line) {
    const auto read_all = [&line](void* data, std::size_t size) {
        return size == 0 || ::recv(line.stream.get(), data, size, MSG_WAITALL) == static_cast<ssize_t>(size);
    };
    for (Envelope envelope{}; read_all(&envelope, sizeof envelope);) {
        std::string bytes(envelope.bytes, '\0');
        if (!read_all(bytes.data(), bytes.size())) return;
        deliver(envelope.from, envelope.to, std::move(bytes));
    }
}

std::unique_ptr<Exchange> EmulatedPost::exchange(Circle /*circle*/, std::vector<Rank> /*ranks*/,
                                                 std::vector<std::uint32_t> nodes) {
    return std::make_unique<NoExchange>(std::move(nodes));
}

std::unique_ptr<LibraryFiles> EmulatedPost::libraries(std::vector<Rank> /*ranks*/) { return nullptr; }

}  // namespace strakes
