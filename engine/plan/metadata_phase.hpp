// Parameters of a metadata phase.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "backend/registry.hpp"
#include "plan/field.hpp"
#include "plan/stop.hpp"

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

inline constexpr std::array kMetadataOperations = std::to_array<std::pair<std::string_view, MetadataOperation>>(
    {{"dir-create", MetadataOperation::dir_create},
     {"dir-stat", MetadataOperation::dir_stat},
     {"dir-rename", MetadataOperation::dir_rename},
     {"dir-remove", MetadataOperation::dir_remove},
     {"file-create", MetadataOperation::file_create},
     {"file-stat", MetadataOperation::file_stat},
     {"file-open-close", MetadataOperation::file_open_close},
     {"file-read", MetadataOperation::file_read},
     {"file-rename", MetadataOperation::file_rename},
     {"file-remove", MetadataOperation::file_remove},
     {"file-chmod", MetadataOperation::file_chmod},
     {"file-link", MetadataOperation::file_link},
     {"file-truncate", MetadataOperation::file_truncate},
     {"file-setxattr", MetadataOperation::file_setxattr},
     {"file-getxattr", MetadataOperation::file_getxattr},
     {"list", MetadataOperation::list},
     {"list-stat", MetadataOperation::list_stat},
     {"find", MetadataOperation::find}});
inline constexpr std::array kItemOrders = std::to_array<std::pair<std::string_view, ItemOrder>>(
    {{"in-order", ItemOrder::in_order}, {"random", ItemOrder::random}});
inline constexpr std::array kDirectories = std::to_array<std::pair<std::string_view, Directory>>(
    {{"unique", Directory::unique}, {"shared", Directory::shared}});
inline constexpr std::array kShares =
    std::to_array<std::pair<std::string_view, Share>>({{"own", Share::own}, {"all", Share::all}});
inline constexpr std::array kCreateWiths =
    std::to_array<std::pair<std::string_view, CreateWith>>({{"open", CreateWith::open}, {"mknod", CreateWith::mknod}});
inline constexpr std::array kPaths = std::to_array<std::pair<std::string_view, Paths>>(
    {{"relative", Paths::relative}, {"absolute", Paths::absolute}, {"mdtest", Paths::mdtest}});
inline constexpr std::array kOpenModes = std::to_array<std::pair<std::string_view, OpenMode>>(
    {{"least", OpenMode::least}, {"read-write", OpenMode::read_write}});

struct MetadataPhase {
    std::string name;
    MetadataOperation operation{};
    Backend backend = Backend::posix;
    std::uint32_t queue_depth = 1;
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
    std::uint64_t truncate_bytes = 0;         // size of each file after file-truncate
    std::uint64_t xattr_bytes = 64;           // size of an extended attribute's value
    std::string find_name;                    // find: substring of matching names; empty: all
    std::optional<std::uint32_t> find_bytes;  // find: size of matching files
    bool find_all = false;                    // find: search the plan's whole directory
    std::uint64_t delay_ns = 0;               // busy wait after each operation
    Stop stop;
};

inline constexpr auto kMetadataFields = [] {
    using enum Presence;
    using Phase = MetadataPhase;
    return std::tuple{Field{"name", &Phase::name, Name{}, needed},
                      Field{"operation", &Phase::operation, OneOf{kMetadataOperations}, needed},
                      Field{"backend", &Phase::backend, OneBackendOf{Kind::metadata}},
                      Field{"queue_depth", &Phase::queue_depth, Range{1, kMostDepth}},
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
                      Field{"delay_ns", &Phase::delay_ns, Range{0, kMostDelayNs}},
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
// Reads directories with all of their entries, rather than single items.
[[nodiscard]] constexpr bool is_listing(MetadataOperation operation) noexcept {
    return operation >= MetadataOperation::list;
}
// Can be repeated on the same items.
[[nodiscard]] constexpr bool repeats(MetadataOperation operation) noexcept {
    return !is_creation(operation) && !is_removal(operation) && !is_rename(operation) &&
           operation != MetadataOperation::file_link && operation != MetadataOperation::file_truncate;
}
// Leaves the items as later phases expect them. file-chmod does: no operation depends on the mode that it sets.
[[nodiscard]] constexpr bool leaves_as_is(MetadataOperation operation) noexcept {
    return repeats(operation) && operation != MetadataOperation::file_setxattr;
}
[[nodiscard]] constexpr bool on_directories(MetadataOperation operation) noexcept {
    return operation <= MetadataOperation::dir_remove;
}

}  // namespace strakes
