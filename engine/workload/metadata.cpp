// Operations on files and directories, by name or by path.
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "backend/posix.hpp"
#include "backend/raw.hpp"
#include "system/buffer.hpp"
#include "system/bytes.hpp"
#include "workload/item_operations.hpp"
#include "workload/item_tree.hpp"
#include "workload/items.hpp"
#include "workload/plan_state.hpp"
#include "workload/transfer_loop.hpp"
#include "workload/workload.hpp"
#ifdef STRAKES_CEPHFS
#include "backend/ceph.hpp"
#endif
#ifdef STRAKES_S3
#include "backend/s3.hpp"
#endif

namespace strakes {

namespace {

constexpr std::uint64_t kMostBufferBytes = std::uint64_t{1} << 20U;

// Calls take a name relative to an open leaf directory. `Io` creates and opens the tree.
template <class Backend>
struct Relative {
    using Io = Backend;
    using Calls = Backend;
    using Name = ItemName;
    using Leaf = typename Io::Handle;  // NOLINT(readability-redundant-typename): older Clang asks for it
    static constexpr bool kOpens = true;

    static bool fits(const Leaf& /*leaf*/) noexcept { return true; }
    static Name name_of(const MetadataPhase& /*phase*/, const ItemName& name) noexcept { return name; }
    static int enter(Name& /*name*/, const Leaf& leaf) noexcept { return leaf.get(); }
};

// Calls take a path relative to the plan's directory, and no leaf directory is opened. For ranks that work on the trees
// of all ranks, because the number of open leaf directories would grow with the square of the number of ranks.
template <class Backend>
struct Below {
    using Io = Backend;
    using Calls = Backend;
    using Name = ItemBelow;
    using Leaf = LeafBelow;
    static constexpr bool kOpens = false;

    static bool fits(const Leaf& leaf) noexcept { return Name::fits(leaf.path); }
    static Name name_of(const MetadataPhase& /*phase*/, const ItemName& name) noexcept { return Name(name); }
    static int enter(Name& name, const Leaf& leaf) noexcept {
        name.enter(leaf.path);
        return leaf.root;
    }
};

// Calls take a path that is formatted for every item. No leaf directory stays open. The path is relative to the plan's
// open directory, because another user may put a symbolic link into a directory above.
struct ByPath {
    using Io = Posix;
    using Calls = Posix;
    using Name = ItemPath;
    using Leaf = LeafBelow;
    static constexpr bool kOpens = true;

    static bool fits(const Leaf& leaf) noexcept { return Name::fits(leaf.path); }
    static Name name_of(const MetadataPhase& phase, const ItemName& name) noexcept {
        return Name(name, phase.paths == Paths::mdtest && repeats(phase.operation));
    }
    static int enter(Name& name, const Leaf& leaf) noexcept {
        name.enter(leaf.path.c_str());
        return leaf.root;
    }
};

template <class Way>
class Metadata : public Workload {
    using Io = typename Way::Io;        // NOLINT(readability-redundant-typename): as above
    using Calls = typename Way::Calls;  // NOLINT(readability-redundant-typename)
    using Leaf = typename Way::Leaf;    // NOLINT(readability-redundant-typename)
    using Name = typename Way::Name;    // NOLINT(readability-redundant-typename)

  public:
    Metadata(const PhaseSetting& setting, const Seat& seat)
        : setting_(setting),
          seat_(seat),
          phase_(std::get<MetadataPhase>(setting.phase())),
          owner_(owner_for(seat.rank, phase_.rank_shift, setting.plan.ranks)),
          items_(items_of(setting.state, phase_).at(owner_)),
          tree_(setting, phase_, owner_, seat.rank),
          wear_out_(seat, phase_.stop) {}

    Outcome lead() override {
        if (!creates() || phase_.directory != Directory::shared) return std::nullopt;
        if (const auto [call, error] = Io::connect(seat_.rank); error != 0) return call_failure(call, "", error);
        return tree_.make();
    }

    Outcome prepare(RankResult& /*result*/) override {
        seat_.progress.at("preparing");
        if (const auto [call, error] = Io::connect(seat_.rank); error != 0) return call_failure(call, "", error);
        if (creates()) items_ = {.first = 0, .last = phase_.items, .attributed = 0, .rename_ends = {}};
        if (creates() && phase_.directory == Directory::unique)
            if (Outcome failure = tree_.make()) return failure;
        if (setting_.halted()) return std::nullopt;  // After a halt, the tree may be incomplete.
        if (Outcome failure = open_all()) return failure;
        if (phase_.order == ItemOrder::random) locator_ = ItemLocator(portions_);
        if (buffer_bytes() == 0) return std::nullopt;
        if (Outcome failure = setting_.make(buffer_, buffer_bytes())) return failure;
        fill(buffer_.bytes(), stream(), 0);
        return std::nullopt;
    }

