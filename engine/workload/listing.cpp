// Traversal of directories: list reads their entries, list-stat also stats each entry, and find visits all directories
// of the trees. If find has to compare sizes, it stats the entries whose names match.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/posix.hpp"
#include "system/descriptor.hpp"
#include "workload/permutation.hpp"
#include "workload/plan_state.hpp"
#include "workload/workload.hpp"

namespace strakes {

namespace {

// Some file systems do not return the type of an entry.
bool is_directory(int parent, const dirent& entry) noexcept {
    struct stat status{};
    if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_DIR;
    return ::fstatat(parent, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
}

// A directory to read. If several ranks share the directory, each takes the entries whose names hash to its number.
struct Task {
    std::string path;  // path below the plan's directory
    std::uint32_t place = 0;
    std::uint32_t sharers = 1;
    bool foreign = false;  // outside the item trees; find then descends into all directories

    [[nodiscard]] bool has(std::string_view name) const noexcept {
        if (sharers == 1) return true;
        std::uint64_t sum = 0;
        for (const char letter : name) sum = mix(sum + static_cast<unsigned char>(letter));
        return sum % sharers == place;
    }
};

class Listing final : public Workload {
  public:
    Listing(const PhaseSetting& setting, const Seat& seat)
        : setting_(setting),
          seat_(seat),
          phase_(std::get<MetadataPhase>(setting.phase())),
          owner_(owner_for(seat.rank, phase_.rank_shift, setting.plan.ranks)),
          pace_(setting.pace(0, setting.plan.ranks)) {}

    Outcome lead() override { return std::nullopt; }

    Outcome prepare(RankResult& /*result*/) override {
        seat_.progress.at("preparing");
        tasks_.clear();
        if (!phase_.find_all) {
            add_trees(phase_);
            return std::nullopt;
        }
        trees_.clear();
        const bool rest = owner_ == 0 || phase_.share == Share::all;
        if (rest) tasks_.push_back({.path = ".", .foreign = true});
        std::set<std::string_view> sets;
        for (const Phase& other : setting_.plan.phases) {
            const auto* items = std::get_if<MetadataPhase>(&other);
            if (items == nullptr || !sets.insert(items->files).second) continue;
            add_trees(*items);
            for (std::uint32_t owner = 0; rest && owner < setting_.plan.ranks; ++owner)
                if (has_items(*items, owner)) trees_.insert(entry_of(*items, owner));
        }
        return std::nullopt;
    }

    void run(RankResult& result) override {
        seat_.progress.at("listing");
        const Clock& clock = setting_.clock;
        result.start = before_ = clock.now();
        deadline_ = deadline_after(clock, result.start, phase_.stop);
        pace_ = setting_.pace(result.start, setting_.plan.ranks);
        const bool repeat = phase_.stop.rule == StopRule::seconds;
        const auto one_directory = [&](const Task& task) {
            return list(setting_.root, task.path.c_str(), task, task.path, result);
        };
        do {
            passed_ = result.operations;
        } while (std::ranges::all_of(tasks_, one_directory) && repeat && result.operations > passed_);
        result.held_ns = pace_.held_ns();
        result.end = clock.now();
    }

    void finish(RankResult& /*result*/) override {
        seat_.progress.at("closing");
        tasks_.clear();
    }

  private:
    [[nodiscard]] bool finds() const noexcept { return phase_.operation == MetadataOperation::find; }

    // Add this rank's part of the trees of a set. `set` is any phase of the set.
    void add_trees(const MetadataPhase& set) {
        const std::uint32_t ranks = setting_.plan.ranks;
        const bool all = phase_.share == Share::all;
        if (set.directory == Directory::unique) {
            for (std::uint32_t i = 0; i < (all ? ranks : 1); ++i) {
                const std::uint32_t owner = (owner_ + i) % ranks;
                if (has_items(set, owner))
                    for (std::string& path : directories(set, owner)) tasks_.push_back({.path = std::move(path)});
            }
            return;
        }
        std::uint32_t owner = 0;
        while (owner < ranks && !has_items(set, owner)) ++owner;
        if (owner == ranks) return;
        std::vector<std::string> paths = directories(set, owner);
        if (!all) return deal(paths, ranks);
        for (std::string& path : paths) tasks_.push_back({.path = std::move(path)});
    }

    // An owner without items may have no tree.
    [[nodiscard]] bool has_items(const MetadataPhase& of, std::uint32_t owner) const {
        const auto some = [&](const std::map<std::string, std::vector<Items>>& sets) {
            const auto set = sets.find(of.files);
            return set != sets.end() && set->second.at(owner).first < set->second.at(owner).last;
        };
        return some(setting_.state.files) || some(setting_.state.directories);
    }

    // Return the leaves of an owner's tree. For find, return all of its directories.
    [[nodiscard]] std::vector<std::string> directories(const MetadataPhase& set, std::uint32_t owner) const {
        std::vector<std::string> paths, level{entry_of(set, owner)};
        for (std::uint32_t depth = 0; depth < set.depth; ++depth) {
            if (finds()) paths.insert(paths.end(), level.begin(), level.end());
            std::vector<std::string> below;
            below.reserve(level.size() * set.branch);
            for (const std::string& path : level)
                for (std::uint32_t i = 0; i < set.branch; ++i) below.push_back(path + "/b" + std::to_string(i));
            level = std::move(below);
        }
        paths.insert(paths.end(), level.begin(), level.end());
        return paths;
    }

    // Divide the directories of a tree evenly among the ranks. If there are fewer directories than ranks, several ranks
    // share a directory.
    void deal(std::vector<std::string>& paths, std::uint32_t ranks) {
        const std::uint64_t many = paths.size();
        if (many >= ranks) {
            for (std::uint64_t i = owner_ * many / ranks; i < (owner_ + std::uint64_t{1}) * many / ranks; ++i)
                tasks_.push_back({.path = std::move(paths[i])});
            return;
        }
        const std::uint64_t mine = owner_ * many / ranks;
        const auto first_of = [&](std::uint64_t path) { return (path * ranks + many - 1) / many; };
        tasks_.push_back({.path = std::move(paths[mine]),
                          .place = static_cast<std::uint32_t>(owner_ - first_of(mine)),
                          .sharers = static_cast<std::uint32_t>(first_of(mine + 1) - first_of(mine))});
    }

    bool list(int parent, const char* name, const Task& task, const std::string& path, RankResult& result) {
        auto [descriptor, error] = Posix::open(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (error != 0) return fail("open", error, path, result);
        const DirectoryStream stream = stream_of(Descriptor(descriptor));
        if (!stream) return fail("opendir", errno, path, result);
        ++result.listed.directories;
        const int directory = ::dirfd(stream.get());
        const auto next = [&stream] {
            errno = 0;  // readdir() sets errno on failure, but not at the end.
            return ::readdir(stream.get());
        };
        while (const dirent* entry = next()) {
            const std::string_view called = entry->d_name;
            if (called == "." || called == "..") continue;
            if (task.has(called) && !take(directory, *entry, path, result)) return false;
            if (finds() && enters(task, path, called) && task.has(called) && is_directory(directory, *entry)) {
                const Task whole{.path = {}, .foreign = task.foreign};
                if (!list(directory, entry->d_name, whole, path + "/" + entry->d_name, result)) return false;
            }
        }
        return errno == 0 || fail("readdir", errno, path, result);
    }

    // find enters directory items, and directories outside the trees. Directories of trees (b0, b1, …) have separate
    // tasks.
    [[nodiscard]] bool enters(const Task& task, const std::string& path, std::string_view called) const {
        if (!task.foreign) return called.front() != 'b';
        return path != "." || trees_.find(called) == trees_.end();
    }

    // Count an entry as one operation. Its latency begins at the end of the previous operation, so the first entry of a
    // directory includes opening it.
    bool take(int directory, const dirent& entry, const std::string& path, RankResult& result) {
        if (setting_.halted()) return false;
        const bool named = std::strstr(entry.d_name, phase_.find_name.c_str()) != nullptr;
        const bool looks = phase_.operation == MetadataOperation::list_stat || (finds() && named && phase_.find_bytes);
        struct stat status{};
        if (looks) {
            const int error =
                Posix::error_of([&] { return ::fstatat(directory, entry.d_name, &status, AT_SYMLINK_NOFOLLOW); });
            if (error != 0) return fail("stat", error, path + "/" + entry.d_name, result);
        }
        const bool sized = !phase_.find_bytes || (S_ISREG(status.st_mode) && status.st_size == *phase_.find_bytes);
        if (finds() && named && sized) ++result.listed.matches;
        const Clock& clock = setting_.clock;
        std::uint64_t now = clock.now();
        const std::uint64_t took = elapsed(before_, now);
        seat_.latencies.calls.record(clock.to_ns(took));
        result.slowest = std::max(result.slowest, took);
        seat_.progress.publish(++result.operations, 0);
        before_ = now;
        if (pace_.on()) now = before_ = pace_.hold(now, {.operations = 1, .bytes = 0, .ticks = took});
        if (now < deadline_) return true;
        result.out_of_time = true;
        return false;
    }

    bool fail(const char* call, int error, const std::string& path, RankResult& result) const {
        result.failure = call_failure(call, setting_.path_of(path), error);
        return false;
    }

    const PhaseSetting& setting_;
    Seat seat_;
    const MetadataPhase& phase_;
    std::uint32_t owner_;
    std::vector<Task> tasks_;
    std::set<std::string, std::less<>> trees_;  // names of the trees that have their own tasks
    Pace pace_;
    std::uint64_t deadline_ = UINT64_MAX;
    std::uint64_t before_ = 0;
    std::uint64_t passed_ = 0;
};

}  // namespace

std::unique_ptr<Workload> make_listing(const PhaseSetting& setting, const Seat& seat) {
    return std::make_unique<Listing>(setting, seat);
}

}  // namespace strakes
