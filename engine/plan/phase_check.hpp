// Refusing a phase that contradicts itself or those before it.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "plan/object_reader.hpp"
#include "plan/plan.hpp"

namespace strakes {

// Refuses with the key at fault, relative to one phase.
class PhaseCheck {
  public:
    // `key` is the phase's own.
    explicit PhaseCheck(const std::string& key) : path_(key + ".") {}
    void require(bool good, const std::string& key, const std::string& fault, const char* remedy) const {
        if (!good) throw Refusal("'" + path_ + key + "' " + fault, path_ + key, remedy);
    }

  private:
    std::string path_;
};

// What the phases so far have made of one pool of small files.
struct PoolSet {
    const SmallFilesPhase* first = nullptr;
    bool filled = false;
};

// Of the mixed phase at `index` and its parts together; each part is checked as the phase that it is, too.
void check_mixed(const Plan& plan, std::size_t index);

// Of an interface that is a library over MPI, and of what only those have.
void check_library(const TransferPhase& phase, std::uint32_t ranks, const PhaseCheck& check);

// Of samples: `generated` has the sets that earlier phases made, by name.
void check_training(const TrainingPhase& phase, std::uint32_t ranks,
                    std::map<std::string, const TrainingPhase*>& generated, const PhaseCheck& check);

// Of an object store.
void check_objects(const TransferPhase& phase, const PhaseCheck& check);
void check_objects(const MetadataPhase& phase, const PhaseCheck& check);

void check_small_files(const SmallFilesPhase& phase, std::map<std::string, PoolSet>& sets, const PhaseCheck& check);

}  // namespace strakes
