// What the phases so far have left on the target: what later phases may touch.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "workload/items.hpp"

namespace strakes {

// How often data were written before: of all that are in a file those that were so the fewest times, and the most.
struct Ages {
    std::uint64_t oldest = 0, newest = 0;
};

// One set of data files. Rank r is the owner of file r, or of region r of the shared file.
struct DataSet {
    std::uint32_t number = 0;                // within the plan: part of every file's pattern
    const TransferPhase* written = nullptr;  // the phase that wrote it
    std::vector<std::uint64_t> done;         // by owner: so many of its transfers, in the order of that phase
    std::vector<Ages> ages;                  // by owner: of its part of the phase that wrote last
    bool renews = true;                      // data that are written once more are of another age
    Ages before;                             // of all that was there when this phase began
    std::uint64_t age = 0;                   // of what this phase writes first; those of later passes follow

    [[nodiscard]] Ages ages_of_all() const noexcept;
};

// A file of a pool; its number decides its name, its directory and its data.
struct PoolFile {
    std::uint64_t item = 0;
    std::uint64_t size_bytes = 0;
};

// The small files of one rank: the numbers [first, next) with their first sizes, or, once they are no longer that, a
// list.
struct Pool {
    std::uint64_t first = 0, next = 0;
    bool made = false;  // its directories
    bool listed = false;
    std::vector<PoolFile> files;
    std::uint64_t bytes = 0;

    [[nodiscard]] std::uint64_t count() const noexcept { return listed ? files.size() : next - first; }
};

// The pools of all ranks.
struct PoolsOfSet {
    std::uint32_t number = 0;  // within the plan
    std::vector<Pool> pools;   // by rank
};

// Each entry is written by the one rank that works for that owner, and read by others after the next barrier.
struct PlanState {
    explicit PlanState(const Plan& plan);

    std::map<std::string, DataSet> data;
    std::map<std::string, std::vector<Items>> files, directories;  // by owner
    std::map<std::string, PoolsOfSet> pools;
    std::map<std::string, std::uint32_t> samples;  // by the name of the set: its number within the plan
};

}  // namespace strakes
