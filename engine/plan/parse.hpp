// Parses a plan from JSON: strict about its form (schemas/plan.json) and its consistency.
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "plan/object_reader.hpp"
#include "plan/plan.hpp"

namespace strakes {

// Parses and checks a plan. Throws Refusal, whose keys are paths such as phases[0].transfer_bytes.
Plan parse_plan(const nlohmann::json& document);

// Check what the schema cannot express: sizes that are multiples of others, sets that exist before their use, settings
// that contradict each other. Throws Refusal. Called by parse_plan().
void check_plan(const Plan& plan);

// Check what depends on this node: processors and NUMA nodes, available backends, permissions. Throws Refusal, which
// names keys of the plan. Not called by parse_plan(), since every process checks its own node.
void check_here(const Plan& plan);
inline constexpr const char* kNodeLacks = "this node cannot do what the plan asks for; others may";

// Checks the keys of one phase. Throws a Refusal that names the key at fault.
class PhaseCheck {
  public:
    // `key` is the path of the phase.
    explicit PhaseCheck(const std::string& key) : path_(key + ".") {}
    void require(bool good, const std::string& key, const std::string& fault, const char* remedy) const {
        if (!good) throw Refusal("'" + path_ + key + "' " + fault, path_ + key, remedy);
    }
    void only(bool good, const std::string& key, const std::string& phases) const {
        require(good, key, "is only for " + phases, "Leave it out.");
    }

  private:
    std::string path_;
};

// State of a pool of small files after the phases that were already checked.
struct PoolSet {
    const SmallFilesPhase* first = nullptr;
    bool filled = false;
};

// Check the mixed phase at `index` together with its parts. Each part is also checked as a phase of its kind.
void check_mixed(const Plan& plan, std::size_t index);

// Check backends that are MPI libraries, and the keys that only these backends accept.
void check_library(const TransferPhase& phase, std::uint32_t ranks, const PhaseCheck& check);

// Check a training phase. `generated` maps set names to the phases that generated them.
void check_training(const TrainingPhase& phase, std::uint32_t ranks,
                    std::map<std::string, const TrainingPhase*>& generated, const PhaseCheck& check);

void check_objects(const TransferPhase& phase, const PhaseCheck& check);
void check_objects(const MetadataPhase& phase, const PhaseCheck& check);

void check_small_files(const SmallFilesPhase& phase, std::map<std::string, PoolSet>& sets, const PhaseCheck& check);

}  // namespace strakes