    void run(RankResult& result) override {
        seat_.progress.at("operating");
        result.start = setting_.clock.now();
        operate(result);
        wear_out_.agree(result.operations);  // Other ranks wait for this call, even if this rank has failed.
        result.end = setting_.clock.now();
    }

    void finish(RankResult& result) override {
        seat_.progress.at("closing");
        // Removals and renames are not repeated, so their count is the position that they reached.
        const std::uint64_t end = items_.first + result.operations;
        if (creates()) items_.last = end;
        if (is_removal(phase_.operation)) items_.first = end;
        if (is_rename(phase_.operation)) items_.rename_ends.push_back(end);
        if (phase_.operation == MetadataOperation::file_setxattr)
            items_.attributed = std::max(items_.attributed, std::min(end, items_.last));
        portions_.clear();
        leaves_.clear();
        buffer_ = Buffer();
    }

    [[nodiscard]] std::string tell() const override {
        Packer packer;
        packer(owner_, items_);
        return packer.take();
    }

    void learn(std::string_view told) override {
        Unpacker unpacker(told);
        Items& items = items_of(setting_.state, phase_).at(unpacker.get<std::uint32_t>());
        items = {};
        unpacker(items);
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

    [[nodiscard]] bool attributes() const noexcept {
        using enum MetadataOperation;
        return phase_.operation == file_setxattr || phase_.operation == file_getxattr;
    }

    // Return a stream that differs from phase to phase.
    [[nodiscard]] Stream stream() const noexcept {
        const std::uint64_t phase = setting_.index;
        return stream_of(setting_.plan.seed, setting_.plan.salt, phase << 32U | owner_);
    }

    [[nodiscard]] std::uint64_t buffer_bytes() const noexcept {
        if (attributes()) return phase_.xattr_bytes;
        return moves_data() ? std::min(phase_.file_bytes, kMostBufferBytes) : 0;
    }

    // Open this rank's own items first. If all ranks work on all items, the items of the following ranks come next.
    Outcome open_all() {
        const std::uint32_t ranks = setting_.plan.ranks;
        const std::uint32_t owners = phase_.share == Share::all ? ranks : 1;
        portions_.reserve(owners);
        for (std::uint32_t i = 0; i < owners; ++i)
            if (Outcome failure = open_one((owner_ + i) % ranks)) return failure;
        return std::nullopt;
    }

    Outcome open_one(std::uint32_t owner) {
        ItemPortion portion{.owner = owner,
                            .name = ItemName(on_directories(phase_.operation), owner, phase_.items),
                            .runs = runs_of(items_at(owner), phase_.items, tree_.leaves()),
                            .first_leaf = 0};
        if (portion.runs.empty()) return std::nullopt;
        const bool one_tree_for_all = phase_.share == Share::all && phase_.directory == Directory::shared;
        if (!one_tree_for_all || leaves_.empty()) {
            const std::uint32_t first = one_tree_for_all ? 0 : portion.runs.front().leaf;
            const std::uint32_t last = one_tree_for_all ? tree_.leaves() : portion.runs.back().leaf + 1;
            portion.first_leaf = std::ptrdiff_t{first} - std::ssize(leaves_);
            if (Outcome failure = open_leaves(owner, first, last)) return failure;
        }
        total_ += std::accumulate(portion.runs.begin(), portion.runs.end(), std::uint64_t{0},
                                  [](std::uint64_t sum, const ItemRun& run) { return sum + run.count; });
        portions_.push_back(std::move(portion));
        return std::nullopt;
    }

    [[nodiscard]] Items items_at(std::uint32_t owner) const {
        Items items = items_of(setting_.state, phase_).at(owner);
        if (phase_.operation == MetadataOperation::file_getxattr)
            items.last = std::max(items.first, std::min(items.last, items.attributed));
        return items;
    }

    Outcome open_leaves(std::uint32_t owner, std::uint32_t first, std::uint32_t last) {
        const ItemTree<Io> tree(setting_, phase_, owner, seat_.rank);
        const auto held = std::ssize(leaves_);
        std::vector<typename Io::Handle> opened;
        if constexpr (Way::kOpens)
            if (Outcome failure = tree.open(first, last, opened)) return failure;
        if constexpr (std::is_same_v<Leaf, typename Io::Handle>) {
            std::ranges::move(opened, std::back_inserter(leaves_));
        } else {
            for (std::uint32_t leaf = first; leaf < last; ++leaf)
                leaves_.push_back({.root = setting_.root, .path = tree.entry_of_leaf(leaf)});
        }
        if (std::all_of(leaves_.begin() + held, leaves_.end(), Way::fits)) return std::nullopt;
        return call_failure("open", setting_.name, ENAMETOOLONG);
    }

    void operate(RankResult& result) {
        using enum MetadataOperation;
        if (phase_.open_mode == OpenMode::read_write) return open_read_write(result);
        const ItemData data = data_of_each();
        switch (phase_.operation) {
            case dir_create:
                return loop(DirectoryCreate<Calls>(), result);
            case dir_stat:
            case file_stat:
                return loop(Status<Calls>(), result);
            case dir_rename:
            case file_rename:
                return loop(Rename<Calls>(), result);
            case dir_remove:
                return loop(DirectoryRemove<Calls>(), result);
            case file_create:
                if (phase_.create_with == CreateWith::mknod) return loop(MakeNode<Calls>(), result);
                return loop(FileCreate<Calls>{.data = data}, result);
            case file_open_close:
                return loop(FileOpen<Calls>{.data = {}}, result);
            case file_read:
                return loop(FileOpen<Calls>{.data = data}, result);
            case file_remove:
                return loop(FileRemove<Calls>(), result);
            default:
                // Only backends with all calls of the C library have the remaining operations.
                if constexpr (std::is_base_of_v<Posix, Calls>) return operate_more(result);
        }
    }

    [[gnu::noinline]] void operate_more(RankResult& result) {
        using enum MetadataOperation;
        switch (phase_.operation) {
            case file_chmod:
                return loop(ChangeMode<Calls>{.others = static_cast<unsigned>(setting_.index) + 1}, result);
            case file_link:
                return loop(Link<Calls>(), result);
            case file_truncate:
                return loop(Truncate<Calls>{.bytes = phase_.truncate_bytes}, result);
            case file_setxattr:
                return loop(SetAttribute<Calls>{.value = buffer_.bytes().first(phase_.xattr_bytes)}, result);
            default:
                return loop(GetAttribute<Calls>{.value = buffer_.bytes().first(phase_.xattr_bytes)}, result);
        }
    }

    [[nodiscard]] ShuffledItems shuffled() const noexcept {
        return {locator_, mix(mix(mix(setting_.plan.seed) + setting_.index + 1) + seat_.rank)};
    }

    [[gnu::noinline]] void open_read_write(RankResult& result) {
        if (creates()) return loop(FileCreateReadWrite<Calls>{.data = data_of_each()}, result);
        return loop(FileOpenReadWrite<Calls>{.data = moves_data() ? data_of_each() : ItemData{}}, result);
    }

    [[nodiscard]] ItemData data_of_each() const noexcept {
        return {.buffer = buffer_.bytes(), .bytes = phase_.file_bytes, .synchronise = phase_.fsync, .stream = stream()};
    }

    // The timed loop. Reads the clock once per operation. Allocates nothing, locks nothing, prints nothing.
    template <class Operation>
    void loop(Operation operation, RankResult& result) {
        const Clock clock = setting_.clock;
        std::uint64_t deadline = deadline_after(clock, result.start, phase_.stop);
        const std::uint64_t bytes_each = moves_data() ? phase_.file_bytes : 0;
        const bool repeat = phase_.stop.rule == StopRule::seconds;
        std::uint64_t total = repeat ? UINT64_MAX : total_;
        Histogram& latencies = seat_.latencies.calls;
        std::uint64_t done = 0;
        std::uint64_t slowest = 0;
        Pace pace = setting_.pace(result.start, setting_.plan.ranks);
        std::uint64_t before = clock.now();
        const auto one_item = [&](const ItemPortion& portion, const ItemRun& run, int directory,
                                  const Name& name) __attribute__((always_inline)) {
            if (setting_.halted()) return false;
            const int error = operation(directory, name);
            std::uint64_t now = clock.now();
            if (error != 0) {
                result.failure = describe_item(operation.call, error, portion.owner, run.leaf, name.item());
                return false;
            }
            const std::uint64_t took = elapsed(before, now);
            latencies.record(clock.to_ns(took));
            if (took > slowest) slowest = took;
            ++done;
            seat_.progress.publish(done, done * bytes_each);
            before = now;
            if (pace.on()) now = before = pace.hold(now, {.operations = 1, .bytes = bytes_each, .ticks = took});
            if (done >= total) return total >= total_;
            if (now < deadline) return true;
            result.out_of_time = true;
            if (!wear_out_.wanted()) return false;
            deadline = UINT64_MAX;
            total = std::min(total, wear_out_.agree(done));
            before = clock.now();
            return done < total;
        };
        const auto one_portion = [&](const ItemPortion& portion) {
            Name name = Way::name_of(phase_, portion.name);
            for (const ItemRun& run : portion.runs) {
                const int directory = Way::enter(name, portion.leaf(leaves_, run));
                name.set(run.first, run.renamed);
                for (std::uint64_t left = run.count; left > 0; --left, name.next())
                    if (!one_item(portion, run, directory, name)) return false;
            }
            return true;
        };
        ShuffledItems order = shuffled();
        const auto all_shuffled = [&] {
            const ItemPortion* last = nullptr;
            std::optional<Name> name;
            for (std::uint64_t left = total_; left > 0; --left) {
                const ShuffledItems::Item item = order.next();
                if (std::exchange(last, item.portion) != item.portion)
                    name.emplace(Way::name_of(phase_, item.portion->name));
                const int directory = Way::enter(*name, item.portion->leaf(leaves_, *item.run));
                name->set(item.index, item.run->renamed);
                if (!one_item(*item.portion, *item.run, directory, *name)) return false;
            }
            return true;
        };
        const bool random = phase_.order == ItemOrder::random;
        while ((random ? all_shuffled() : std::ranges::all_of(portions_, one_portion)) && repeat &&
               !portions_.empty()) {
            order.restart();
            if constexpr (requires { operation.restart(); }) operation.restart();
        }
        result.operations = done;
        result.bytes = done * bytes_each;
        result.slowest = slowest;
        result.held_ns = pace.held_ns();
    }

    [[nodiscard]] Failure describe_item(const char* call, int error, std::uint32_t owner, std::uint32_t leaf,
                                        const ItemName& name) const {
        std::string path = ItemTree<Io>(setting_, phase_, owner, seat_.rank).path_of_leaf(leaf) + "/" + name.c_str();
        if (error != LoopEnd::kEndOfFile) return call_failure(call, std::move(path), error);
        return describe({.reading = phase_.operation == MetadataOperation::file_read, .error = error}, std::move(path));
    }

    const PhaseSetting& setting_;
    Seat seat_;
    const MetadataPhase& phase_;
    std::uint32_t owner_;
    Items& items_;
    ItemTree<Io> tree_;
    std::vector<ItemPortion> portions_;
    std::vector<Leaf> leaves_;
    ItemLocator locator_;      // finds items for the order random
    std::uint64_t total_ = 0;  // number of items in all portions
    Buffer buffer_;
    WearOut wear_out_;
};

}  // namespace

std::unique_ptr<Workload> make_metadata(const PhaseSetting& setting, const Seat& seat) {
    const auto& phase = std::get<MetadataPhase>(setting.phase());
    if (is_listing(phase.operation)) return make_listing(setting, seat);
    const bool of_all_trees = phase.share == Share::all && phase.directory == Directory::unique;
#ifdef STRAKES_CEPHFS
    if (phase.backend == Backend::cephfs) return std::make_unique<Metadata<Relative<Ceph>>>(setting, seat);
#endif
#ifdef STRAKES_S3
    if (phase.backend == Backend::s3) return std::make_unique<Explained<Metadata<Relative<S3>>, S3>>(setting, seat);
#endif
    if (phase.backend == Backend::raw && of_all_trees) return std::make_unique<Metadata<Below<Raw>>>(setting, seat);
    if (phase.backend == Backend::raw) return std::make_unique<Metadata<Relative<Raw>>>(setting, seat);
    if (phase.paths != Paths::relative) return std::make_unique<Metadata<ByPath>>(setting, seat);
    if (of_all_trees) return std::make_unique<Metadata<Below<Posix>>>(setting, seat);
    return std::make_unique<Metadata<Relative<Posix>>>(setting, seat);
}

}  // namespace strakes
