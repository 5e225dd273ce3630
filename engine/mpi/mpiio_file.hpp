// A file that is read and written through MPI-IO.
#pragma once

#include <mpi.h>

#include "backend/library_file.hpp"

namespace strakes {

class MpiioFile final : public LibraryFile {
  public:
    // `everybody`: the ranks of the plan.
    explicit MpiioFile(MPI_Comm everybody) : everybody_(everybody) {}

    FileStep open(const LibraryUse& use) override;
    [[nodiscard]] bool is_open() const override { return file_ != MPI_FILE_NULL; }
    FileMove read_at(std::byte* to, std::size_t bytes, std::uint64_t offset) override;
    FileMove write_at(const std::byte* from, std::size_t bytes, std::uint64_t offset) override;
    FileStep synchronise() override { return step("MPI_File_sync", MPI_File_sync(file_)); }
    FileStep close() override;
    void forget() override { file_ = MPI_FILE_NULL; }
    [[nodiscard]] Hints hints() override;

  private:
    FileStep step(const char* call, int error);
    FileMove moved(int error, MPI_Status& status);

    MPI_Comm everybody_;
    MPI_File file_ = MPI_FILE_NULL;
    bool collective_ = false;
};

}  // namespace strakes
