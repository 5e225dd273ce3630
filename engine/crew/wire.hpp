// Connections between processes, without MPI. When a process ends, its connections end immediately. Waiting for
// messages takes no processor time.
#pragma once

#include <netinet/in.h>
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

// Sends and receives messages of fixed size without blocking.
template <class Said, class Heard>
    requires std::is_trivially_copyable_v<Said> && std::is_trivially_copyable_v<Heard>
class Wire {
  public:
    explicit Wire(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

    [[nodiscard]] int descriptor() const noexcept { return descriptor_.get(); }
    [[nodiscard]] bool is_open() const noexcept { return open_; }

    // Drops the message if the previous message is not yet sent. The state is sent again every second anyway.
    void say(const Said& message) {
        if (unsent_.empty()) unsent_.assign(reinterpret_cast<const char*>(&message), sizeof message);
        const ssize_t sent = ::send(descriptor_.get(), unsent_.data(), unsent_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent > 0) unsent_.erase(0, static_cast<std::size_t>(sent));
    }

    // Calls take() for all messages that have arrived. is_open() is then false if the peer has closed the connection.
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

// Set the TCP user time-out to twice `gone_after`. It ends a process that is cut off and receives no order to end.
void outlast_silence(int descriptor, std::chrono::milliseconds gone_after);

// Who may connect: only processes of this node (Unix sockets), or processes of other nodes (TCP).
enum class Reach : std::uint8_t { node, network };

// The leader's end of the connections. Accepts connections in a separate thread, because more connections may arrive
// than fit into the system's queue.
class Switchboard {
  public:
    // Accepts connections of the processes with the seats (numbers) 1 … `seats` - 1.
    Switchboard(std::uint32_t seats, Reach reach);
    ~Switchboard() { stop(); }
    Switchboard(const Switchboard&) = delete;
    Switchboard& operator=(const Switchboard&) = delete;

    // Returns the packed addresses for connect_to(). Empty if no connection can be accepted; why() returns the reason.
    [[nodiscard]] std::string where() const;
    [[nodiscard]] const std::string& why() const noexcept { return why_; }

    // Returns the connections by seat; seat 0 is empty. Must be called after all processes have connected.
    [[nodiscard]] std::vector<Descriptor> take();

  private:
    // A connection that is not authenticated. `greeting` is set after the first message has arrived.
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
    in_port_t port_ = 0;  // TCP port, in network byte order
    std::string name_;    // name of the Unix socket
    Secret secret_{};
    std::string why_;
    std::vector<Stray> strays_;
    std::vector<Descriptor> connections_;
    std::size_t missing_;
    std::atomic<bool> stopped_{false};
    std::thread thread_;
};

struct Connected {
    Descriptor descriptor;
    std::string why;
};
Connected connect_to(std::string_view where, std::uint32_t seat);

}  // namespace strakes
