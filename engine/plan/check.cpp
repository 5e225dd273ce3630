// Checks of a plan that schemas/plan.json cannot express.
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "backend/registry.hpp"
#include "measure/page_cache.hpp"
#include "plan/parse.hpp"
#include "system/failure.hpp"
#include "team/exchange.hpp"

namespace strakes {

namespace {

constexpr std::uint64_t kMostFileBytes = INT64_MAX;
constexpr std::uint64_t kDirectAlignment = 512;
constexpr std::uint64_t kMostLeaves = 65536;

__extension__ using Wide = unsigned __int128;

std::uint64_t product_or_most(Wide a, Wide b, Wide c) {
    const Wide ab = a * b;  // The schema's limits keep this product below 2^80.
    const Wide most = kMostFileBytes;
    return ab > most || ab * c > most ? UINT64_MAX : static_cast<std::uint64_t>(ab * c);
}

// State of a set of data files after the phases that were already checked.
struct DataSet {
    const TransferPhase* written = nullptr;
    bool stamped = false;
    bool partial = false;  // only the ranks of one part of a mixed phase wrote the set
};

void check_wear_out(const Stop& stop, const BackendRow& backend, const PhaseCheck& check) {
    check.require(stop.rule != StopRule::wear_out || !(backend.queues || backend.needs_processes), "stop.rule",
                  "wear-out is not for the backend " + std::string(backend.name), "Use the rule stonewall.");
}

// Refuse a wanted option that the backend lacks. `why_not`: the registry's reason, empty if the backend has the option.
void check_ability(bool wanted, const BackendRow& backend, std::string_view why_not, const char* key,
                   const char* remedy, const PhaseCheck& check) {
    check.require(!wanted || why_not.empty(), key,
                  "is not for the backend " + std::string(backend.name) + std::string(why_not), remedy);
}

void check_interface(const TransferPhase& phase, const PhaseCheck& check) {
    const BackendRow& backend = row_of(phase.backend);
    check.require(phase.queue_depth == 1 || backend.queues, "queue_depth", "above 1 needs the backend uring",
                  "Use 1, or another backend.");
    check_wear_out(phase.stop, backend, check);
    check_ability(phase.direct, backend, backend.no_direct, "direct",
                  "Leave it out, or use the backend posix or uring.", check);
    check_ability(phase.preallocate, backend, backend.no_preallocate, "preallocate", "Leave it out.", check);
    check_ability(phase.cache != Cache::as_is, backend, backend.no_cache, "cache",
                  "Use as-is; with rank_shift no rank reads what it wrote.", check);
}

void check_writers(const TransferPhase& phase, const Plan& plan, const PhaseCheck& check) {
    const bool merged = phase.layout == Layout::file_per_writer;
    check.require(phase.writers <= plan.ranks, "writers", "is more than the number of ranks",
                  "Use at most the team's ranks.");
    check.require(!merged || phase.writers > 0, "writers",
                  "is missing: the layout file-per-writer needs to know how many",
                  "Give the number of writers in every phase on these files.");
    check.require(merged || phase.writers == 0 || (phase.layout == Layout::shared_file && phase.gathers()), "writers",
                  "is for writing into a shared-file, and for the layout file-per-writer", "Leave it out.");
    check.require(phase.writers > 0 || phase.grouping == TransferPhase{}.grouping, "grouping",
                  "has no effect without writers", "Leave it out, or give the number of writers.");
    // check_library() checks phases with writers on a backend that needs MPI processes.
    if (!phase.gathers() || row_of(phase.backend).needs_processes) return;
    check.require(phase.access == Access::segmented || phase.access == Access::strided, "access",
                  "with writers is segmented or strided", "Use segmented or strided.");
    check.require(row_of(phase.backend).gathers, "backend",
                  "with writers is " + backends_that([](const BackendRow& row) { return row.gathers; }),
                  "Use the backend posix.");
    check.require(phase.rank_shift == 0, "rank_shift", "is not for a write phase with writers", "Leave it out.");
    check.require(phase.transfer_bytes <= Exchange::kMostBytes, "transfer_bytes",
                  "is more than a writer takes at a time", "Use at most 1073741824.");
    check.require(phase.stop.rule == StopRule::amount || phase.stop.rule == StopRule::stonewall, "stop.rule",
                  "seconds and wear-out are not for a write phase with writers", "Use the rule amount or stonewall.");
}

void check_sizes(const TransferPhase& phase, const std::vector<SizeShare>& shares, const char* key,
                 const PhaseCheck& check) {
    if (shares.empty()) return;
    check.only(phase.operation == TransferOperation::mixed, key, "the operation mixed");
    check.require(!row_of(phase.backend).queues && !row_of(phase.backend).needs_processes, key,
                  "is not for this backend", "Use posix, raw, stdio, mmap or cephfs.");
    std::uint64_t percent = 0;
    for (const SizeShare& share : shares) {
        percent += share.percent;
        check.require(share.bytes <= phase.transfer_bytes, key, "has a size above transfer_bytes",
                      "Use the largest size as transfer_bytes.");
        check.require(!phase.direct || share.bytes % kDirectAlignment == 0, key,
                      "has a size that is not a multiple of 512, which direct needs", "Use multiples of 512.");
    }
    check.require(percent == 100, key, "has shares whose sum is not 100 percent", "Make the sum 100.");
}

void check_transfer(const TransferPhase& phase, const Plan& plan, std::map<std::string, DataSet>& sets,
                    const PhaseCheck& check) {
    using enum TransferOperation;
    const BackendRow& backend = row_of(phase.backend);
    check_interface(phase, check);
    check_writers(phase, plan, check);
    const bool shared = phase.layout == Layout::shared_file;
    check.require(phase.block_bytes % phase.transfer_bytes == 0, "block_bytes", "is not a multiple of transfer_bytes",
                  "Choose a block that is a whole number of transfers.");
    const char* const amount = phase.stream ? "count" : "segments";
    const std::uint64_t total = product_or_most(phase.segments, phase.block_bytes, plan.ranks);
    check.require(total <= kMostFileBytes, amount, "makes the data larger than a file can be",
                  phase.stream ? "Use a smaller count, smaller blocks or fewer ranks."
                               : "Use fewer segments, smaller blocks or fewer ranks.");
    check_library(phase, plan.ranks, check);
    check_objects(phase, check);
    check.require(phase.access != Access::strided || phase.layout != Layout::file_per_process, "access",
                  "strided needs a file that several ranks share",
                  "Use segmented, or the layout shared-file or file-per-writer.");
    const bool anywhere = phase.access == Access::whole || phase.access == Access::random_whole;
    check.require(!anywhere || (shared && phase.operation == read), "access",
                  phase.access == Access::whole ? "whole needs a read of a shared-file"
                                                : "random-whole needs a read of a shared-file",
                  "Use segmented, strided or random.");
    check.require(phase.access != Access::draws || phase.operation != write, "access",
                  "that draws its transfers leaves holes in a new file", "Write with segmented, strided or random.");
    check.require(!anywhere || phase.rank_shift == 0, "rank_shift",
                  "has no effect where every rank reads in the whole file", "Leave it out.");
    check.require(!phase.direct || phase.transfer_bytes % kDirectAlignment == 0,
                  phase.stream ? "block_bytes" : "transfer_bytes", "is not a multiple of 512, which direct needs",
                  "Use a multiple of 512, or better of 4096.");
    check.require((phase.operation == mixed) == phase.read_percent.has_value(), "read_percent",
                  phase.operation == mixed ? "is missing" : "is only for the operation mixed",
                  phase.operation == mixed ? "Give the share of reads, 1 to 99." : "Leave it out.");
    check.require(!phase.own_directory || !shared, "own_directory", "is for files that are not shared by all",
                  "Leave it out, or use the layout file-per-process.");
    check.require(!phase.own_directory || (!backend.needs_processes && backend.format != Format::objects),
                  "own_directory", "is not for this backend", "Leave it out, or use posix.");
    check.require(phase.sync != Sync::fsync_each || (phase.operation != read && !phase.gathers() && !backend.queues &&
                                                     !backend.needs_processes && backend.format != Format::objects),
                  "sync", "is fsync-each, which needs writes by single calls",
                  "Use fsync, or write with the backend posix and without writers.");
    check_sizes(phase, phase.read_sizes, "read_sizes", check);
    check_sizes(phase, phase.write_sizes, "write_sizes", check);
    check.only(phase.first_ranks == 0 || (phase.operation == write && !shared && phase.writers == 0), "first_ranks",
               "a write of a file of each rank");
    check.require(phase.first_ranks <= plan.ranks, "first_ranks", "is more than the ranks of the team",
                  "Use at most this number.");
    check.require(phase.first_ranks == 0 || phase.stop.rule != StopRule::wear_out, "first_ranks",
                  "is not for the rule wear-out, by which all ranks do the same", "Use another rule.");
    check.require(phase.cache != Cache::drop || phase.operation != write || phase.preallocate, "cache",
                  "drop has no effect on a new file, of which nothing is cached", "Leave it out.");
    check.only(!phase.preallocate || phase.operation == write, "preallocate", "the operation write");
    check.require(!phase.verify || phase.operation == read || phase.operation == mixed, "verify",
                  "is only for the operations read and mixed", "Leave it out, or add a read phase.");
    check.require(!phase.verify || phase.pattern == Pattern::stamped, "verify", "needs the pattern stamped",
                  "Use the pattern stamped.");

    constexpr const char* kOthers = "differs from the write phase of the same files";
    DataSet& set = sets[phase.files];
    if (phase.operation == write) {
        set = {.written = &phase, .stamped = phase.pattern == Pattern::stamped};
        return;
    }
    check.require(set.written != nullptr, "files", "names a file set that no earlier phase wrote",
                  "Add a write phase with the same files before it.");
    check.require(!set.partial || same_geometry(phase, *set.written), "files",
                  "is a set that only some ranks wrote, so no other access can be used than the one that wrote it",
                  "Use the access, transfer_bytes, block_bytes and segments of the write phase, or files of its own.");
    check.require(set.written->layout == phase.layout, "layout", kOthers, "Use the same layout, or other files.");
    check.require(set.written->own_directory == phase.own_directory, "own_directory", kOthers,
                  "Use the same value, or other files.");
    check.require(row_of(set.written->backend).format == backend.format, "backend",
                  "is not the one that wrote the same files, and it cannot read their format",
                  "Use the same backend, or other files.");
    const bool merged = phase.layout == Layout::file_per_writer;
    check.require(!merged || set.written->writers == phase.writers, "writers", kOthers, "Use the same number.");
    check.require(!merged || set.written->grouping == phase.grouping, "grouping", kOthers, "Use the same grouping.");
    const std::uint64_t reach = set.written->bytes_per_rank() * (phase.access == Access::random_whole ? plan.ranks : 1);
    check.require(phase.bytes_per_rank() <= reach, amount,
                  "makes more data than the write phase of the same files wrote",
                  phase.stream ? "Use at most count x block_bytes of the write phase."
                               : "Use at most segments x block_bytes of the write phase.");
    check.require(phase.compressible_percent == set.written->compressible_percent, "compressible_percent", kOthers,
                  "Use the same share, or other files.");
    check.require(phase.duplicate_percent == set.written->duplicate_percent, "duplicate_percent", kOthers,
                  "Use the same share, or other files.");
    check.require(!phase.verify || set.stamped, "verify", "needs files that were written with the pattern stamped",
                  "Use the pattern stamped in every phase that writes these files.");
    if (phase.operation != read && phase.pattern == Pattern::once) set.stamped = false;
}

void check_stage(const StagePhase& phase, std::uint32_t ranks, const std::map<std::string, DataSet>& sets,
                 const PhaseCheck& check) {
    const auto found = sets.find(phase.files);
    check.require(found != sets.end() && found->second.written != nullptr, "files",
                  "names a file set that no earlier phase wrote", "Add a write phase with the same files before it.");
    const DataSet& set = found->second;
    check.require(set.written->layout == Layout::shared_file, "files",
                  "is not a shared-file, which all ranks could need", "Write it with the layout shared-file.");
    check.require(row_of(set.written->backend).format == row_of(phase.backend).format, "files",
                  "is in a format that only the backend that wrote it can read", "Write it by another backend.");
    check.require(!set.partial, "files", "is a set that not all ranks wrote", "Let all ranks write it.");
    check.require(!phase.verify || set.stamped, "verify", "needs files that were written with the pattern stamped",
                  "Use the pattern stamped in every phase that writes these files.");
    check.require(phase.readers_per_node <= ranks, "readers_per_node", "is more than the number of ranks",
                  "Use at most the team's ranks, or 0 for all ranks of a node.");
    check.require(!phase.broadcast || phase.readers_per_node > 0, "broadcast", "needs readers_per_node",
                  "Give the number of reading ranks on each node.");
}

void check_probe(const ProbePhase& phase, std::set<std::string>& sets, const PhaseCheck& check) {
    // Maximum number of operations of a rank. The log keeps all operations in memory.
    constexpr std::uint64_t kMostOperations = std::uint64_t{1} << 22U;
    check.require(sets.insert(phase.files).second, "files", "is also the set of an earlier probe",
                  "Give each probe separate files.");
    check.require(phase.operations() <= kMostOperations, "seconds", "at this rate makes more than 4194304 operations",
                  "Use a lower rate_per_s, fewer seconds, or several phases.");
    const bool reads = phase.operation == ProbeOperation::file_read;
    const bool moves = reads || phase.operation == ProbeOperation::write_fsync;
    check.require(!moves || phase.file_bytes > 0, "file_bytes", "is missing, so there is nothing to move",
                  "Give the number of bytes of each operation.");
    check.require(!reads || row_of(phase.backend).drops_cache, "backend",
                  "cannot drop what it is about to read from its cache", "Use posix for file-read.");
    check.require(phase.operation != ProbeOperation::file_stat || phase.file_bytes == 0, "file_bytes",
                  "is not for the operation file-stat", "Leave it out.");
}

// State of a set of items after the phases that were already checked. Files and directories are tracked separately.
struct ItemSet {
    const MetadataPhase* first = nullptr;
    const MetadataPhase* files = nullptr;  // the phase that created the files; null after all were removed
    const MetadataPhase* directories = nullptr;
    const MetadataPhase* attributes = nullptr;  // the last file-setxattr; null after all files were removed
    const MetadataPhase* cut = nullptr;         // the last file-truncate; null after all files were removed
    bool linked = false;
};

void check_stop(const MetadataPhase& phase, const PhaseCheck& check) {
    check.require(phase.stop.rule != StopRule::seconds || repeats(phase.operation), "stop.rule",
                  "seconds needs an operation that can be repeated on the same items", "Use the rule stonewall.");
}

void check_same_set(const MetadataPhase& phase, const ItemSet& set, const MetadataPhase* created,
                    const PhaseCheck& check) {
    constexpr const char* kFault = "differs from the earlier phases on the same files";
    constexpr const char* kRemedy = "Use the same value, or another name in files.";
    check.require(phase.directory == set.first->directory, "directory", kFault, kRemedy);
    check.require(phase.depth == set.first->depth, "depth", kFault, kRemedy);
    check.require(phase.branch == set.first->branch, "branch", kFault, kRemedy);
    check.require(phase.items == set.first->items, "items", kFault, kRemedy);
    // file_bytes has no effect on directories, so any value is accepted.
    if (!on_directories(phase.operation) && created != nullptr)
        check.require(phase.file_bytes == created->file_bytes, "file_bytes", kFault, kRemedy);
}

// Check operations that only the C library offers, and keys that belong to single operations.
void check_library_calls(const MetadataPhase& phase, const PhaseCheck& check) {
    using enum MetadataOperation;
    const bool newer = phase.operation >= file_chmod;
    check.require(!newer || row_of(phase.backend).c_library, "operation", "needs the backend posix",
                  "Use the backend posix.");
    check.require(phase.order == ItemOrder::in_order || (leaves_as_is(phase.operation) && !is_listing(phase.operation)),
                  "order", "random is only for operations that leave items as they are, one by one", "Leave it out.");
    check.require(!is_listing(phase.operation) || phase.stop.rule != StopRule::wear_out, "stop.rule",
                  "wear-out is not for going over directories", "Use the rule stonewall.");
    check.require(!is_listing(phase.operation) || phase.paths == Paths::relative, "paths",
                  "other than relative is not for going over directories", "Leave it out.");
    check.only(phase.truncate_bytes == 0 || phase.operation == file_truncate, "truncate_bytes",
               "the operation file-truncate");
    check.require(phase.operation != file_truncate || phase.truncate_bytes != phase.file_bytes, "truncate_bytes",
                  "is the present size of the files, so nothing would change",
                  "Give the size of each file as file_bytes, and a different size as truncate_bytes.");
    const bool attributes = phase.operation == file_setxattr || phase.operation == file_getxattr;
    check.only(attributes || phase.xattr_bytes == MetadataPhase{}.xattr_bytes, "xattr_bytes", "extended attributes");
    check.only(phase.operation == find || phase.find_name.empty(), "find_name", "the operation find");
    check.only(phase.operation == find || !phase.find_all, "find_all", "the operation find");
    check.only(phase.operation == find || !phase.find_bytes, "find_bytes", "the operation find");
}

void check_files_of_set(const MetadataPhase& phase, ItemSet& set, const PhaseCheck& check) {
    using enum MetadataOperation;
    check.require(phase.operation != file_read || set.cut == nullptr, "files",
                  "names an item set whose files were truncated", "Read them before, or give them another name.");
    check.require(phase.operation != file_link || !set.linked, "files", "names an item set that has its links already",
                  "Use another name.");
    if (phase.operation == file_link) set.linked = true;
    if (phase.operation == file_truncate) set.cut = &phase;
    if (phase.operation == file_setxattr) set.attributes = &phase;
    if (phase.operation != file_getxattr) return;
    check.require(set.attributes != nullptr, "files", "names an item set whose files have no extended attributes",
                  "Add a phase with file-setxattr before this one.");
    check.require(set.attributes->xattr_bytes == phase.xattr_bytes, "xattr_bytes",
                  "differs from that of the phase that set them", "Use the same value.");
}

void check_metadata(const MetadataPhase& phase, std::map<std::string, ItemSet>& sets, const PhaseCheck& check) {
    std::uint64_t leaves = 1;
    for (std::uint32_t level = 0; level < phase.depth && leaves <= kMostLeaves; ++level) leaves *= phase.branch;
    check.require(leaves <= kMostLeaves, "branch", "makes more than 65536 directories at the lowest level",
                  "Use a smaller branch or depth.");
    check_wear_out(phase.stop, row_of(phase.backend), check);
    check_objects(phase, check);
    const bool by_c_library = row_of(phase.backend).c_library;
    check.require(phase.create_with == CreateWith::open || by_c_library, "create_with",
                  "mknod needs the backend posix: others have no such call", "Use open, or the backend posix.");
    const bool creates = is_creation(phase.operation);
    check.require(!creates || phase.rank_shift == 0, "rank_shift", "is not for creations", "Leave it out.");
    check.require(phase.share == Share::own || leaves_as_is(phase.operation), "share",
                  "all is only for operations that leave items as they are", "Leave it out.");
    check_library_calls(phase, check);
    check.only(phase.create_with == CreateWith::open || phase.operation == MetadataOperation::file_create,
               "create_with", "the operation file-create");
    check.require(phase.create_with == CreateWith::open || phase.file_bytes == 0, "create_with",
                  "mknod cannot write data", "Use open, or file_bytes 0.");
    check.require(phase.paths == Paths::relative || by_c_library, "paths",
                  "other than relative needs the backend posix", "Use relative, or the backend posix.");
    const bool opens = (phase.operation == MetadataOperation::file_create && phase.create_with == CreateWith::open) ||
                       phase.operation == MetadataOperation::file_open_close ||
                       phase.operation == MetadataOperation::file_read;
    check.only(phase.open_mode == OpenMode::least || opens, "open_mode", "operations that open files");
    check.require(phase.open_mode == OpenMode::least || by_c_library, "open_mode", "read-write needs the backend posix",
                  "Use least, or the backend posix.");
    check.only(!phase.fsync || phase.operation == MetadataOperation::file_create, "fsync", "the operation file-create");
    check.require(!phase.fsync || (phase.create_with == CreateWith::open && by_c_library), "fsync",
                  "needs files that are opened, by the backend posix", "Use open and posix, or leave it out.");
    check.require(phase.operation != MetadataOperation::file_read || phase.file_bytes > 0, "file_bytes",
                  "is 0, so there is nothing to read", "Give the files data, or use the operation file-open-close.");
    check_stop(phase, check);

    ItemSet& set = sets[phase.files];
    if (set.first == nullptr) set.first = &phase;
    const bool lists_directories = is_listing(phase.operation) && set.files == nullptr;
    const MetadataPhase*& created = on_directories(phase.operation) || lists_directories ? set.directories : set.files;
    check_same_set(phase, set, created, check);
    if (creates) {
        check.require(created == nullptr, "files", "names an item set that exists already or may exist in part",
                      "Use another name, or remove all of its items before.");
        created = &phase;
        return;
    }
    check.require(created != nullptr, "files", "names an item set that no earlier phase created",
                  "Add its creation before this phase.");
    check.require(row_of(created->backend).format == row_of(phase.backend).format, "backend",
                  "is not the one that created the same files, and it cannot see them",
                  "Use the same backend, or other files.");
    check_files_of_set(phase, set, check);
    if (!is_removal(phase.operation) || phase.stop.rule != StopRule::amount) return;
    created = nullptr;
    if (!on_directories(phase.operation)) set.attributes = set.cut = nullptr;
}

void check_placement(const Placement& placement) {
    const auto require = [](bool holds, const char* key, const std::string& fault, const std::string& remedy) {
        if (!holds) throw Refusal("'team." + std::string(key) + "' " + fault, "team." + std::string(key), remedy);
    };
    const Processors before = Processors::allowed();
    const std::set<std::uint32_t> wanted(placement.processors.begin(), placement.processors.end());
    const auto denied =
        std::ranges::find_if(wanted, [](std::uint32_t one) { return !Processors::of({&one, 1}).keep_to(); });
    if (!wanted.empty()) before.keep_to();
    require(denied == wanted.end(), "processors",
            "names a processor that this node does not have, or that these processes may not use" +
                (denied == wanted.end() ? "" : ": " + std::to_string(*denied)),
            "nproc and lscpu --extended list the processors; a batch job may use only some of them.");
    for (const std::uint32_t node : placement.numa_nodes) {
        const std::string number = std::to_string(node);
        require(
            processors_of_numa_node(node).count() > 0, "numa_nodes",
            "names a NUMA node that this machine does not have, or none of whose processors these processes may use: " +
                number,
            "lscpu shows the NUMA nodes and their processors.");
        const int error = memory_error(node);
        require(error == 0, "numa_nodes",
                "cannot be: no memory may be chosen on NUMA node " + number + " (" + errno_name(error) + ")",
                "Use processors instead; in containers the call set_mempolicy must be allowed.");
    }
    const bool huge = placement.buffer_pages == Pages::huge;
    require(page_bytes(placement.buffer_pages) > 0, "buffer_pages",
            huge ? "huge is not there: the kernel has no huge pages"
                 : "transparent is not there: the kernel has none, or they are switched off",
            huge ? "Use normal."
                 : "Use normal, or write madvise into /sys/kernel/mm/transparent_hugepage/enabled as root.");
    require(!huge || free_huge_pages() > 0, "buffer_pages",
            "huge is not there: no huge pages are reserved, or all are taken",
            "Reserve some as root, such as: sysctl vm.nr_hugepages=512");
}

}  // namespace

void check_plan(const Plan& plan) {
    std::set<std::string> names;
    std::map<std::string, DataSet> data;
    std::map<std::string, ItemSet> items;
    std::map<std::string, PoolSet> pools;
    std::set<std::string> probes;
    std::map<std::string, const TrainingPhase*> generated;
    std::size_t parts_end = 0;
    for (std::size_t i = 0; i < plan.phases.size(); ++i) {
        const PhaseCheck check(plan.key_of(i));
        check.require(names.insert(phase_name(plan.phases[i])).second, "name", "is also the name of an earlier phase",
                      "Give each phase a different name.");
        check.require(row_of(backend_of(plan.phases[i])).unmounted == unmounted(plan), "backend",
                      "reaches a file system without a mount only in some phases, so the phases would use "
                      "different directories",
                      "Use cephfs in all phases of the plan, or in none.");
        if (std::holds_alternative<MixedPhase>(plan.phases[i])) {
            check_mixed(plan, i);
            parts_end = plan.after(i);
            continue;
        }
        if (const auto* transfer = std::get_if<TransferPhase>(&plan.phases[i])) {
            check_transfer(*transfer, plan, data, check);
            if (transfer->operation == TransferOperation::write) data[transfer->files].partial = i < parts_end;
        } else if (const auto* small = std::get_if<SmallFilesPhase>(&plan.phases[i])) {
            check_small_files(*small, pools, check);
        } else if (const auto* probe = std::get_if<ProbePhase>(&plan.phases[i])) {
            check_probe(*probe, probes, check);
        } else if (const auto* stage = std::get_if<StagePhase>(&plan.phases[i])) {
            check_stage(*stage, plan.ranks, data, check);
        } else if (const auto* training = std::get_if<TrainingPhase>(&plan.phases[i])) {
            check_training(*training, plan.ranks, generated, check);
        } else {
            check_metadata(std::get<MetadataPhase>(plan.phases[i]), items, check);
        }
    }
}

void check_here(const Plan& plan) {
    check_placement(plan.placement);
    for (std::size_t i = 0; i < plan.phases.size(); ++i) {
        const PhaseCheck check(plan.key_of(i));
        const Absence absence = absence_of(backend_of(plan.phases[i]));
        check.require(absence.why.empty(), "backend", "is not there: " + absence.why, absence.remedy);
        const auto* transfer = std::get_if<TransferPhase>(&plan.phases[i]);
        const auto* stage = std::get_if<StagePhase>(&plan.phases[i]);
        const auto* training = std::get_if<TrainingPhase>(&plan.phases[i]);
        const bool drops = (transfer != nullptr && transfer->cache == Cache::drop_system) ||
                           (stage != nullptr && stage->cache == Cache::drop_system) ||
                           (training != nullptr && training->cache == Cache::drop_system);
        check.require(!drops || may_drop_system_caches(), "cache",
                      "drop-system needs the right to write /proc/sys/vm/drop_caches", "Run as root, or use drop.");
    }
}

}  // namespace strakes
