// Checks small-files phases.
#include <algorithm>

#include "plan/phase_check.hpp"

namespace strakes {

namespace {

using enum SmallFilesMode;

std::int64_t count(const std::vector<FlowOperation>& flow, FlowCall call) {
    return std::ranges::count(flow, call, &FlowOperation::call);
}

// At most one file is open at a time, and none at the end, so that the flow can be repeated.
void check_flow(const SmallFilesPhase& phase, const PhaseCheck& check) {
    bool open = false;
    for (std::size_t i = 0; i < phase.flow.size(); ++i) {
        const FlowOperation& operation = phase.flow[i];
        const std::string path = "flow[" + std::to_string(i) + "].";
        const bool opens = operation.call == FlowCall::create || operation.call == FlowCall::open;
        const bool anywhere = operation.call == FlowCall::stat;
        if (opens || operation.call == FlowCall::remove)
            check.require(!open, path + "op", "comes while a file is open", "Close the file before it.");
        else if (!anywhere)
            check.require(open, path + "op", "comes while no file is open", "Put create or open before it.");
        const bool moves =
            operation.call == FlowCall::write || operation.call == FlowCall::append || operation.call == FlowCall::read;
        check.require(moves || operation.bytes == 0, path + "bytes", "is only for write, append and read",
                      "Leave it out.");
        check.require(moves || operation.unit_bytes == 0, path + "unit_bytes", "is only for write, append and read",
                      "Leave it out.");
        open = opens || (open && operation.call != FlowCall::close);
    }
    check.require(!open, "flow", "leaves a file open", "Put close at its end.");
    const std::int64_t created = count(phase.flow, FlowCall::create);
    const std::int64_t removed = count(phase.flow, FlowCall::remove);
    check.require(removed <= created, "flow", "deletes more files than it creates", "Add as many create.");
    check.require(phase.stop.rule != StopRule::seconds || removed == created, "flow",
                  "creates more files than it deletes, without an end",
                  "Delete as many, or use the rule amount or stonewall.");
}

void check_same_pool(const SmallFilesPhase& phase, const SmallFilesPhase& first, const PhaseCheck& check) {
    constexpr const char* kFault = "differs from the earlier phases on the same files";
    constexpr const char* kRemedy = "Use the same value, or another name in files.";
    check.require(phase.subdirectories == first.subdirectories, "subdirectories", kFault, kRemedy);
    check.require(phase.size_low_bytes == first.size_low_bytes, "size_low_bytes", kFault, kRemedy);
    check.require(phase.size_high_bytes == first.size_high_bytes, "size_high_bytes", kFault, kRemedy);
    check.require(phase.first_item == first.first_item, "first_item", kFault, kRemedy);
}

}  // namespace

void check_small_files(const SmallFilesPhase& phase, std::map<std::string, PoolSet>& sets, const PhaseCheck& check) {
    const bool repeats = phase.mode == transactions || phase.mode == flow;
    check.require(phase.size_low_bytes <= phase.size_high_bytes, "size_high_bytes", "is less than size_low_bytes",
                  "Use at least size_low_bytes.");
    check.require((phase.mode == accumulate) == (phase.files_per_rank > 0), "files_per_rank",
                  phase.mode == accumulate ? "is missing" : "is only for the mode accumulate",
                  phase.mode == accumulate ? "Say how many files every rank adds." : "Leave it out.");
    check.require(repeats || phase.transactions == 0, "transactions", "is only for the modes transactions and flow",
                  "Leave it out.");
    check.require(!repeats || phase.transactions > 0 || phase.stop.rule == StopRule::seconds, "transactions",
                  "is missing", "Say how many every rank does, or use the rule seconds.");
    check.require(phase.stop.rule != StopRule::wear_out, "stop.rule", "wear-out is not for small files",
                  "Use the rule stonewall.");
    check.require(repeats || phase.stop.rule != StopRule::seconds, "stop.rule",
                  "seconds needs something that can be repeated on the same files", "Use the rule stonewall.");
    check.require(repeats || !phase.verify, "verify", "is only for the modes transactions and flow", "Leave it out.");
    check.require((phase.mode == flow) == !phase.flow.empty(), "flow",
                  phase.mode == flow ? "is missing" : "is only for the mode flow",
                  phase.mode == flow ? "List its operations." : "Leave it out.");
    check_flow(phase, check);

    PoolSet& set = sets[phase.files];
    if (set.first == nullptr) set.first = &phase;
    check_same_pool(phase, *set.first, check);
    if (phase.mode == accumulate) {
        set.filled = true;
        return;
    }
    check.require(set.filled, "files", "names a pool that no earlier phase filled",
                  "Add a phase of the mode accumulate with the same files before this one.");
    if (phase.mode == SmallFilesMode::remove && phase.stop.rule == StopRule::amount) set.filled = false;
}

}  // namespace strakes
