// HDF5 over MPI-IO: one dataset, contiguous or chunked, holds all data. Every transfer accesses one hyperslab.
#ifdef STRAKES_HDF5
#include <hdf5.h>

#include <string>
#include <vector>

#include "mpi/libraries.hpp"

namespace strakes {

namespace {

constexpr const char* kData = "data";

class Id {
  public:
    Id(hid_t value, herr_t (*close)(hid_t)) : value_(value), close_(close) {}
    Id(const Id&) = delete;
    Id& operator=(const Id&) = delete;
    ~Id() {
        if (value_ >= 0) close_(value_);
    }
    [[nodiscard]] hid_t get() const noexcept { return value_; }

  private:
    hid_t value_;
    herr_t (*close_)(hid_t);
};

// If HDF5 1.10 cannot close a file, it frees the file's resources but keeps an entry for the file. MPI_Finalize() then
// fails on this entry.
bool& has_broken_file() {
    static bool broken = false;
    return broken;
}

int end_of_mpi(MPI_Comm /*self*/, int /*key*/, void* /*value*/, void* /*extra*/) {
    return has_broken_file() ? MPI_ERR_OTHER : MPI_SUCCESS;
}

// MPI_Finalize() deletes the attributes of MPI_COMM_SELF in reverse order (MPI 4.1, section 11.2.4). HDF5 closes its
// files when its attribute is deleted, but not if the deletion of a later attribute has failed.
bool watch_end_of_mpi() {
    int key = MPI_KEYVAL_INVALID;
    return MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_of_mpi, &key, nullptr) == MPI_SUCCESS &&
           MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr) == MPI_SUCCESS;
}

