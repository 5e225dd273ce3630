// Messages that come in: one JSON object a line.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "plan/impact.hpp"
#include "plan/plan.hpp"

namespace strakes {

struct PlanRequest {
    std::string id;
    std::string directory;
    std::vector<std::string> beside;  // further ones: the ranks take all of them in turn
    Plan plan;
    double limit_s = 0;
    bool keep = false;
    bool prepared = false;    // directory/id may be there already
    bool check = false;       // parse and check the plan, but do not run it
    double progress_s = 0.5;  // between messages of progress, and of logs
    Impact impact;
    std::string line;  // as it came, for other processes

    [[nodiscard]] std::vector<std::string> directories() const;
};

struct CancelRequest {
    std::string id;
};

// A line that is no message, or a plan that is not taken. `id` as far as it could be read.
struct RefusedRequest {
    std::string id;
    std::string what, key, remedy;
    std::string why = "the request breaks the contract";
};

using Request = std::variant<PlanRequest, CancelRequest, RefusedRequest>;

Request parse_request(std::string_view line);
// A line that another process has taken already: what this machine lacks is found when the plan begins.
Request parse_followed(std::string_view line);

}  // namespace strakes
