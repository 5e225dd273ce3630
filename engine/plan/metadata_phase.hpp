#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "backend/registry.hpp"
#include "plan/kind.hpp"

namespace strakes {

enum class MetadataOperation : std::uint8_t {
    dir_create,
    dir_stat,
    dir_rename,
    dir_remove,
    file_create,
    file_stat,
    file_open_close,
    file_read,
    file_rename,
    file_remove,
    file_chmod,
    file_link,
    file_truncate,
    file_setxattr,
    file_getxattr,
    list,
    list_stat,
    find
};
enum class Directory : std::uint8_t { unique, shared };
enum class Share : std::uint8_t { own, all };
enum class ItemOrder : std::uint8_t { in_order, random };
enum class CreateWith : std::uint8_t { open, mknod };
enum class Paths : std::uint8_t { relative, absolute, mdtest };
enum class OpenMode : std::uint8_t { least, read_write };

inline constexpr auto kMetadataOperations =
    names_of<MetadataOperation>("dir-create", "dir-stat", "dir-rename", "dir-remove", "file-create", "file-stat",
                                "file-open-close", "file-read", "file-rename", "file-remove", "file-chmod", "file-link",
                                "file-truncate", "file-setxattr", "file-getxattr", "list", "list-stat", "find");
inline constexpr auto kItemOrders = names_of<ItemOrder>("in-order", "random");
inline constexpr auto kDirectories = names_of<Directory>("unique", "shared");
inline constexpr auto kShares = names_of<Share>("own", "all");
inline constexpr auto kCreateWiths = names_of<CreateWith>("open", "mknod");
inline constexpr auto kPaths = names_of<Paths>("relative", "absolute", "mdtest");
inline constexpr auto kOpenModes = names_of<OpenMode>("least", "read-write");

struct MetadataPhase {
    std::string name;
    MetadataOperation operation{};
    Backend backend = Backend::posix;
    std::uint32_t queue_depth = 1;  // accepted as in transfer phases, but no backend supports more than 1
    std::string files = "items";
    Directory directory{};
    std::uint64_t items = 0;
    std::uint32_t depth = 0;
    std::uint32_t branch = 1;
    std::uint64_t file_bytes = 0;
    CreateWith create_with = CreateWith::open;
    Paths paths = Paths::relative;
    OpenMode open_mode = OpenMode::least;
    bool fsync = false;
    std::uint64_t rank_shift = 0;
    Share share = Share::own;
    ItemOrder order = ItemOrder::in_order;
    std::uint64_t truncate_bytes = 0;  // size of each file after file-truncate
    std::uint64_t xattr_bytes = 64;
    std::string find_name;                    // find: part of the names to match; empty: all names
    std::optional<std::uint32_t> find_bytes;  // find: size of the files to match
    bool find_all = false;                    // find: search the plan's whole directory
    Stop stop;
};

inline constexpr auto kMetadataFields = [] {
    using enum Presence;
    using Phase = MetadataPhase;
    return std::tuple{Field{"name", &Phase::name, Name{}, needed},
                      Field{"operation", &Phase::operation, OneOf{kMetadataOperations}, needed},
                      Field{"backend", &Phase::backend, OneBackendOf{Kind::metadata}},
                      Field{"queue_depth", &Phase::queue_depth, Range{1, 1}},
                      Field{"files", &Phase::files, Name{}},
                      Field{"directory", &Phase::directory, OneOf{kDirectories}, needed},
                      Field{"items", &Phase::items, Range{1, kMostCount}, needed},
                      Field{"depth", &Phase::depth, Range{0, 16}},
                      Field{"branch", &Phase::branch, Range{1, 1024}},
                      Field{"file_bytes", &Phase::file_bytes, Range{0, kMostCount}},
                      Field{"create_with", &Phase::create_with, OneOf{kCreateWiths}},
                      Field{"paths", &Phase::paths, OneOf{kPaths}},
                      Field{"open_mode", &Phase::open_mode, OneOf{kOpenModes}},
                      Field{"fsync", &Phase::fsync},
                      Field{"rank_shift", &Phase::rank_shift, Range{0, kAnyCount}},
                      Field{"share", &Phase::share, OneOf{kShares}},
                      Field{"order", &Phase::order, OneOf{kItemOrders}},
                      Field{"truncate_bytes", &Phase::truncate_bytes, Range{0, kMostCount}},
                      Field{"xattr_bytes", &Phase::xattr_bytes, Range{1, kMostAttributeBytes}},
                      Field{"find_name", &Phase::find_name, Form{}},
                      Field{"find_bytes", &Phase::find_bytes, Range{0, kMostCount}},
                      Field{"find_all", &Phase::find_all},
                      Field{"stop", &Phase::stop, Form{}}};
}();

[[nodiscard]] constexpr bool is_creation(MetadataOperation operation) noexcept {
    return operation == MetadataOperation::dir_create || operation == MetadataOperation::file_create;
}
[[nodiscard]] constexpr bool is_removal(MetadataOperation operation) noexcept {
    return operation == MetadataOperation::dir_remove || operation == MetadataOperation::file_remove;
}
[[nodiscard]] constexpr bool is_rename(MetadataOperation operation) noexcept {
    return operation == MetadataOperation::dir_rename || operation == MetadataOperation::file_rename;
}
[[nodiscard]] constexpr bool is_listing(MetadataOperation operation) noexcept {
    return operation >= MetadataOperation::list;
}
// Return whether the operation can be repeated on the same items.
[[nodiscard]] constexpr bool repeats(MetadataOperation operation) noexcept {
    return !is_creation(operation) && !is_removal(operation) && !is_rename(operation) &&
           operation != MetadataOperation::file_link && operation != MetadataOperation::file_truncate;
}
// Return whether later phases are not affected. True for file-chmod, as no operation depends on the file mode.
[[nodiscard]] constexpr bool leaves_as_is(MetadataOperation operation) noexcept {
    return repeats(operation) && operation != MetadataOperation::file_setxattr;
}
[[nodiscard]] constexpr bool on_directories(MetadataOperation operation) noexcept {
    return operation <= MetadataOperation::dir_remove;
}

}  // namespace strakes
