// Hints as an MPI_Info object.
#pragma once

#include <mpi.h>

#include "plan/plan.hpp"

namespace strakes {

// Owns an MPI_Info object.
class Info {
  public:
    Info() = default;
    explicit Info(const Hints& hints);
    Info(const Info&) = delete;
    Info& operator=(const Info&) = delete;
    ~Info() {
        if (info_ != MPI_INFO_NULL) MPI_Info_free(&info_);
    }
    [[nodiscard]] MPI_Info get() const noexcept { return info_; }
    // For a call that sets the object.
    [[nodiscard]] MPI_Info* room() noexcept { return &info_; }
    // Returns the hints, sorted by name.
    [[nodiscard]] Hints hints() const;

  private:
    MPI_Info info_ = MPI_INFO_NULL;
};

// Returns the hints in effect among the hints that a library reports for an open file.
[[nodiscard]] Hints in_effect(Hints told);
[[nodiscard]] Hints hints_of(MPI_File file);

}  // namespace strakes
