// Operations on files and directories, one after the other, relative to open directories.
#include "workload/metadata.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "backend/posix.hpp"
#include "system/buffer.hpp"
#include "system/bytes.hpp"
#include "system/descriptor.hpp"
#include "workload/entries.hpp"
#include "workload/item_operations.hpp"
#include "workload/item_tree.hpp"
#include "workload/items.hpp"

namespace strakes {

namespace {

constexpr std::uint64_t kMostBufferBytes = std::uint64_t{1} << 20U;

template <class Io>
class Metadata final : public Workload {
  public:
    Metadata(const PhaseSetting& setting, const Seat& seat)
        : setting_(setting),
          seat_(seat),
          phase_(std::get<MetadataPhase>(setting.phase())),
          owner_(owner_for(seat.rank, phase_.rank_shift, setting.plan.ranks)),
          items_(items_of(setting.state, phase_).at(owner_)),
          tree_(setting, phase_, owner_) {}

    Outcome lead() override { return creates() && phase_.directory == Directory::shared ? tree_.make() : std::nullopt; }

    Outcome prepare(RankResult& /*result*/) override {
        seat_.progress.at("preparing");
        if (creates()) items_ = {.first = 0, .last = phase_.items, .rename_ends = {}};
        if (creates() && phase_.directory == Directory::unique)
            if (Outcome failure = tree_.make()) return failure;
        if (setting_.halted()) return std::nullopt;  // the tree may be incomplete
        if (Outcome failure = open_all()) return failure;
        if (!moves_data()) return std::nullopt;
        buffer_ = Buffer::of(std::min(phase_.file_bytes, kMostBufferBytes));
        if (buffer_.empty()) return call_failure("mmap", "", ENOMEM);
        fill(buffer_.bytes(), stream_of(setting_.plan.seed, owner_), 0);
        return std::nullopt;
    }

    void run(RankResult& result) override {
        seat_.progress.at("operating");
        result.start = setting_.clock.now();
        operate(result);
        result.end = setting_.clock.now();
    }

    void finish(RankResult& result) override {
        seat_.progress.at("closing");
        // Removals and renames do not repeat, so their count is how far they came.
        const std::uint64_t end = items_.first + result.operations;
        if (creates()) items_.last = end;
        if (is_removal(phase_.operation)) items_.first = end;
        if (is_rename(phase_.operation)) items_.rename_ends.push_back(end);
        portions_.clear();
        leaves_.clear();
        buffer_ = Buffer();
    }

    [[nodiscard]] std::string tell() const override {
        Packer packer;
        packer.put(owner_);
        packer.put(items_.first);
        packer.put(items_.last);
        for (const std::uint64_t end : items_.rename_ends) packer.put(end);
        return packer.take();
    }

    void learn(std::string_view told) override {
        Unpacker unpacker(told);
        Items& items = items_of(setting_.state, phase_).at(unpacker.get<std::uint32_t>());
        items.first = unpacker.get<std::uint64_t>();
        items.last = unpacker.get<std::uint64_t>();
        items.rename_ends.clear();
        while (!unpacker.at_end()) items.rename_ends.push_back(unpacker.get<std::uint64_t>());
    }

  private:
    static std::vector<Items>& items_of(PlanState& state, const MetadataPhase& phase) {
        return (on_directories(phase.operation) ? state.directories : state.files).at(phase.files);
    }
    [[nodiscard]] bool creates() const noexcept { return is_creation(phase_.operation); }
    [[nodiscard]] bool moves_data() const noexcept {
        using enum MetadataOperation;
        return phase_.file_bytes > 0 && (phase_.operation == file_create || phase_.operation == file_read);
    }

    // The items of one owner. The descriptor of leaf l is leaves_[l - first_leaf].
    struct Portion {
        std::uint32_t owner;
        ItemName name;
        std::vector<ItemRun> runs;
        std::ptrdiff_t first_leaf;
    };

    // Its own first, then, where all work on all, those of the ranks after it.
    Outcome open_all() {
        const std::uint32_t ranks = setting_.plan.ranks;
        const std::uint32_t owners = phase_.share == Share::all ? ranks : 1;
        portions_.reserve(owners);
        for (std::uint32_t i = 0; i < owners; ++i)
            if (Outcome failure = open_one((owner_ + i) % ranks)) return failure;
        return std::nullopt;
    }

