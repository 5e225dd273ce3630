// POSIX calls by absolute path, as in programs that hold no directory open. The directory argument is ignored; open
// files are read and written as in backend/posix.hpp.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "backend/posix.hpp"

namespace strakes {

struct PosixPaths : Posix {
    static Opened open(int /*directory*/, const char* path, int flags) noexcept {
        const int descriptor = until_done([&] { return ::open(path, flags, kFileMode); });
        return {descriptor, descriptor < 0 ? errno : 0};
    }
    static int make_node(int /*directory*/, const char* path) noexcept {
        return error_of([&] { return ::mknod(path, S_IFREG | kFileMode, 0); });
    }
    static int make_directory(int /*directory*/, const char* path) noexcept {
        return error_of([&] { return ::mkdir(path, kDirectoryMode); });
    }
    static int status(int /*directory*/, const char* path) noexcept {
        struct stat unused;
        return error_of([&] { return ::stat(path, &unused); });
    }
    static int rename(int /*directory*/, const char* from, const char* to) noexcept {
        return error_of([&] { return std::rename(from, to); });
    }
    static int change_mode(int /*directory*/, const char* path, mode_t mode) noexcept {
        return error_of([&] { return ::chmod(path, mode); });
    }
    static int link(int /*directory*/, const char* from, const char* to) noexcept {
        return error_of([&] { return ::link(from, to); });
    }
    static FileStep truncate(int /*directory*/, const char* path, std::uint64_t bytes) noexcept {
        return {"truncate", error_of([&] { return ::truncate(path, static_cast<off_t>(bytes)); })};
    }
    static FileStep set_attribute(int /*directory*/, const char* path, std::span<const std::byte> value) noexcept {
        return {"setxattr", error_of([&] { return ::setxattr(path, kAttribute, value.data(), value.size(), 0); })};
    }
    static FileStep get_attribute(int /*directory*/, const char* path, std::span<std::byte> value) noexcept {
        const ssize_t result = ::getxattr(path, kAttribute, value.data(), value.size());
        return {"getxattr", attribute_error(result, value.size())};
    }
    static int remove_file(int /*directory*/, const char* path) noexcept {
        return error_of([&] { return ::unlink(path); });
    }
    static int remove_directory(int /*directory*/, const char* path) noexcept {
        return error_of([&] { return ::rmdir(path); });
    }
};

}  // namespace strakes
