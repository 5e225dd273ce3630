// Fuzz target for the request parser, which must accept a line or refuse it with a reason. Built with -DSTRAKES_FUZZ=ON
// (./dev fuzz). engine/tests/fuzz_corpus.cpp replays the corpus in every build.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>
#include <variant>

#include "plan/object_reader.hpp"
#include "plan/parse.hpp"
#include "protocol/requests.hpp"
#include "workload/order.hpp"

using namespace strakes;

namespace {

void require(bool good) {
    if (!good) std::abort();
}

// Checks an assumption of the transfer loops: the offsets of an accepted plan fit into a file offset.
void check_accepted(const Plan& plan) {
    require(plan.ranks > 0 && !plan.phases.empty());
    for (const Phase& phase : plan.phases) {
        require(!phase_name(phase).empty());
        const auto* transfer = std::get_if<TransferPhase>(&phase);
        if (transfer == nullptr) continue;
        const Region region = region_of(*transfer, plan.ranks, plan.ranks - 1);
        require(region.transfers > 0 && region.run_bytes % region.transfer_bytes == 0);
        const std::uint64_t runs = region.transfers / (region.run_bytes / region.transfer_bytes);
        std::uint64_t end = 0;
        require(!__builtin_mul_overflow(runs - 1, region.stride, &end));
        require(!__builtin_add_overflow(end, region.base + region.run_bytes, &end));
        require(end <= INT64_MAX);
    }
}

void check_plan_alone(std::string_view text) {
    const nlohmann::json document = nlohmann::json::parse(text, nullptr, false);
    if (document.is_discarded()) return;
    try {
        check_accepted(parse_plan(document));
    } catch (const Refusal& refusal) {
        require(!std::string_view(refusal.what()).empty() && !refusal.remedy().empty());
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    check_plan_alone(text);
    const Request request = parse_request(text);
    if (const auto* plan = std::get_if<PlanRequest>(&request))
        check_accepted(plan->plan);
    else if (const auto* refused = std::get_if<RefusedRequest>(&request))
        require(!refused->what.empty() && !refused->remedy.empty());
    return 0;
}
