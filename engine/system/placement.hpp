// Binds ranks to processors and NUMA nodes, and selects the pages of their buffers.
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
    // Assigned to ranks round-robin. At most one of the two lists has entries. If both are empty, the kernel places the
    // ranks.
    std::vector<std::uint32_t> processors, numa_nodes;
    Pages buffer_pages = Pages::normal;

    // Return the processors of the rank with this index on its machine. Empty if the rank is not bound, or if the NUMA
    // node does not exist.
    [[nodiscard]] Processors processors_of(std::size_t place) const;
    [[nodiscard]] bool crowds(std::size_t ranks) const;
};

// Parse a list such as 0-3,8 and keep its order. Return nullopt for other forms, for numbers of `most` or more, and for
// descending ranges.
std::optional<std::vector<std::uint32_t>> numbers_in(std::string_view list, std::uint32_t most);

// Return the processors of a NUMA node that this process may use. Empty if the node does not exist or has only memory.
Processors processors_of_numa_node(std::uint32_t node);

// Binds the calling thread, and threads that it starts, to processors and memory while the object exists. If the memory
// of the node is full, other nodes supply memory.
class Pinned {
  public:
    Pinned() = default;
    Pinned(const Pinned&) = delete;
    Pinned& operator=(const Pinned&) = delete;
    ~Pinned();

    // Bind the thread. Must be called only once. Return error 0, or the call that failed and its error number.
    struct Taken {
        const char* call = nullptr;
        int error = 0;
    };
    [[nodiscard]] Taken take(const Placement& placement, std::size_t place);

  private:
    Processors before_;
    int policy_ = kNone;  // memory policy before take()
    std::vector<unsigned long> nodes_;

    static constexpr int kNone = -1;
};

// Return 0 if this thread may allocate memory on this NUMA node, otherwise an error number.
int memory_error(std::uint32_t node);

}  // namespace strakes
