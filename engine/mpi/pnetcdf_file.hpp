// A PnetCDF file with one variable of bytes.
#pragma once

#include <mpi.h>

#include "backend/library_file.hpp"

namespace strakes {

class PnetcdfFile final : public LibraryFile {
  public:
    // `everybody`: the ranks of the plan.
    explicit PnetcdfFile(MPI_Comm everybody) : everybody_(everybody) {}

    FileStep open(const LibraryUse& use) override;
    [[nodiscard]] bool is_open() const override { return open_; }
    FileMove read_at(std::byte* to, std::size_t bytes, std::uint64_t offset) override;
    FileMove write_at(const std::byte* from, std::size_t bytes, std::uint64_t offset) override;
    FileStep synchronise() override;
    FileStep close() override;
    void forget() override { open_ = false; }
    [[nodiscard]] Hints hints() override;
    [[nodiscard]] std::optional<std::uint64_t> data_offset() const override { return offset_; }

  private:
    FileStep define(std::uint64_t bytes);
    FileStep step(const char* call, int error);
    FileMove moved(int error, std::size_t bytes);

    MPI_Comm everybody_;
    bool open_ = false, collective_ = false;
    int file_ = -1, data_ = -1;
    std::uint64_t offset_ = 0;
};

}  // namespace strakes
