// A file of parallel HDF5 with one dataset of bytes.
#pragma once

#include <hdf5.h>
#include <mpi.h>

#include "backend/library_file.hpp"

namespace strakes {

class Hdf5File final : public LibraryFile {
  public:
    // `everybody`: the ranks of the plan.
    explicit Hdf5File(MPI_Comm everybody) : everybody_(everybody) {}
    ~Hdf5File() override { drop_spaces(); }

    FileStep open(const LibraryUse& use) override;
    [[nodiscard]] bool is_open() const override { return file_ >= 0; }
    FileMove read_at(std::byte* to, std::size_t bytes, std::uint64_t offset) override;
    FileMove write_at(const std::byte* from, std::size_t bytes, std::uint64_t offset) override;
    FileStep synchronise() override { return step("H5Fflush", H5Fflush(file_, H5F_SCOPE_GLOBAL)); }
    FileStep close() override;
    void forget() override { file_ = data_ = H5I_INVALID_HID; }
    [[nodiscard]] Hints hints() override;
    [[nodiscard]] std::optional<std::uint64_t> data_offset() const override { return offset_; }

  private:
    FileStep open_file(const LibraryUse& use);
    FileStep make_data(const LibraryUse& use);
    FileStep prepare_moves(bool collective);
    // Selects the bytes in the dataset. Returns a memory space of the same size.
    hid_t select(std::size_t bytes, std::uint64_t offset);
    FileMove moved(herr_t result, std::size_t bytes);
    FileStep step(const char* call, std::int64_t result);
    int note_error();
    void drop_spaces();

    MPI_Comm everybody_;
    hid_t file_ = H5I_INVALID_HID, data_ = H5I_INVALID_HID;
    hid_t in_file_ = H5I_INVALID_HID, in_memory_ = H5I_INVALID_HID, nothing_ = H5I_INVALID_HID;
    hid_t way_ = H5I_INVALID_HID;  // transfer properties: independent or collective
    std::size_t in_memory_bytes_ = 0;
    std::optional<std::uint64_t> offset_;
};

}  // namespace strakes
