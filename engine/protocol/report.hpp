// Writes the messages about one plan: up to kMostErrors errors, progress, logs, samples, and the final message.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.hpp"
#include "system/failure.hpp"
#include "workload/operation_log.hpp"

namespace strakes {

class Output {
  public:
    explicit Output(int descriptor) : descriptor_(descriptor) {}

    void send(const nlohmann::ordered_json& message);

    [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
    // Returns whether a write has failed. Later messages are then dropped.
    [[nodiscard]] bool broken() const noexcept { return broken_.load(std::memory_order_relaxed); }

  private:
    int descriptor_;
    std::mutex mutex_;
    std::atomic<bool> broken_{false};
};

enum class PlanStatus : std::uint8_t { ok, failed, cancelled, refused };

class Report {
  public:
    Report(Output& output, std::string id) : output_(output), id_(std::move(id)) {}

    // Where in the plan an error happened. Empty fields are left out.
    // NOLINTBEGIN(readability-redundant-member-init): as in Failure
    struct Place {
        std::optional<std::uint32_t> rank = {};
        const Phase* phase = nullptr;
        std::string key = {};
        std::string host = {};  // host of the error; empty: this host
    };
    // NOLINTEND(readability-redundant-member-init)
    void error(const Failure& failure, const Place& place);

    struct Running {
        std::size_t phase;
        const std::string& name;
        double elapsed_s;
        std::uint64_t bytes, operations;
        std::uint32_t ranks_done;
    };
    void progress(const Running& running);

    void log(const Phase& phase, std::uint32_t rank, double origin_unix_s, std::uint64_t first,
             std::span<const LoggedOperation> rows);

    // Adds type, version and the plan's id to a sample, and writes the sample.
    void sample(const nlohmann::ordered_json& message);

    void done(PlanStatus status, bool cleaned, const std::vector<std::string>& left);

    [[nodiscard]] bool has_errors() const noexcept { return errors_.load() > 0; }
    [[nodiscard]] const std::string& id() const noexcept { return id_; }

    static constexpr std::uint32_t kMostErrors = 16;

  private:
    Output& output_;
    std::string id_;
    std::atomic<std::uint32_t> errors_{0};
};

// The processes of one node. `ranks` are ranks in the MPI communicator.
struct Node {
    std::string host;
    std::vector<std::uint32_t> ranks;
    std::vector<int> pids;  // process ids by rank

    template <class Archive, class Self>
    static void members(Archive& archive, Self& self) {
        archive(self.host, self.ranks, self.pids);
    }
};

struct Together {
    std::string library;      // the MPI library's version text
    std::uint32_t size = 0;   // number of processes in the communicator
    std::uint32_t tasks = 0;  // number of tasks that the launcher started; 0: unknown
    std::vector<Node> nodes;
    double clock_uncertainty_s = 0;
};

struct Hello {
    std::string_view engine;  // version of the engine
    std::string_view clock;
    std::optional<Together> together;
};

void say_hello(Output& output, const Hello& hello);

struct Heartbeat {
    const std::string& plan_id;
    std::vector<std::uint32_t> alive;  // living ranks, ascending
    std::vector<std::uint32_t> silent;
    std::vector<std::uint32_t> gone;
};
void say_heartbeat(Output& output, const Heartbeat& heartbeat);

}  // namespace strakes
