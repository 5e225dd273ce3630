// Plans that the parser accepts and refuses. The front end's tests use the same files.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "plan/object_reader.hpp"
#include "plan/parse.hpp"
#include "support.hpp"

using namespace strakes;
using namespace strakes::tests;
namespace fs = std::filesystem;

namespace {

std::map<std::string, Json> plans(const char* folder) {
    std::map<std::string, Json> found;
    for (const auto& entry : fs::directory_iterator(fs::path(STRAKES_PLANS) / folder))
        found.emplace(entry.path().stem().string(), Json::parse(std::ifstream(entry.path())));
    return found;
}

// Return the key at fault, or "accepted".
std::string key_at_fault(const Json& plan) {
    try {
        parse_plan(plan);
        return "accepted";
    } catch (const Refusal& refusal) {
        CHECK_FALSE(refusal.remedy().empty());
        return refusal.key();
    }
}

// The key at fault in each contradictory plan, by file name.
const std::map<std::string, std::string> kContradictions{
    {"processors-backwards", "team.processors"},
    {"processors-beyond-any-machine", "team.processors"},
    {"processors-and-numa-nodes", "team.numa_nodes"},
    {"attributes-of-another-length", "phases[2].xattr_bytes"},
    {"attributes-of-no-earlier-phase", "phases[1].files"},
    {"attributes-of-removed-files", "phases[4].files"},
    {"find-bytes-in-a-list", "phases[1].find_bytes"},
    {"find-name-in-a-list", "phases[1].find_name"},
    {"linked-twice", "phases[2].files"},
    {"list-by-absolute-paths", "phases[1].paths"},
    {"list-of-nothing", "phases[0].files"},
    {"list-with-cephfs", "phases[1].operation"},
    {"random-order-of-a-listing", "phases[1].order"},
    {"random-order-of-attributes-set", "phases[1].order"},
    {"random-order-of-removals", "phases[1].order"},
    {"read-after-truncate", "phases[2].files"},
    {"setxattr-shared-by-all", "phases[1].share"},
    {"train-without-generate", "phases[0].files"},
    {"train-on-other-samples", "phases[1].files"},
    {"generated-twice", "phases[1].files"},
    {"batches-larger-than-the-data", "phases[1].batch_samples"},
    {"more-steps-than-data", "phases[1].steps"},
    {"samples-that-vary-more-than-they-are", "phases[0].sample_stdev_bytes"},
    {"cache-in-generate", "phases[0].cache"},
    {"verify-in-generate", "phases[0].verify"},
    {"batch-samples-in-generate", "phases[0].batch_samples"},
    {"readers-in-generate", "phases[0].readers"},
    {"prefetch-batches-in-generate", "phases[0].prefetch_batches"},
    {"compute-ns-in-generate", "phases[0].compute_ns"},
    {"compute-stdev-ns-in-generate", "phases[0].compute_stdev_ns"},
    {"steps-in-generate", "phases[0].steps"},
    {"shuffle-in-generate", "phases[0].shuffle"},
    {"prefetch-without-readers", "phases[1].prefetch_batches"},
    {"grouping-without-writers", "phases[0].grouping"},
    {"drop-before-a-new-file", "phases[0].cache"},
    {"more-readers-than-ranks", "phases[1].readers_per_node"},
    {"samples-beyond-all-bounds", "phases[0].samples_per_file"},
    {"sample-bytes-beyond-all-bounds", "phases[0].sample_bytes"},
    {"sizes-of-a-write", "phases[0].write_sizes"},
    {"sizes-that-are-not-all", "phases[1].read_sizes"},
    {"size-above-the-transfer", "phases[1].read_sizes"},
    {"sizes-with-uring", "phases[1].read_sizes"},
    {"sizes-not-for-direct", "phases[1].read_sizes"},
    {"first-ranks-of-a-read", "phases[1].first_ranks"},
    {"first-ranks-beyond-the-team", "phases[0].first_ranks"},
    {"first-ranks-of-a-shared-file", "phases[0].first_ranks"},
    {"first-ranks-that-wear-out", "phases[0].first_ranks"},
    {"truncate-bytes-in-a-stat", "phases[1].truncate_bytes"},
    {"truncate-for-seconds", "phases[1].stop.rule"},
    {"truncate-to-what-there-is", "phases[1].truncate_bytes"},
    {"xattr-bytes-in-a-stat", "phases[1].xattr_bytes"},
    {"wear-out-with-uring", "phases[0].stop.rule"},
    {"wear-out-of-a-listing", "phases[1].stop.rule"},
    {"wear-out-with-writers", "phases[0].stop.rule"},
    {"wear-out-with-mpiio", "phases[0].stop.rule"},
    {"wear-out-of-small-files", "phases[0].stop.rule"},
    {"wear-out-of-a-part", "phases[0].parts[0].phase.stop.rule"},
    {"find-all-in-a-list", "phases[1].find_all"},
    {"collective-with-posix", "phases[0].collective"},
    {"hints-with-posix", "phases[0].hints"},
    {"chunks-with-mpiio", "phases[0].chunk_bytes"},
    {"chunks-in-a-read", "phases[1].chunk_bytes"},
    {"chunk-larger-than-the-file", "phases[0].chunk_bytes"},
    {"too-many-chunks", "phases[0].chunk_bytes"},
    {"mpiio-file-per-writer", "phases[0].layout"},
    {"mpiio-with-writers", "phases[0].writers"},
    {"mpiio-direct", "phases[0].direct"},
    {"hdf5-preallocate", "phases[0].preallocate"},
    {"collective-mixed", "phases[1].collective"},
    {"mpiio-transfer-above-an-int", "phases[0].transfer_bytes"},
    {"mpiio-queue-depth", "phases[0].queue_depth"},
    {"hdf5-read-by-posix", "phases[1].backend"},
    {"posix-read-by-pnetcdf", "phases[1].backend"},
    {"stage-of-a-file-of-hdf5", "phases[1].files"},
    {"mixed-part-by-mpiio", "phases[0].parts[0].phase.backend"},
    {"more-writers-than-ranks", "phases[0].writers"},
    {"writers-of-files-per-process", "phases[0].writers"},
    {"writers-in-a-read", "phases[1].writers"},
    {"file-per-writer-without-writers", "phases[0].writers"},
    {"writers-at-random", "phases[0].access"},
    {"draws-in-a-write", "phases[0].access"},
    {"writers-of-more-than-messages-hold", "phases[0].transfer_bytes"},
    {"writers-for-seconds", "phases[0].stop.rule"},
    {"writers-with-rank-shift", "phases[0].rank_shift"},
    {"file-per-writer-of-other-writers", "phases[1].writers"},
    {"file-per-writer-of-other-groups", "phases[1].grouping"},
    {"probe-writes-nothing", "phases[0].file_bytes"},
    {"probe-stat-with-bytes", "phases[0].file_bytes"},
    {"probe-reads-nothing", "phases[0].file_bytes"},
    {"probe-reads-through-libcephfs", "phases[0].backend"},
    {"probe-of-the-same-files", "phases[1].files"},
    {"probe-too-long", "phases[0].seconds"},
    {"stage-before-write", "phases[0].files"},
    {"stage-of-files-per-process", "phases[1].files"},
    {"stage-verifies-data-written-once", "phases[1].verify"},
    {"stage-broadcast-without-readers", "phases[1].broadcast"},
    {"queue-depth-with-posix", "phases[0].queue_depth"},
    {"direct-through-stdio", "phases[0].direct"},
    {"direct-through-mmap", "phases[0].direct"},
    {"cephfs-in-some-phases-only", "phases[1].backend"},
    {"cephfs-direct", "phases[0].direct"},
    {"cephfs-preallocate", "phases[0].preallocate"},
    {"cephfs-cache-drop", "phases[1].cache"},
    {"objects-changed", "phases[1].operation"},
    {"objects-shared", "phases[0].layout"},
    {"objects-fsync", "phases[0].sync"},
    {"objects-written-at-random", "phases[0].access"},
    {"objects-written-again", "phases[0].stop.rule"},
    {"objects-in-small-parts", "phases[0].transfer_bytes"},
    {"objects-in-too-many-parts", "phases[0].transfer_bytes"},
    {"objects-direct", "phases[0].direct"},
    {"objects-cache-drop", "phases[1].cache"},
    {"objects-read-as-files", "phases[1].backend"},
    {"objects-renamed", "phases[1].operation"},
    {"objects-in-large-items", "phases[0].file_bytes"},
    {"objects-looked-at-as-files", "phases[1].backend"},
    {"stream-of-objects-in-small-parts", "phases[0].block_bytes"},
    {"cephfs-mknod", "phases[0].create_with"},
    {"compressible-percent-differs-in-one-set", "phases[1].compressible_percent"},
    {"duplicate-percent-differs-in-one-set", "phases[1].duplicate_percent"},
    {"block-not-a-multiple-of-transfer", "phases[0].block_bytes"},
    {"more-data-than-a-file-can-hold", "phases[0].segments"},
    {"strided-files-per-process", "phases[0].access"},
    {"whole-write", "phases[0].access"},
    {"whole-read-of-files-per-process", "phases[1].access"},
    {"whole-read-with-rank-shift", "phases[1].rank_shift"},
    {"direct-with-odd-transfers", "phases[0].transfer_bytes"},
    {"mixed-without-read-percent", "phases[1].read_percent"},
    {"read-percent-in-a-read", "phases[1].read_percent"},
    {"preallocate-in-a-read", "phases[1].preallocate"},
    {"verify-in-a-write", "phases[0].verify"},
    {"verify-with-pattern-once", "phases[1].verify"},
    {"verify-of-data-written-once", "phases[1].verify"},
    {"verify-after-rewrite-with-pattern-once", "phases[2].verify"},
    {"read-before-write", "phases[0].files"},
    {"read-of-another-file-set", "phases[1].files"},
    {"rewrite-without-write", "phases[0].files"},
    {"read-in-another-layout", "phases[1].layout"},
    {"read-of-more-than-was-written", "phases[1].segments"},
    {"names-not-unique", "phases[1].name"},
    {"stat-before-creation", "phases[0].files"},
    {"file-stat-after-dir-creation", "phases[1].files"},
    {"stat-after-removal", "phases[2].files"},
    {"created-twice", "phases[1].files"},
    {"created-again-after-a-stonewalled-removal", "phases[2].files"},
    {"items-differ-in-one-set", "phases[1].items"},
    {"directory-differs-in-one-set", "phases[1].directory"},
    {"depth-differs-in-one-set", "phases[1].depth"},
    {"branch-differs-in-one-set", "phases[1].branch"},
    {"file-bytes-differ-in-one-set", "phases[1].file_bytes"},
    {"too-many-leaves", "phases[0].branch"},
    {"rank-shift-in-a-creation", "phases[0].rank_shift"},
    {"mknod-with-data", "phases[0].create_with"},
    {"mknod-in-a-stat", "phases[1].create_with"},
    {"absolute-paths-with-cephfs", "phases[0].paths"},
    {"open-mode-in-a-stat", "phases[1].open_mode"},
    {"open-mode-with-mknod", "phases[0].open_mode"},
    {"fsync-in-a-stat", "phases[1].fsync"},
    {"fsync-with-mknod", "phases[0].fsync"},
    {"file-read-of-empty-files", "phases[1].file_bytes"},
    {"creation-for-seconds", "phases[0].stop.rule"},
    {"removal-for-seconds", "phases[1].stop.rule"},
    {"rename-for-seconds", "phases[1].stop.rule"},
    {"stream-read-before-write", "phases[0].files"},
    {"stream-read-of-more-than-was-written", "phases[1].count"},
    {"stream-direct-with-odd-blocks", "phases[0].block_bytes"},
    {"random-whole-files-per-process", "phases[1].access"},
    {"random-whole-of-more-than-the-file", "phases[1].segments"},
    {"creation-shared-by-all", "phases[0].share"},
    {"removal-shared-by-all", "phases[1].share"},
    {"small-files-sizes-swapped", "phases[0].size_high_bytes"},
    {"accumulate-without-files", "phases[0].files_per_rank"},
    {"files-per-rank-in-transactions", "phases[1].files_per_rank"},
    {"transactions-without-number", "phases[1].transactions"},
    {"transactions-in-remove", "phases[1].transactions"},
    {"accumulate-for-seconds", "phases[0].stop.rule"},
    {"transactions-before-accumulate", "phases[0].files"},
    {"transactions-after-remove", "phases[2].files"},
    {"pool-of-other-sizes", "phases[1].size_high_bytes"},
    {"pool-of-other-subdirectories", "phases[1].subdirectories"},
    {"pool-of-other-first-item", "phases[1].first_item"},
    {"verify-in-accumulate", "phases[0].verify"},
    {"flow-missing", "phases[1].flow"},
    {"flow-in-transactions", "phases[1].flow"},
    {"flow-read-of-no-file", "phases[1].flow[0].op"},
    {"flow-two-files-open", "phases[1].flow[1].op"},
    {"flow-leaves-a-file-open", "phases[1].flow"},
    {"flow-empties-the-pool", "phases[1].flow"},
    {"flow-grows-for-ever", "phases[1].flow"},
    {"flow-bytes-of-a-stat", "phases[1].flow[0].bytes"},
    {"delay-with-uring", "phases[0].delay_ns"},
    {"mixed-fewer-ranks-than-the-team", "phases[0].parts"},
    {"mixed-names-not-unique", "phases[0].parts[1].phase.name"},
    {"mixed-probe-with-the-stop-of-all", "phases[0].parts[1].phase.kind"},
    {"mixed-read-of-what-another-part-writes", "phases[1].parts[1].phase.files"},
    {"mixed-set-of-some-ranks-read-otherwise", "phases[1].files"},
    {"mixed-stage-of-a-set-of-some-ranks", "phases[1].files"},
    {"mixed-two-parts-write-one-set", "phases[0].parts[1].phase.files"},
    {"mixed-two-stops", "phases[0].parts[0].phase.stop"},
    {"mixed-with-writers", "phases[0].parts[0].phase.writers"}};

}  // namespace

