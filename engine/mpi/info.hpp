// Hints as MPI has them.
#pragma once

#include <mpi.h>

#include "plan/plan.hpp"

namespace strakes {

// One that is freed at the end.
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
    // For a call that fills it in.
    [[nodiscard]] MPI_Info* room() noexcept { return &info_; }
    // By name.
    [[nodiscard]] Hints hints() const;

  private:
    MPI_Info info_ = MPI_INFO_NULL;
};

// Of those that a library tells for an open file the ones that are in effect.
[[nodiscard]] Hints in_effect(Hints told);
[[nodiscard]] Hints hints_of(MPI_File file);

}  // namespace strakes
