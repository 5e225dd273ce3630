// Metadata operations on one item, as function objects for the timed loop. They return 0 or an error number; `call`
// names the call that failed.
#pragma once

#include <fcntl.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/file.hpp"
#include "data/pattern.hpp"
#include "workload/items.hpp"
#include "workload/transfer_loop.hpp"

namespace strakes {

// Data of an item, moved in pieces through one buffer. All pieces written differ.
struct ItemData {
    std::span<std::byte> buffer;
    std::uint64_t bytes = 0;
    bool synchronise = false;   // whether to synchronise before the file is closed
    Stream stream{};            // initial content of the buffer
    std::uint64_t written = 0;  // number of pieces written, in all items
};

template <class Io>
int move_item(bool reading, int descriptor, ItemData& data) noexcept {
    for (std::uint64_t done = 0; done < data.bytes;) {
        const std::uint64_t left = data.bytes - done;
        const auto piece = left < data.buffer.size() ? data.buffer.first(left) : data.buffer;
        if (!reading) renew(piece, data.stream, data.written++);
        std::uint64_t offset = done;
        if (const int error = move_all<Io>(reading, descriptor, piece, offset); error != 0) return error;
        done += piece.size();
    }
    return 0;
}

template <class Io>
struct DirectoryCreate {
    const char* call = "mkdir";
    template <class Name>
    int operator()(int directory, const Name& name) noexcept {
        return Io::make_directory(directory, name.c_str());
    }
};

template <class Io>
struct Status {
    const char* call = "stat";
    template <class Name>
    int operator()(int directory, const Name& name) noexcept {
        return Io::status(directory, name.c_str());
    }
};

template <class Io>
struct Rename {
    const char* call = "rename";
    template <class Name>
    int operator()(int directory, const Name& name) noexcept {
        const Name other = name.toggled();
        return Io::rename(directory, name.c_str(), other.c_str());
    }
};

template <class Io>
struct Link {
    const char* call = "link";
    template <class Name>
    int operator()(int directory, const Name& name) noexcept {
        const Name other = name.linked();
        return Io::link(directory, name.c_str(), other.c_str());
    }
};

// Each pass sets a mode that differs from the mode of the previous pass. The owner's permissions do not change.
template <class Io>
struct ChangeMode {
    unsigned others = 0;
    const char* call = "chmod";
    void restart() noexcept { ++others; }
    template <class Name>
    int operator()(int directory, const Name& name) noexcept {
        return Io::change_mode(directory, name.c_str(), Io::kFileMode | (others % 0100U));
    }
};

template <class Io>
struct Truncate {
    std::uint64_t bytes = 0;
    const char* call = "truncate";
    template <class Name>
    int operator()(int directory, const Name& name) noexcept {
        const FileStep step = Io::truncate(directory, name.c_str(), bytes);
        call = step.call;
        return step.error;
    }
};

// Each pass sets a value that differs from the value of the previous pass.
template <class Io>
struct SetAttribute {
    std::span<std::byte> value;
    const char* call = "setxattr";
    void restart() noexcept { value.front() ^= std::byte{1}; }
    template <class Name>
    int operator()(int directory, const Name& name) noexcept {
        const FileStep step = Io::set_attribute(directory, name.c_str(), value);
        call = step.call;
        return step.error;
    }
};

template <class Io>
struct GetAttribute {
    std::span<std::byte> value;
    const char* call = "getxattr";
    template <class Name>
    int operator()(int directory, const Name& name) noexcept {
        const FileStep step = Io::get_attribute(directory, name.c_str(), value);
        call = step.call;
        return step.error;
    }
};

template <class Io>
struct DirectoryRemove {
    const char* call = "rmdir";
    template <class Name>
    int operator()(int directory, const Name& name) noexcept {
        return Io::remove_directory(directory, name.c_str());
    }
};

template <class Io>
struct FileRemove {
    const char* call = "unlink";
    template <class Name>
    int operator()(int directory, const Name& name) noexcept {
        return Io::remove_file(directory, name.c_str());
    }
};

template <class Io>
struct MakeNode {
    const char* call = "mknod";
    template <class Name>
    int operator()(int directory, const Name& name) noexcept {
        return Io::make_node(directory, name.c_str());
    }
};

template <class Io, bool kReading, int flags>
struct OpenMoveClose {
    ItemData data;
    const char* call = "open";
    template <class Name>
    int operator()(int directory, const Name& name) noexcept {
        const auto [descriptor, open_error] = Io::open(directory, name.c_str(), flags);
        if (open_error != 0) return open_error;
        const int move_error = move_item<Io>(kReading, descriptor, data);
        const int sync_error = data.synchronise && move_error == 0 ? Io::synchronise(descriptor) : 0;
        const int close_error = Io::close(descriptor);
        if (move_error != 0)
            call = kReading ? "read" : "write";
        else if (sync_error != 0)
            call = "fsync";
        else if (close_error != 0)
            call = "close";
        if (move_error != 0) return move_error;
        return sync_error != 0 ? sync_error : close_error;
    }
};

template <class Io>
using FileCreate = OpenMoveClose<Io, false, O_CREAT | O_EXCL | O_WRONLY>;
template <class Io>
using FileOpen = OpenMoveClose<Io, true, O_RDONLY | O_NOFOLLOW>;
// These operations open files for reading and writing but do only one of both. Creation accepts existing files.
template <class Io>
using FileCreateReadWrite = OpenMoveClose<Io, false, O_CREAT | O_RDWR | O_NOFOLLOW>;
template <class Io>
using FileOpenReadWrite = OpenMoveClose<Io, true, O_RDWR | O_NOFOLLOW>;

}  // namespace strakes