TEST_CASE("every good plan is accepted") {
    const auto good = plans("good");
    CHECK(good.size() >= 12);
    for (const auto& [name, plan] : good) {
        INFO(name);
        CHECK(key_at_fault(plan) == "accepted");
    }
}

TEST_CASE("every plan that breaks the schema is refused") {
    const auto bad = plans("bad");
    CHECK(bad.size() >= 25);
    for (const auto& [name, plan] : bad) {
        INFO(name);
        CHECK(key_at_fault(plan) != "accepted");
    }
}

TEST_CASE("every plan that contradicts itself is refused, and the key is named") {
    const auto contradictory = plans("contradictory");
    CHECK(contradictory.size() == kContradictions.size());
    for (const auto& [name, plan] : contradictory) {
        INFO(name);
        REQUIRE(kContradictions.contains(name));
        CHECK(key_at_fault(plan) == kContradictions.at(name));
    }
}

TEST_CASE("an unknown key is named with its path, and the known ones are listed") {
    Json plan = plan_of({transfer("write", "write", {{"stop", {{"rule", "stonewall"}, {"minutes", 1}}}})});
    try {
        parse_plan(plan);
        FAIL("taken");
    } catch (const Refusal& refusal) {
        CHECK(refusal.key() == "phases[0].stop.minutes");
        CHECK(refusal.remedy() == "Known here: rule, seconds.");
    }
}

