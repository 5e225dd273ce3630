#include <sys/prctl.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "session/run.hpp"

#ifdef STRAKES_S3
#include "backend/s3.hpp"
#include "backend/s3_connection.hpp"
#endif

namespace strakes {

namespace {

#ifdef STRAKES_S3
nlohmann::json removal_of(const std::string& prefix) {
    const std::size_t slash = prefix.find('/');
    if (slash == 0 || slash == std::string::npos || prefix.size() < slash + 3 ||
        prefix.find('/', slash + 1) != prefix.size() - 1)
        return {{"why", "strakes makes no such prefix"}};
    if (const std::string lacking = S3Access::lacking(); !lacking.empty()) return {{"why", lacking + " is not set"}};
    if (const std::string wrong = S3Access::wrong(); !wrong.empty()) return {{"why", wrong}};
    S3Place::choose(prefix.substr(0, slash), prefix.substr(slash + 1, prefix.size() - slash - 2));
    std::atomic<std::uint64_t> removed{0};
    if (const auto failure = S3Place::empty(removed))
        return {
            {"why", failure->operation + ": " + failure->why + "; objects removed: " + std::to_string(removed.load())}};
    return {{"removed", removed.load()}};
}
#else
nlohmann::json removal_of(const std::string& /*prefix*/) { return {{"why", "this engine was built without libcurl"}}; }
#endif

}  // namespace

int remove_objects(const std::string& prefix) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // This process must end with the command that started it.
    const nlohmann::json said = removal_of(prefix);
    std::puts(said.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace).c_str());
    return said.contains("why") ? 1 : 0;
}

}  // namespace strakes