// Turns two defaults of HDF5 off: printing errors on standard error, and closing files at exit, after MPI was
// finalised.
void begin_library() {
    static const bool begun = H5dont_atexit() >= 0 && H5open() >= 0 && watch_end_of_mpi();
    static_cast<void>(begun);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

herr_t collect_words(unsigned /*depth*/, const H5E_error2_t* error, void* words) {
    if (error->desc != nullptr) static_cast<std::vector<std::string>*>(words)->emplace_back(error->desc);
    return 0;
}

class Hdf5File final : public LibraryFile {
  public:
    explicit Hdf5File(MPI_Comm everybody) : everybody_(everybody) {}
    ~Hdf5File() override { drop_spaces(); }

    FileStep open(const LibraryUse& use) override {
        begin_library();
        FileStep done = open_file(use);
        if (done.error == 0) done = make_data(use);
        if (done.error == 0) done = prepare_moves(use.collective);
        return done;
    }
    [[nodiscard]] bool is_open() const override { return file_ >= 0; }
    FileMove read_at(std::byte* to, std::size_t bytes, std::uint64_t offset) override {
        const hid_t memory = select(bytes, offset);
        return moved(H5Dread(data_, H5T_NATIVE_UINT8, memory, in_file_, way_, to), bytes);
    }
    FileMove write_at(const std::byte* from, std::size_t bytes, std::uint64_t offset) override {
        const hid_t memory = select(bytes, offset);
        return moved(H5Dwrite(data_, H5T_NATIVE_UINT8, memory, in_file_, way_, from), bytes);
    }
    FileStep synchronise() override { return step("H5Fflush", H5Fflush(file_, H5F_SCOPE_GLOBAL)); }
    FileStep close() override {
        drop_spaces();
        FileStep closed;
        if (data_ >= 0) closed = step("H5Dclose", H5Dclose(data_));
        const herr_t result = H5Fclose(file_);
        if (result < 0) has_broken_file() = true;
        if (closed.error == 0) closed = step("H5Fclose", result);
        forget();
        return closed;
    }
    void forget() override { file_ = data_ = H5I_INVALID_HID; }
    [[nodiscard]] Hints hints() override {
        void* handle = nullptr;
        if (H5Fget_vfd_handle(file_, H5P_DEFAULT, &handle) < 0 || handle == nullptr) return {};
        return hints_of(*static_cast<MPI_File*>(handle));
    }
    [[nodiscard]] std::optional<std::uint64_t> data_offset() const override { return offset_; }

  private:
    FileStep open_file(const LibraryUse& use) {
        const Info info(use.hints);
        const Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
        const FileStep set = step(
            "H5Pset_fapl_mpio", H5Pset_fapl_mpio(access.get(), use.together ? everybody_ : MPI_COMM_SELF, info.get()));
        if (set.error != 0) return set;
        if (use.creates) {
            const unsigned mode = use.exclusively ? H5F_ACC_EXCL : H5F_ACC_TRUNC;
            file_ = H5Fcreate(use.path.c_str(), mode, H5P_DEFAULT, access.get());
            return step("H5Fcreate", file_);
        }
        file_ = H5Fopen(use.path.c_str(), use.writes ? H5F_ACC_RDWR : H5F_ACC_RDONLY, access.get());
        return step("H5Fopen", file_);
    }
    // No fill values are written, since the transfers write all of the data.
    FileStep make_data(const LibraryUse& use) {
        if (!use.creates) {
            data_ = H5Dopen2(file_, kData, H5P_DEFAULT);
            return step("H5Dopen", data_);
        }
        const hsize_t bytes = use.bytes;
        const Id space(H5Screate_simple(1, &bytes, nullptr), H5Sclose);
        const Id creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
        H5Pset_fill_time(creation.get(), H5D_FILL_TIME_NEVER);
        H5Pset_alloc_time(creation.get(), H5D_ALLOC_TIME_EARLY);
        const hsize_t chunk = use.chunk_bytes;
        if (chunk > 0) H5Pset_chunk(creation.get(), 1, &chunk);
        data_ = H5Dcreate2(file_, kData, H5T_NATIVE_UINT8, space.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT);
        return step("H5Dcreate", data_);
    }
    FileStep prepare_moves(bool collective) {
        const haddr_t address = H5Dget_offset(data_);
        if (address != HADDR_UNDEF) offset_ = address;
        in_file_ = H5Dget_space(data_);
        const hsize_t one = 1;
        nothing_ = H5Screate_simple(1, &one, nullptr);
        H5Sselect_none(nothing_);
        way_ = H5Pcreate(H5P_DATASET_XFER);
        return step("H5Pset_dxpl_mpio",
                    H5Pset_dxpl_mpio(way_, collective ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT));
    }
    // Selects the bytes in the dataset. Returns a memory space of the same size.
    hid_t select(std::size_t bytes, std::uint64_t offset) {
        if (bytes == 0) {
            H5Sselect_none(in_file_);
            return nothing_;
        }
        const hsize_t start = offset;
        const hsize_t count = bytes;
        H5Sselect_hyperslab(in_file_, H5S_SELECT_SET, &start, nullptr, &count, nullptr);
        if (bytes != in_memory_bytes_) {
            if (in_memory_ >= 0) H5Sclose(in_memory_);
            in_memory_ = H5Screate_simple(1, &count, nullptr);
            in_memory_bytes_ = bytes;
        }
        return in_memory_;
    }
    FileMove moved(herr_t result, std::size_t bytes) {
        if (result >= 0) return {bytes, 0};
        return {0, note_error()};
    }
    FileStep step(const char* call, std::int64_t result) { return {call, result >= 0 ? 0 : note_error()}; }
    // Stores the first message of the error stack, which names the call, and the last two, which contain MPI's details.
    int note_error() {
        std::vector<std::string> words;
        H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, collect_words, &words);
        said_ = words.empty() ? "HDF5 gives no further reason" : words.front();
        for (std::size_t i = std::max<std::size_t>(1, words.size() - std::min<std::size_t>(2, words.size()));
             i < words.size(); ++i)
            said_.append(": ").append(words[i]);
        H5Eclear2(H5E_DEFAULT);
        return number_in_words(said_);
    }
    void drop_spaces() {
        for (hid_t* space : {&in_file_, &in_memory_, &nothing_}) {
            if (*space >= 0) H5Sclose(*space);
            *space = H5I_INVALID_HID;
        }
        if (way_ >= 0) H5Pclose(way_);
        way_ = H5I_INVALID_HID;
        in_memory_bytes_ = 0;
    }

    MPI_Comm everybody_;
    hid_t file_ = H5I_INVALID_HID, data_ = H5I_INVALID_HID;
    hid_t in_file_ = H5I_INVALID_HID, in_memory_ = H5I_INVALID_HID, nothing_ = H5I_INVALID_HID;
    hid_t way_ = H5I_INVALID_HID;  // transfer properties: independent or collective calls
    std::size_t in_memory_bytes_ = 0;
    std::optional<std::uint64_t> offset_;
};

}  // namespace

std::unique_ptr<LibraryFile> make_hdf5_file(MPI_Comm everybody) { return std::make_unique<Hdf5File>(everybody); }

}  // namespace strakes
#endif
