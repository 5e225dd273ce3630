// Kinds of phases, and their names in plans.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace strakes {

enum class Kind : std::uint8_t { transfer, metadata, stream, small_files, probe, stage, training, mixed };

inline constexpr std::array kKinds =
    std::to_array<std::pair<std::string_view, Kind>>({{"transfer", Kind::transfer},
                                                      {"metadata", Kind::metadata},
                                                      {"stream", Kind::stream},
                                                      {"small-files", Kind::small_files},
                                                      {"probe", Kind::probe},
                                                      {"stage", Kind::stage},
                                                      {"training", Kind::training},
                                                      {"mixed", Kind::mixed}});

class KindSet {
  public:
    constexpr KindSet(std::initializer_list<Kind> kinds) noexcept {
        for (const Kind kind : kinds) bits_ |= 1U << static_cast<unsigned>(kind);
    }
    [[nodiscard]] constexpr bool has(Kind kind) const noexcept {
        return (bits_ >> static_cast<unsigned>(kind) & 1U) != 0;
    }

  private:
    unsigned bits_ = 0;
};

}  // namespace strakes
