// Calls MPI_File functions with explicit offsets.
#include "mpi/mpiio_file.hpp"

#include "mpi/error.hpp"
#include "mpi/info.hpp"

namespace strakes {

FileStep MpiioFile::open(const LibraryUse& use) {
    int mode = MPI_MODE_RDONLY;
    if (use.writes) mode = use.reads ? MPI_MODE_RDWR : MPI_MODE_WRONLY;
    if (use.creates) mode |= MPI_MODE_CREATE;
    if (use.exclusively) mode |= MPI_MODE_EXCL;
    collective_ = use.collective;
    const Info info(use.hints);
    const int error =
        MPI_File_open(use.together ? everybody_ : MPI_COMM_SELF, use.path.c_str(), mode, info.get(), &file_);
    if (error != MPI_SUCCESS) file_ = MPI_FILE_NULL;  // MPI leaves it undefined
    return step("MPI_File_open", error);
}

FileMove MpiioFile::read_at(std::byte* to, std::size_t bytes, std::uint64_t offset) {
    const auto place = static_cast<MPI_Offset>(offset);
    const int count = static_cast<int>(bytes);
    MPI_Status status;
    const int error = collective_ ? MPI_File_read_at_all(file_, place, to, count, MPI_BYTE, &status)
                                  : MPI_File_read_at(file_, place, to, count, MPI_BYTE, &status);
    return moved(error, status);
}

FileMove MpiioFile::write_at(const std::byte* from, std::size_t bytes, std::uint64_t offset) {
    const auto place = static_cast<MPI_Offset>(offset);
    const int count = static_cast<int>(bytes);
    MPI_Status status;
    const int error = collective_ ? MPI_File_write_at_all(file_, place, from, count, MPI_BYTE, &status)
                                  : MPI_File_write_at(file_, place, from, count, MPI_BYTE, &status);
    return moved(error, status);
}

FileStep MpiioFile::close() {
    const int error = MPI_File_close(&file_);
    file_ = MPI_FILE_NULL;  // after a failure, ROMIO leaves the handle of a freed file
    return step("MPI_File_close", error);
}

Hints MpiioFile::hints() { return hints_of(file_); }

FileStep MpiioFile::step(const char* call, int error) {
    if (error == MPI_SUCCESS) return {call, 0};
    said_ = words_of_mpi(error);
    return {call, number_of_mpi(error)};
}

FileMove MpiioFile::moved(int error, MPI_Status& status) {
    if (error != MPI_SUCCESS) {
        said_ = words_of_mpi(error);
        return {0, number_of_mpi(error)};
    }
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    return {bytes > 0 ? static_cast<std::size_t>(bytes) : 0, 0};
}

}  // namespace strakes
