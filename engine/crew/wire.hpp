// Connections between the first process and the others beside MPI: their end tells at once that a process has gone, and
// waiting for them costs nothing.
#pragma once

#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "crew/proof.hpp"
#include "system/descriptor.hpp"

namespace strakes {

// Messages of fixed size, both ways, none of which waits.
template <class Said, class Heard>
    requires std::is_trivially_copyable_v<Said> && std::is_trivially_copyable_v<Heard>
class Wire {
  public:
    explicit Wire(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

    [[nodiscard]] int descriptor() const noexcept { return descriptor_.get(); }
    [[nodiscard]] bool is_open() const noexcept { return open_; }

    // Not said where the other side has not taken what was said before: what matters is said again every second.
    void say(const Said& message) {
        if (unsent_.empty()) unsent_.assign(reinterpret_cast<const char*>(&message), sizeof message);
        const ssize_t sent = ::send(descriptor_.get(), unsent_.data(), unsent_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent > 0) unsent_.erase(0, static_cast<std::size_t>(sent));
    }

    // Everything that has come; the wire is no longer open when the other side has gone.
    template <class Take>
    void hear(Take take) {
        std::array<char, 64 * sizeof(Heard)> piece;
        for (;;) {
            const ssize_t size = ::recv(descriptor_.get(), piece.data(), piece.size(), MSG_DONTWAIT);
            if (size < 0 && errno == EINTR) continue;
            if (size <= 0) {
                if (size == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) open_ = false;
                return;
            }
            heard_.append(piece.data(), static_cast<std::size_t>(size));
            std::size_t at = 0;
            for (; heard_.size() - at >= sizeof(Heard); at += sizeof(Heard)) {
                Heard message;
                std::memcpy(&message, heard_.data() + at, sizeof message);
                take(message);
            }
            heard_.erase(0, at);
        }
    }

  private:
    Descriptor descriptor_;
    std::string unsent_, heard_;
    bool open_ = true;
};

// TCP would give up after a number of tries, soon at the pace of these connections. Who is gone is told by silence;
// only one that is cut off, and that nobody can tell, ends by this.
void outlast_silence(int descriptor, std::chrono::milliseconds gone_after);

// Who may connect: processes of this node, which nobody else can; or of others.
enum class Reach : std::uint8_t { node, network };

// A leader's end: takes the others' connections in a thread of its own, since their number may be larger than what the
// system keeps waiting.
class Switchboard {
  public:
    // Takes connections of seats 1 … seats - 1.
    Switchboard(std::uint32_t seats, Reach reach);
    ~Switchboard() { stop(); }
    Switchboard(const Switchboard&) = delete;
    Switchboard& operator=(const Switchboard&) = delete;

    // Where it is, as bytes, for connect_to; empty when there can be none, and why() then says why.
    [[nodiscard]] std::string where() const;
    [[nodiscard]] const std::string& why() const noexcept { return why_; }

    // By seat, when everybody says that he is connected; seat 0 has none.
    [[nodiscard]] std::vector<Descriptor> take();

  private:
    // A connection that has not proved who it is. `greeting`: what it said first, once it has.
    struct Stray {
        Descriptor descriptor;
        std::string heard;
        std::optional<Greeting> greeting;
        Nonce nonce;
        std::chrono::steady_clock::time_point until;
    };

    [[nodiscard]] bool listen_here();
    [[nodiscard]] bool listen_on(std::uint16_t family);
    void accept_all();
    void accept_waiting();
    [[nodiscard]] bool hear(Stray& stray);
    [[nodiscard]] bool accept_proof(const Stray& stray, const Greeting& greeting, const Digest& proof) const;
    void join(Stray& stray, const Greeting& greeting);
    void stop();

    Descriptor listener_;
    std::uint16_t port_ = 0;  // of a network
    std::string name_;        // of this node
    Secret secret_{};
    std::string why_;
    std::vector<Stray> strays_;
    std::vector<Descriptor> connections_;
    std::size_t missing_;
    std::atomic<bool> stopped_{false};
    std::thread thread_;
};

// A connection to a switchboard, or why there is none.
struct Connected {
    Descriptor descriptor;
    std::string why;
};
Connected connect_to(std::string_view where, std::uint32_t seat);

}  // namespace strakes
