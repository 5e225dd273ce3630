// Converts hints to MPI_Info and back.
#include "mpi/info.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace strakes {

namespace {

// OMPIO, the MPI-IO of Open MPI, returns the hints it was given. ROMIO under Open MPI adds hints such as
// romio_filesystem_type.
bool repeats_what_it_is_given([[maybe_unused]] const Hints& hints) {
#ifdef OPEN_MPI
    return std::ranges::none_of(hints, [](const auto& hint) { return hint.first == "romio_filesystem_type"; });
#else
    return false;
#endif
}

// Returns whether Open MPI 4 or 5 reads this hint of a file, or PnetCDF adds it.
bool is_known(std::string_view name) {
    constexpr std::array<std::string_view, 6> kKnown{"cb_buffer_size",       "cb_nodes",
                                                     "collective_buffering", "OMPIO_SHAREDFP_RELAXED_ORDERING",
                                                     "stripe_size",          "stripe_width"};
    return std::ranges::find(kKnown, name) != kKnown.end() || name.starts_with("nc_") || name.starts_with("pnetcdf_");
}

}  // namespace

Info::Info(const Hints& hints) {
    if (hints.empty()) return;
    MPI_Info_create(&info_);
    for (const auto& [name, value] : hints) MPI_Info_set(info_, name.c_str(), value.c_str());
}

Hints Info::hints() const {
    Hints found;
    int count = 0;
    if (info_ != MPI_INFO_NULL) MPI_Info_get_nkeys(info_, &count);
    for (int i = 0; i < count; ++i) {
        std::array<char, MPI_MAX_INFO_KEY + 1> name{};
        std::array<char, MPI_MAX_INFO_VAL + 1> value{};
        int there = 0;
        MPI_Info_get_nthkey(info_, i, name.data());
        MPI_Info_get(info_, name.data(), MPI_MAX_INFO_VAL, value.data(), &there);
        if (there != 0) found.emplace_back(name.data(), value.data());
    }
    std::ranges::sort(found);
    return found;
}

Hints in_effect(Hints told) {
    if (repeats_what_it_is_given(told)) std::erase_if(told, [](const auto& hint) { return !is_known(hint.first); });
    return told;
}

Hints hints_of(MPI_File file) {
    Info info;
    if (MPI_File_get_info(file, info.room()) != MPI_SUCCESS) return {};
    return in_effect(info.hints());
}

}  // namespace strakes
