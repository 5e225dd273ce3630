// What a transfer phase asks of the file of a backend: steps around the loop that may fail, and moves inside it.
//
//     class File {
//         static constexpr bool kQueues;          // many requests at once (workload/transfer_queue.hpp)
//         static constexpr bool kWritingReads;    // writing needs a descriptor that can be read, too
//         FileStep prepare(std::span<std::byte> buffer, std::uint32_t depth);   // before the file is opened
//         FileStep attach(Descriptor descriptor, const FileUse& use);           // just opened; part of opening
//         FileMove read_at(std::byte* to, std::size_t bytes, std::uint64_t offset);           // not when it queues
//         FileMove write_at(const std::byte* from, std::size_t bytes, std::uint64_t offset);
//         FileStep synchronise();
//         FileStep close();
//         bool is_open() const;
//     };
#pragma once

#include <cstddef>
#include <cstdint>

namespace strakes {

// A call and its error number; 0 when it went well.
struct FileStep {
    const char* call = "";
    int error = 0;
};

// Bytes moved, fewer than asked for at the end of the file or where the system chose so, and the error number.
struct FileMove {
    std::size_t bytes;
    int error;
};

// What will be done to the bytes [begin, end) of the file.
struct FileUse {
    bool reads, writes;
    std::uint64_t begin, end;
};

}  // namespace strakes
