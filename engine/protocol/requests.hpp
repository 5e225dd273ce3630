// Requests to the engine, one JSON object on each line.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "plan/kind.hpp"
#include "plan/plan.hpp"
#include "system/descriptor.hpp"

namespace strakes {

struct PlanRequest {
    std::string id;
    std::string directory;
    std::vector<std::string> beside;   // further directories; the ranks use all of them round-robin
    std::vector<Identity> identities;  // of directory, then of those in beside
    Plan plan;
    double limit_s = 0;
    bool keep = false;
    bool prepared = false;    // whether directory/id may exist already
    bool check = false;       // whether to only parse and check the plan
    double progress_s = 0.5;  // seconds between progress messages and logs
    Impact impact;
    std::string line;  // the text of the request, for other processes

    [[nodiscard]] std::vector<std::string> directories() const;
};

struct CancelRequest {
    std::string id;
};

// An invalid message, or a plan that the engine refuses. `id` is empty if the id could not be read.
struct RefusedRequest {
    std::string id;
    std::string what, key, remedy;
    std::string why = "the request breaks the contract";
};

using Request = std::variant<PlanRequest, CancelRequest, RefusedRequest>;

// Parses a line and checks that this machine can run its plan.
Request parse_request(std::string_view line);
// Parses a line that another process has accepted. Does not check this machine, which is checked at the plan's start.
Request parse_followed(std::string_view line);

}  // namespace strakes