TEST_CASE("a missing key is named") {
    Json phase = metadata("create", "file-create");
    phase.erase("items");
    CHECK(key_at_fault(plan_of({phase})) == "phases[0].items");
}

TEST_CASE("phases that call fsync wait for the device, others do not") {
    Json synced = metadata("synced", "file-create");
    synced["fsync"] = true;
    synced["files"] = "synced";
    Json written = transfer("write", "write");
    written["sync"] = "fsync";
    written["files"] = "written";
    const Plan plan =
        parse_plan(plan_of({metadata("create", "file-create"), synced, transfer("buffered", "write"), written}));
    std::vector<bool> waits;
    waits.reserve(plan.phases.size());
    for (const Phase& phase : plan.phases) waits.push_back(waits_for_device(phase));
    CHECK(waits == std::vector<bool>{false, true, false, true});
}

TEST_CASE("keys that are left out have the defaults of the schema") {
    const Plan plan = parse_plan(plan_of({transfer("write", "write"), metadata("create", "file-create")}));
    const auto& write = std::get<TransferPhase>(plan.phases[0]);
    CHECK(write.files == "data");
    CHECK(write.sync == Sync::close);
    CHECK(write.pattern == Pattern::stamped);
    CHECK(write.time_open);
    CHECK_FALSE(write.direct);
    CHECK(write.stop.rule == StopRule::amount);
    const auto& create = std::get<MetadataPhase>(plan.phases[1]);
    CHECK(create.files == "items");
    CHECK(create.branch == 1);
    CHECK(create.create_with == CreateWith::open);
    CHECK(create.paths == Paths::relative);
    CHECK(create.open_mode == OpenMode::least);
    CHECK_FALSE(create.fsync);
    CHECK(create.share == Share::own);
}
