// Refuses a phase that contradicts itself or earlier phases.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "plan/object_reader.hpp"
#include "plan/plan.hpp"

namespace strakes {

// Throws a Refusal that names the key at fault, relative to one phase.
class PhaseCheck {
  public:
    // `key` is the path of the phase.
    explicit PhaseCheck(const std::string& key) : path_(key + ".") {}
    void require(bool good, const std::string& key, const std::string& fault, const char* remedy) const {
        if (!good) throw Refusal("'" + path_ + key + "' " + fault, path_ + key, remedy);
    }

  private:
    std::string path_;
};

// State of a pool of small files after the phases checked before.
struct PoolSet {
    const SmallFilesPhase* first = nullptr;
    bool filled = false;
};

// Check the mixed phase at `index` together with its parts. Each part is also checked as a phase of its kind.
void check_mixed(const Plan& plan, std::size_t index);

// Check backends that are MPI libraries, and the keys that only they accept.
void check_library(const TransferPhase& phase, std::uint32_t ranks, const PhaseCheck& check);

// Check a training phase. `generated` maps set names to the phases that generated them.
void check_training(const TrainingPhase& phase, std::uint32_t ranks,
                    std::map<std::string, const TrainingPhase*>& generated, const PhaseCheck& check);

// Check backends that are object stores.
void check_objects(const TransferPhase& phase, const PhaseCheck& check);
void check_objects(const MetadataPhase& phase, const PhaseCheck& check);

void check_small_files(const SmallFilesPhase& phase, std::map<std::string, PoolSet>& sets, const PhaseCheck& check);

}  // namespace strakes
