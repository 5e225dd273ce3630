// Parameters of a small-files phase.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "backend/registry.hpp"
#include "plan/field.hpp"
#include "plan/stop.hpp"

namespace strakes {

enum class SmallFilesMode : std::uint8_t { accumulate, transactions, remove, flow };
enum class FlowCall : std::uint8_t { create, open, write, append, read, stat, fsync, close, remove };

inline constexpr std::array kSmallFilesModes =
    std::to_array<std::pair<std::string_view, SmallFilesMode>>({{"accumulate", SmallFilesMode::accumulate},
                                                                {"transactions", SmallFilesMode::transactions},
                                                                {"remove", SmallFilesMode::remove},
                                                                {"flow", SmallFilesMode::flow}});
inline constexpr std::array kFlowCalls =
    std::to_array<std::pair<std::string_view, FlowCall>>({{"create", FlowCall::create},
                                                          {"open", FlowCall::open},
                                                          {"write", FlowCall::write},
                                                          {"append", FlowCall::append},
                                                          {"read", FlowCall::read},
                                                          {"stat", FlowCall::stat},
                                                          {"fsync", FlowCall::fsync},
                                                          {"close", FlowCall::close},
                                                          {"delete", FlowCall::remove}});

struct FlowOperation {
    FlowCall call{};
    std::uint64_t bytes = 0;       // 0: the whole file
    std::uint64_t unit_bytes = 0;  // per call; 0: the phase's unit
};

struct SmallFilesPhase {
    std::string name;
    SmallFilesMode mode{};
    Backend backend = Backend::posix;
    std::string files = "pool";
    std::uint64_t files_per_rank = 0;  // accumulate only
    std::uint64_t subdirectories = 0;
    std::uint64_t size_low_bytes = 0;
    std::uint64_t size_high_bytes = 0;
    std::uint64_t read_unit_bytes = 4096;
    std::uint64_t write_unit_bytes = 4096;
    std::uint64_t transactions = 0;
    std::uint32_t read_percent = 50;
    std::uint32_t create_percent = 50;
    std::uint64_t first_item = 0;
    bool verify = false;
    std::vector<FlowOperation> flow;
    Stop stop;

    // Every rank works on its own pool.
    static constexpr std::uint64_t rank_shift = 0;
};

inline constexpr auto kFlowFields = std::tuple{Field{"op", &FlowOperation::call, OneOf{kFlowCalls}, Presence::needed},
                                               Field{"bytes", &FlowOperation::bytes, Range{0, kMostCount}},
                                               Field{"unit_bytes", &FlowOperation::unit_bytes, Range{0, kMostCount}}};

inline constexpr auto kSmallFilesFields = [] {
    using enum Presence;
    using Phase = SmallFilesPhase;
    constexpr std::uint64_t kMostItem = std::uint64_t{1} << 40U;
    return std::tuple{Field{"name", &Phase::name, Name{}, needed},
                      Field{"mode", &Phase::mode, OneOf{kSmallFilesModes}, needed},
                      Field{"backend", &Phase::backend, OneBackendOf{Kind::small_files}},
                      Field{"files", &Phase::files, Name{}},
                      Field{"files_per_rank", &Phase::files_per_rank, Range{0, kMostCount}},
                      Field{"subdirectories", &Phase::subdirectories, Range{0, 65536}},
                      Field{"size_low_bytes", &Phase::size_low_bytes, Range{0, kMostCount}, needed},
                      Field{"size_high_bytes", &Phase::size_high_bytes, Range{0, kMostCount}, needed},
                      Field{"read_unit_bytes", &Phase::read_unit_bytes, Range{1, kMostCount}},
                      Field{"write_unit_bytes", &Phase::write_unit_bytes, Range{1, kMostCount}},
                      Field{"transactions", &Phase::transactions, Range{0, kMostCount}},
                      Field{"read_percent", &Phase::read_percent, kPercent},
                      Field{"create_percent", &Phase::create_percent, kPercent},
                      Field{"first_item", &Phase::first_item, Range{0, kMostItem}},
                      Field{"verify", &Phase::verify},
                      Field{"flow", &Phase::flow, Form{}},
                      Field{"stop", &Phase::stop, Form{}}};
}();

}  // namespace strakes
