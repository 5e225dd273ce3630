// Writes messages as lines.
#include "protocol/output.hpp"

#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace strakes {

void Output::send(const nlohmann::ordered_json& message) {
    using Json = nlohmann::ordered_json;
    // A path may contain any bytes, but a message must be UTF-8.
    const std::string line = message.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    const std::lock_guard lock(mutex_);
    std::string_view left = line;
    while (!left.empty() && !broken()) {
        const ssize_t written = ::write(descriptor_, left.data(), left.size());
        if (written >= 0)
            left.remove_prefix(static_cast<std::size_t>(written));
        else if (errno != EINTR)
            broken_.store(true, std::memory_order_relaxed);
    }
}

}  // namespace strakes
