// Sizes and positions of samples, and their order in an epoch. All are computed from the seed and the numbers of files
// and samples, so nothing is stored.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include "data/pattern.hpp"
#include "plan/plan.hpp"
#include "workload/permutation.hpp"

namespace strakes {

// Return a standard normal variate from two uniform ones (Box, Muller 1958), clamped to four standard deviations.
inline double normal_of(std::uint64_t key) noexcept {
    constexpr double kUnit = 1.0 / 9007199254740992.0;  // 2^-53, which maps 53 random bits to the range 0 to 1
    constexpr double kMost = 4;
    const double even = (static_cast<double>(mix(key) >> 11U) + 1) * kUnit;
    const double turn = static_cast<double>(mix(key + 1) >> 11U) * kUnit;
    return std::clamp(std::sqrt(-2 * std::log(even)) * std::cos(2 * std::numbers::pi * turn), -kMost, kMost);
}

class SampleRule {
  public:
    SampleRule(const TrainingPhase& phase, const Plan& plan, std::uint32_t set) noexcept
        : phase_(phase), seed_(plan.seed), salt_(plan.salt), key_(mix(mix(mix(plan.seed) + 2) + set)) {}

    // Return the size of each sample of a file. The deviation is clamped symmetrically, which preserves the mean.
    [[nodiscard]] std::uint64_t size_of(std::uint64_t file) const noexcept {
        const double stdev = static_cast<double>(phase_.sample_stdev_bytes);
        const double most = static_cast<double>(phase_.sample_bytes - 1);
        const double apart = std::clamp(stdev * normal_of(key_ + 2 * file), -most, most);
        return phase_.sample_bytes + static_cast<std::uint64_t>(std::llround(apart));
    }
    [[nodiscard]] std::uint64_t file_bytes(std::uint64_t file) const noexcept {
        return size_of(file) * phase_.samples_per_file;
    }
    // Return the path in the set's directory. Files are assigned to the subdirectories round-robin.
    [[nodiscard]] std::string path_of(std::uint64_t file) const {
        const std::string name = std::to_string(file);
        return phase_.subdirectories == 0 ? name : "s" + std::to_string(file % phase_.subdirectories) + "/" + name;
    }
    [[nodiscard]] Stream stream_of(std::uint64_t file) const noexcept {
        return strakes::stream_of(seed_, salt_, mix(key_ + 2 * file + 1));
    }

    [[nodiscard]] std::uint64_t key_of_phase(std::size_t index) const noexcept { return mix(key_ ^ mix(index + 1)); }

  private:
    const TrainingPhase& phase_;
    std::uint32_t seed_;
    std::uint64_t salt_;
    std::uint64_t key_;
};

struct Sample {
    std::uint64_t file = 0;
    std::uint64_t place = 0;
};

// The order of an epoch. Batches are assigned to the ranks round-robin.
class EpochOrder {
  public:
    EpochOrder(const TrainingPhase& phase, std::uint32_t ranks, std::uint32_t rank, std::uint64_t key) noexcept
        : phase_(phase),
          ranks_(ranks),
          rank_(rank),
          order_(phase.shuffle == Shuffle::files ? phase.file_count : phase.samples(), key) {}

    [[nodiscard]] Sample at(std::uint64_t step, std::uint64_t in_batch) const noexcept {
        const std::uint64_t number = (step * ranks_ + rank_) * phase_.batch_samples + in_batch;
        const std::uint64_t each = phase_.samples_per_file;
        if (phase_.shuffle == Shuffle::samples) return {order_(number) / each, order_(number) % each};
        const std::uint64_t file = number / each;
        return {phase_.shuffle == Shuffle::files ? order_(file) : file, number % each};
    }

  private:
    const TrainingPhase& phase_;
    std::uint64_t ranks_, rank_;
    Permutation order_;
};

inline std::uint64_t compute_ns_of(const TrainingPhase& phase, std::uint64_t key, std::uint32_t rank,
                                   std::uint64_t step) noexcept {
    if (phase.compute_stdev_ns == 0) return phase.compute_ns;
    const double drawn = static_cast<double>(phase.compute_ns) +
                         static_cast<double>(phase.compute_stdev_ns) * normal_of(mix(mix(key) + rank) + 2 * step);
    return static_cast<std::uint64_t>(std::max(0.0, drawn));
}

class Batches {
  public:
    Batches(std::uint64_t count, std::uint64_t ahead) : count_(count), ready_(ahead) {}

    // Called by a reader. Wait for room in the queue and return the next batch to read. Return nothing if all batches
    // are taken or over() is true.
    template <class Over>
    std::optional<std::uint64_t> take(const Over& over) {
        std::unique_lock lock(mutex_);
        if (!wait(lock, room_, over, [this] { return next_ == count_ || next_ < wanted_ + ready_.size(); }))
            return std::nullopt;
        return next_ == count_ ? std::nullopt : std::optional(next_++);
    }
    void put(std::uint64_t batch) {
        const std::scoped_lock lock(mutex_);
        ready_[batch % ready_.size()] = true;
        filled_.notify_all();
    }

    // Called by the accelerator. Wait for a batch and free the batch's slot. Return false if over() became true first.
    template <class Over>
    bool next(const Over& over) {
        std::unique_lock lock(mutex_);
        const auto place = static_cast<std::size_t>(wanted_ % ready_.size());
        if (!wait(lock, filled_, over, [this, place] { return static_cast<bool>(ready_[place]); })) return false;
        ready_[place] = false;
        ++wanted_;
        room_.notify_all();
        return true;
    }

  private:
    template <class Over, class Ready>
    static bool wait(std::unique_lock<std::mutex>& lock, std::condition_variable& change, const Over& over,
                     const Ready& ready) {
        constexpr std::chrono::milliseconds kLook{100};  // Interval between calls of over(), which notifies nobody.
        while (!over()) {
            if (ready()) return true;
            change.wait_for(lock, kLook);
        }
        return false;
    }

    std::mutex mutex_;
    std::condition_variable room_, filled_;
    std::uint64_t count_;
    std::uint64_t next_ = 0, wanted_ = 0;
    std::vector<bool> ready_;
};

}  // namespace strakes
