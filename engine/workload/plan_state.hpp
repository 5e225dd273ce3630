// State that earlier phases left on the target, and that later phases may use.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "workload/items.hpp"

namespace strakes {

// Number of times that data was written before: the lowest and the highest number in a file or a part of it.
struct Ages {
    std::uint64_t oldest = 0, newest = 0;
};

// One set of data files. Rank r is the owner of file r, or of region r of the shared file.
struct DataSet {
    std::uint32_t number = 0;                // within the plan: part of every file's pattern
    const TransferPhase* written = nullptr;  // the phase that wrote it
    std::vector<std::uint64_t> done;         // by owner: completed transfers, in the order of that phase
    std::vector<Ages> ages;                  // by owner: ages of its part
    bool renews = true;                      // rewritten data gets a new age
    Ages before;                             // of all data when this phase began
    std::uint64_t age = 0;                   // of this phase's first pass; later passes have higher ages

    [[nodiscard]] Ages ages_of_all() const noexcept;
};

// A file of a pool. Its number determines its name, directory and data.
struct PoolFile {
    std::uint64_t item = 0;
    std::uint64_t size_bytes = 0;
};

// The small files of one rank. They are the numbers [first, next) with their initial sizes or, after other changes, a
// list.
struct Pool {
    std::uint64_t first = 0, next = 0;
    bool made = false;  // its directories exist
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

// Each entry is written by the one rank that works for its owner. Other ranks read it after the next barrier.
struct PlanState {
    explicit PlanState(const Plan& plan);

    std::map<std::string, DataSet> data;
    std::map<std::string, std::vector<Items>> files, directories;  // by owner
    std::map<std::string, PoolsOfSet> pools;
    std::map<std::string, std::uint32_t> samples;  // number within the plan, by name of the set
};

}  // namespace strakes
