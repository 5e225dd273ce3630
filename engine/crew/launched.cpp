// Reads the variables of Hydra (MPICH, Intel MPI), Open MPI, MVAPICH2 and Slurm.
#include "crew/launched.hpp"

#include <array>
#include <charconv>

namespace strakes {

namespace {

// Without SLURM_NTASKS, because in a job script it counts the tasks of the job, not the ranks that mpiexec starts.
// SLURM_NTASKS is used only within a step, and only if these variables are missing.
constexpr std::array kSizes{"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"};
constexpr std::array kRanks{"PMI_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID"};

std::optional<std::uint32_t> counted(const Variables& variable, const char* name) {
    const char* value = variable(name);
    const auto count = value == nullptr ? std::nullopt : count_from(value);
    return count && *count > 0 ? count : std::nullopt;
}

}  // namespace

std::optional<std::uint32_t> count_from(std::string_view text) {
    std::uint32_t count = 0;
    const auto [end, error] = std::from_chars(text.begin(), text.end(), count);
    if (error != std::errc{} || end != text.end() || count > (1U << 31U)) return std::nullopt;
    return count;
}

Launched launched(std::optional<std::uint32_t> expected, const Variables& variable) {
    if (expected) return {.tasks = *expected, .by = "--expect-ranks"};
    for (const char* name : kSizes)
        if (const auto count = counted(variable, name)) return {.tasks = *count, .by = name};
    if (variable("SLURM_PROCID") == nullptr) return {};
    if (const auto count = counted(variable, "SLURM_NTASKS")) return {.tasks = *count, .by = "SLURM_NTASKS"};
    return {};
}

std::string_view language_for(std::string_view library, const Variables& variable) {
    if (library.starts_with("Open MPI")) return "pmix";
    // MPICH is built for PMI-2 or for PMIx, and the launcher used the other protocol.
    const bool other =
        variable("PMIX_RANK") == nullptr && (variable("PMI_RANK") != nullptr || variable("PMI_FD") != nullptr);
    return other ? "pmix" : "pmi2";
}

std::optional<std::string> size_mismatch(const Launched& launched, std::uint32_t size, std::string_view library,
                                         const Variables& variable) {
    if (launched.tasks == 0 || launched.tasks == size) return std::nullopt;
    std::string text = "the launcher started " + std::to_string(launched.tasks) + " tasks (" + launched.by +
                       "), but MPI joined " + std::to_string(size) + " of them (" + std::string(library) + ").";
    if (variable("SLURM_PROCID") != nullptr)
        return text + " Use --mpi=" + std::string(language_for(library, variable)) + " with srun.";
    text += " Start it with the mpiexec of that MPI.";
    return text;
}

bool speaks_for_all(const Variables& variable) {
    for (const char* name : kRanks)
        if (const char* value = variable(name)) return std::string_view(value) == "0";
    return true;
}

bool all_on_this_node(const Variables& variable) {
    if (const auto here = counted(variable, "MPI_LOCALNRANKS")) return here == counted(variable, "PMI_SIZE");
    if (const auto here = counted(variable, "OMPI_COMM_WORLD_LOCAL_SIZE"))
        return here == counted(variable, "OMPI_COMM_WORLD_SIZE");
    return counted(variable, "SLURM_STEP_NUM_NODES") == 1U;
}

}  // namespace strakes
