// PnetCDF: one variable for all data, in a file of the CDF-5 format, which has 64-bit offsets.
#ifdef STRAKES_PNETCDF
#include <pnetcdf.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "mpi/libraries.hpp"

namespace strakes {

namespace {

constexpr const char* kData = "data";

int number_of(int error) {
    static constexpr std::array kNumbers = std::to_array<std::pair<int, int>>({{NC_EACCESS, EACCES},
                                                                               {NC_EBAD_FILE, EINVAL},
                                                                               {NC_EEXIST, EEXIST},
                                                                               {NC_ENOENT, ENOENT},
                                                                               {NC_ENO_SPACE, ENOSPC},
                                                                               {NC_EPERM, EPERM},
                                                                               {NC_EQUOTA, EDQUOT}});
    if (error > 0) return error;  // Positive error numbers are errno values.
    const auto* found = std::ranges::find(kNumbers, error, &std::pair<int, int>::first);
    return found == kNumbers.end() ? kUnnumbered : found->second;
}

class PnetcdfFile final : public LibraryFile {
  public:
    explicit PnetcdfFile(MPI_Comm everybody) : everybody_(everybody) {}

    FileStep open(const LibraryUse& use) override {
        const Info info(use.hints);
        const MPI_Comm comm = use.together ? everybody_ : MPI_COMM_SELF;
        collective_ = use.collective;
        FileStep done;
        if (use.creates) {
            const int mode = NC_64BIT_DATA | (use.exclusively ? NC_NOCLOBBER : NC_CLOBBER);
            done = step("ncmpi_create", ncmpi_create(comm, use.path.c_str(), mode, info.get(), &file_));
        } else {
            const int mode = use.writes ? NC_WRITE : NC_NOWRITE;
            done = step("ncmpi_open", ncmpi_open(comm, use.path.c_str(), mode, info.get(), &file_));
        }
        if (done.error != 0) return done;
        open_ = true;
        done = use.creates ? define(use.bytes) : step("ncmpi_inq_varid", ncmpi_inq_varid(file_, kData, &data_));
        if (done.error != 0) return done;
        MPI_Offset offset = 0;
        done = step("ncmpi_inq_varoffset", ncmpi_inq_varoffset(file_, data_, &offset));
        offset_ = static_cast<std::uint64_t>(offset);
        if (done.error != 0 || collective_) return done;
        return step("ncmpi_begin_indep_data", ncmpi_begin_indep_data(file_));
    }
    [[nodiscard]] bool is_open() const override { return open_; }
    FileMove read_at(std::byte* to, std::size_t bytes, std::uint64_t offset) override {
        const auto start = static_cast<MPI_Offset>(offset);
        const auto count = static_cast<MPI_Offset>(bytes);
        auto* const data = reinterpret_cast<unsigned char*>(to);
        return moved(collective_ ? ncmpi_get_vara_uchar_all(file_, data_, &start, &count, data)
                                 : ncmpi_get_vara_uchar(file_, data_, &start, &count, data),
                     bytes);
    }
    FileMove write_at(const std::byte* from, std::size_t bytes, std::uint64_t offset) override {
        const auto start = static_cast<MPI_Offset>(offset);
        const auto count = static_cast<MPI_Offset>(bytes);
        const auto* const data = reinterpret_cast<const unsigned char*>(from);
        return moved(collective_ ? ncmpi_put_vara_uchar_all(file_, data_, &start, &count, data)
                                 : ncmpi_put_vara_uchar(file_, data_, &start, &count, data),
                     bytes);
    }
    FileStep synchronise() override { return step("ncmpi_sync", ncmpi_sync(file_)); }
    FileStep close() override {
        open_ = false;
        return step("ncmpi_close", ncmpi_close(file_));
    }
    void forget() override { open_ = false; }
    [[nodiscard]] Hints hints() override {
        Info info;
        if (ncmpi_inq_file_info(file_, info.room()) != NC_NOERR) return {};
        return in_effect(info.hints());
    }
    [[nodiscard]] std::optional<std::uint64_t> data_offset() const override { return offset_; }

  private:
    FileStep define(std::uint64_t bytes) {
        int dimension = -1;
        FileStep done = step("ncmpi_def_dim", ncmpi_def_dim(file_, "byte", static_cast<MPI_Offset>(bytes), &dimension));
        if (done.error == 0) done = step("ncmpi_def_var", ncmpi_def_var(file_, kData, NC_UBYTE, 1, &dimension, &data_));
        if (done.error == 0) done = step("ncmpi_enddef", ncmpi_enddef(file_));
        return done;
    }
    FileStep step(const char* call, int error) {
        if (error == NC_NOERR) return {call, 0};
        said_ = ncmpi_strerror(error);
        return {call, number_of(error)};
    }
    FileMove moved(int error, std::size_t bytes) {
        if (error == NC_NOERR) return {bytes, 0};
        said_ = ncmpi_strerror(error);
        return {0, number_of(error)};
    }

    MPI_Comm everybody_;
    bool open_ = false, collective_ = false;
    int file_ = -1, data_ = -1;
    std::uint64_t offset_ = 0;
};

}  // namespace

std::unique_ptr<LibraryFile> make_pnetcdf_file(MPI_Comm everybody) { return std::make_unique<PnetcdfFile>(everybody); }

}  // namespace strakes
#endif
