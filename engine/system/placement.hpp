// Where the ranks of a machine run, and where and of which pages their memory is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "system/buffer.hpp"
#include "system/processors.hpp"

namespace strakes {

struct Placement {
    // The ranks take them in turn; none: they run where the kernel lets them. At most one of the two is there.
    std::vector<std::uint32_t> processors, numa_nodes;
    Pages buffer_pages = Pages::normal;

    // What the rank at this place of its machine keeps to; empty: anywhere, or there is no such node.
    [[nodiscard]] Processors processors_of(std::size_t place) const;
    // Whether some of so many ranks of a machine must wait for each other while all of them compute.
    [[nodiscard]] bool crowds(std::size_t ranks) const;
};

// The numbers of a list such as 0-3,8, in its order. None where it has another form, or numbers from `most` on, or goes
// backwards.
std::optional<std::vector<std::uint32_t>> numbers_in(std::string_view list, std::uint32_t most);

// Those of a NUMA node of this machine that this process may use; none where there is no such node, or it has only
// memory.
Processors processors_of_numa_node(std::uint32_t node);

// While it is there, the calling thread, and threads that it makes, run where they were put, and take memory there for
// as long as there is some.
class Pinned {
  public:
    Pinned() = default;
    Pinned(const Pinned&) = delete;
    Pinned& operator=(const Pinned&) = delete;
    ~Pinned();

    // Returns 0, or the number of the error and the call that failed. Once.
    struct Taken {
        const char* call = nullptr;
        int error = 0;
    };
    [[nodiscard]] Taken take(const Placement& placement, std::size_t place);

  private:
    Processors before_;
    int policy_ = kNone;  // of memory, before
    std::vector<unsigned long> nodes_;

    static constexpr int kNone = -1;
};

// Whether this thread may be told to take its memory from this NUMA node: 0, or an error number.
int memory_error(std::uint32_t node);

}  // namespace strakes
