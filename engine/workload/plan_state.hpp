// State that earlier phases left on the target, and that later phases may use.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "workload/items.hpp"

namespace strakes {

// Lowest and highest age (number of earlier writes) of the data in a file or a part of a file.
struct Ages {
    std::uint64_t oldest = 0, newest = 0;
};

// One set of data files. Rank r is the owner of file r, or of region r of the shared file.
struct DataSet {
    std::uint32_t number = 0;                // number of the set in the plan, which is part of every file's pattern
    const TransferPhase* written = nullptr;  // the phase that wrote the files
    std::vector<std::uint64_t> done;         // owner -> completed transfers, in the order of the writing phase
    std::vector<Ages> ages;                  // owner -> ages of the owner's data
    bool renews = true;                      // whether rewritten data gets a new age
    Ages before;                             // ages of all data when this phase began
    std::uint64_t age = 0;                   // age of this phase's first pass; later passes have higher ages

    [[nodiscard]] Ages ages_of_all() const noexcept;
};

// A file of a pool. Its number determines its name, directory and data.
struct PoolFile {
    std::uint64_t item = 0;
    std::uint64_t size_bytes = 0;
};

// The small files of one rank: the numbers [first, next) with their initial sizes, or (`listed`) a list of files.
struct Pool {
    std::uint64_t first = 0, next = 0;
    bool made = false;  // whether the pool's directories exist
    bool listed = false;
    std::vector<PoolFile> files;
    std::uint64_t bytes = 0;

    [[nodiscard]] std::uint64_t count() const noexcept { return listed ? files.size() : next - first; }
};

struct PoolsOfSet {
    std::uint32_t number = 0;  // number of the pools in the plan
    std::vector<Pool> pools;   // pools by rank
};

// Each entry is written by one rank, for the entry's owner, and read by other ranks only after the next barrier.
struct PlanState {
    explicit PlanState(const Plan& plan);

    std::map<std::string, DataSet> data;
    std::map<std::string, std::vector<Items>> files, directories;  // items by owner
    std::map<std::string, PoolsOfSet> pools;
    std::map<std::string, std::uint32_t> samples;  // name of a set of samples -> its number in the plan
};

[[nodiscard]] inline std::string directory_of(const TransferPhase& phase, std::uint32_t file) {
    return phase.files + "." + std::to_string(file) + ".dir";
}

// The data file of an owner or, with file-per-writer, of a writer.
[[nodiscard]] inline std::string entry_of(const TransferPhase& phase, std::uint32_t file) {
    if (phase.own_directory) return directory_of(phase, file) + "/data";
    return phase.layout == Layout::shared_file ? phase.files + ".data"
                                               : phase.files + "." + std::to_string(file) + ".data";
}

[[nodiscard]] inline std::string entry_of(const MetadataPhase& phase, std::uint32_t owner) {
    return phase.directory == Directory::shared ? phase.files + ".tree"
                                                : phase.files + "." + std::to_string(owner) + ".tree";
}

[[nodiscard]] inline std::string entry_of(const SmallFilesPhase& phase, std::uint32_t owner) {
    return phase.files + "." + std::to_string(owner) + ".pool";
}

[[nodiscard]] inline std::string entry_of(const ProbePhase& phase, std::uint32_t owner) {
    return phase.files + "." + std::to_string(owner) + ".probe";
}

[[nodiscard]] inline std::string entry_of(const StagePhase& phase, std::uint32_t /*owner*/) {
    return phase.files + ".data";
}

[[nodiscard]] inline std::string entry_of(const TrainingPhase& phase, std::uint32_t /*owner*/) {
    return phase.files + ".samples";
}

// A mixed phase has no entry; its parts have entries.
[[nodiscard]] inline std::string entry_of(const MixedPhase& /*phase*/, std::uint32_t /*owner*/) { return {}; }

[[nodiscard]] inline std::uint32_t owner_for(std::uint32_t rank, std::uint64_t shift, std::uint32_t ranks) noexcept {
    return static_cast<std::uint32_t>((rank + shift % ranks) % ranks);
}

}  // namespace strakes