    Outcome open_one(std::uint32_t owner) {
        Portion portion{.owner = owner,
                        .name = ItemName(on_directories(phase_.operation), owner, phase_.items),
                        .runs = runs_of(items_of(setting_.state, phase_).at(owner), phase_.items, tree_.leaves()),
                        .first_leaf = 0};
        if (portion.runs.empty()) return std::nullopt;
        const bool one_tree_for_all = phase_.share == Share::all && phase_.directory == Directory::shared;
        if (!one_tree_for_all || leaves_.empty()) {
            const std::uint32_t first = one_tree_for_all ? 0 : portion.runs.front().leaf;
            const std::uint32_t last = one_tree_for_all ? tree_.leaves() : portion.runs.back().leaf + 1;
            portion.first_leaf = std::ptrdiff_t{first} - std::ssize(leaves_);
            if (Outcome failure = ItemTree(setting_, phase_, owner).open(first, last, leaves_)) return failure;
        }
        total_ += std::accumulate(portion.runs.begin(), portion.runs.end(), std::uint64_t{0},
                                  [](std::uint64_t sum, const ItemRun& run) { return sum + run.count; });
        portions_.push_back(std::move(portion));
        return std::nullopt;
    }

    void operate(RankResult& result) {
        using enum MetadataOperation;
        const ItemData data{.buffer = buffer_.bytes(), .bytes = phase_.file_bytes};
        switch (phase_.operation) {
            case dir_create:
                return loop(DirectoryCreate<Io>(), result);
            case dir_stat:
            case file_stat:
                return loop(Status<Io>(), result);
            case dir_rename:
            case file_rename:
                return loop(Rename<Io>(), result);
            case dir_remove:
                return loop(DirectoryRemove<Io>(), result);
            case file_create:
                if (phase_.create_with == CreateWith::mknod) return loop(MakeNode<Io>(), result);
                return loop(FileCreate<Io>{.data = data}, result);
            case file_open_close:
                return loop(FileOpen<Io>{.data = {}}, result);
            case file_read:
                return loop(FileOpen<Io>{.data = data}, result);
            case file_remove:
                return loop(FileRemove<Io>(), result);
        }
    }

    // The timed loop: one clock reading per operation, allocates nothing, locks nothing, prints nothing.
    template <class Operation>
    void loop(Operation operation, RankResult& result) {
        const Clock clock = setting_.clock;
        const std::uint64_t deadline = deadline_after(clock, result.start, phase_.stop);
        const std::uint64_t bytes_each = moves_data() ? phase_.file_bytes : 0;
        const bool repeat = phase_.stop.rule == StopRule::seconds;
        const std::uint64_t total = repeat ? UINT64_MAX : total_;
        Histogram& latencies = seat_.latencies.calls;
        std::uint64_t done = 0;
        std::uint64_t slowest = 0;
        std::uint64_t before = clock.now();
        const auto one_portion = [&](const Portion& portion) {
            ItemName name = portion.name;
            for (const ItemRun& run : portion.runs) {
                const int directory = leaves_[static_cast<std::size_t>(run.leaf - portion.first_leaf)].get();
                name.set(run.first, run.renamed);
                for (std::uint64_t left = run.count; left > 0; --left, name.next()) {
                    if (setting_.halted()) return false;
                    const int error = operation(directory, name);
                    const std::uint64_t now = clock.now();
                    if (error != 0) {
                        result.failure = describe_item(operation.call, error, portion.owner, run.leaf, name);
                        return false;
                    }
                    const std::uint64_t took = elapsed(before, now);
                    latencies.record(clock.to_ns(took));
                    if (took > slowest) slowest = took;
                    ++done;
                    seat_.progress.publish(done, done * bytes_each);
                    before = now;
                    if (now >= deadline && done < total) {
                        result.out_of_time = true;
                        return false;
                    }
                }
            }
            return true;
        };
        while (std::ranges::all_of(portions_, one_portion) && repeat && !portions_.empty()) {
        }
        result.operations = done;
        result.bytes = done * bytes_each;
        result.slowest = slowest;
    }

    [[nodiscard]] Failure describe_item(const char* call, int error, std::uint32_t owner, std::uint32_t leaf,
                                        const ItemName& name) const {
        std::string path = ItemTree(setting_, phase_, owner).path_of_leaf(leaf) + "/" + name.c_str();
        if (error != LoopEnd::kEndOfFile) return call_failure(call, std::move(path), error);
        LoopEnd end;
        end.reading = phase_.operation == MetadataOperation::file_read;
        end.error = error;
        return describe(end, std::move(path));
    }

    const PhaseSetting& setting_;
    Seat seat_;
    const MetadataPhase& phase_;
    std::uint32_t owner_;
    Items& items_;
    ItemTree tree_;
    std::vector<Portion> portions_;
    std::vector<Descriptor> leaves_;
    std::uint64_t total_ = 0;  // items of all portions
    Buffer buffer_;
};

}  // namespace

std::unique_ptr<Workload> make_metadata(const PhaseSetting& setting, const Seat& seat) {
    return std::make_unique<Metadata<Posix>>(setting, seat);
}

}  // namespace strakes
