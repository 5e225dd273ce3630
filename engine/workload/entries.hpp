// Names of a set's files and trees, relative to the plan's directory.
#pragma once

#include <cstdint>
#include <string>

#include "plan/plan.hpp"

namespace strakes {

// The directory of a single file, with own_directory.
[[nodiscard]] inline std::string directory_of(const TransferPhase& phase, std::uint32_t file) {
    return phase.files + "." + std::to_string(file) + ".dir";
}

// The data file of an owner or, with file-per-writer, of a writer.
[[nodiscard]] inline std::string entry_of(const TransferPhase& phase, std::uint32_t file) {
    if (phase.own_directory) return directory_of(phase, file) + "/data";
    return phase.layout == Layout::shared_file ? phase.files + ".data"
                                               : phase.files + "." + std::to_string(file) + ".data";
}

// The tree of an owner's items.
[[nodiscard]] inline std::string entry_of(const MetadataPhase& phase, std::uint32_t owner) {
    return phase.directory == Directory::shared ? phase.files + ".tree"
                                                : phase.files + "." + std::to_string(owner) + ".tree";
}

// The directory of a rank's pool.
[[nodiscard]] inline std::string entry_of(const SmallFilesPhase& phase, std::uint32_t owner) {
    return phase.files + "." + std::to_string(owner) + ".pool";
}

// The directory of a rank's probe.
[[nodiscard]] inline std::string entry_of(const ProbePhase& phase, std::uint32_t owner) {
    return phase.files + "." + std::to_string(owner) + ".probe";
}

[[nodiscard]] inline std::string entry_of(const StagePhase& phase, std::uint32_t /*owner*/) {
    return phase.files + ".data";
}

// The directory of all samples.
[[nodiscard]] inline std::string entry_of(const TrainingPhase& phase, std::uint32_t /*owner*/) {
    return phase.files + ".samples";
}

// Only its parts have entries.
[[nodiscard]] inline std::string entry_of(const MixedPhase& /*phase*/, std::uint32_t /*owner*/) { return {}; }

// Return the rank whose data or items this rank works on.
[[nodiscard]] inline std::uint32_t owner_for(std::uint32_t rank, std::uint64_t shift, std::uint32_t ranks) noexcept {
    return static_cast<std::uint32_t>((rank + shift % ranks) % ranks);
}

}  // namespace strakes
