// Differences of histograms between successive observations.
#include "workload/latency_rows.hpp"

namespace strakes {

void LatencyRows::add(std::uint64_t from_ns, std::uint64_t to_ns, const Latencies& before, const Latencies& after) {
    const std::uint64_t middle_ns = from_ns + (to_ns - from_ns) / 2;
    while (middle_ns / row_ns_ >= most_rows_) lengthen();
    Row row;
    const Histogram none;
    for (std::uint8_t kind = 0; kind < after.kinds(); ++kind) {
        const Histogram* now = after.of_kind(kind);
        const Histogram* then = before.of_kind(kind);
        if (now == nullptr) continue;
        for (const auto& [bucket, calls] : now->buckets_since(then != nullptr ? *then : none))
            row[{kind, bucket}] = calls;
    }
    if (row.empty()) return;
    for (const auto& [key, calls] : row) rows_[middle_ns / row_ns_][key] += calls;
}

void LatencyRows::merge(LatencyRows&& other) {
    most_rows_ = std::min(most_rows_, other.most_rows_);
    while (row_ns_ < other.row_ns_) lengthen();
    while (other.row_ns_ < row_ns_) other.lengthen();
    for (auto& [number, row] : other.rows_)
        for (const auto& [key, calls] : row) rows_[number][key] += calls;
}

// Merge pairs of rows.
void LatencyRows::lengthen() {
    std::map<std::uint64_t, Row> longer;
    for (const auto& [number, row] : rows_)
        for (const auto& [key, calls] : row) longer[number / 2][key] += calls;
    rows_ = std::move(longer);
    row_ns_ *= 2;
}

void LatencyRows::pack(Packer& packer) const {
    packer.put(std::uint64_t{most_rows_});
    packer.put(row_ns_);
    packer.put(std::uint64_t{rows_.size()});
    for (const auto& [number, row] : rows_) {
        packer.put(number);
        packer.put(std::uint64_t{row.size()});
        for (const auto& [key, calls] : row) {
            packer.put(key.first);
            packer.put(key.second);
            packer.put(calls);
        }
    }
}

void LatencyRows::unpack(Unpacker& unpacker) {
    most_rows_ = unpacker.get<std::uint64_t>();
    row_ns_ = unpacker.get<std::uint64_t>();
    for (auto left = unpacker.get<std::uint64_t>(); left > 0 && !unpacker.at_end(); --left) {
        Row& row = rows_[unpacker.get<std::uint64_t>()];
        for (auto calls = unpacker.get<std::uint64_t>(); calls > 0 && !unpacker.at_end(); --calls) {
            const auto kind = unpacker.get<std::uint8_t>();
            const auto bucket = unpacker.get<std::uint32_t>();
            row[{kind, bucket}] = unpacker.get<std::uint64_t>();
        }
    }
}

void LatencyWatch::begin(const Phase& phase, std::uint64_t now_ns) {
    const std::lock_guard lock(mutex_);
    phase_ = &phase;
    start_ns_ = now_ns;
    seen_ns_ = 0;
    parts_.clear();
}

void LatencyWatch::end(std::uint64_t now_ns) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t gone_ns = elapsed(start_ns_, now_ns);
    if (phase_ != nullptr && (!parts_.empty() || gone_ns >= LatencyRows().row_ns())) add(gone_ns);
    phase_ = nullptr;
}

std::vector<LatencyRows> LatencyWatch::take() {
    std::vector<LatencyRows> rows;
    rows.reserve(parts_.size());
    for (Part& part : parts_) rows.push_back(std::move(part.rows));
    parts_.clear();
    return rows;
}

void LatencyWatch::look(std::uint64_t now_ns) {
    const std::lock_guard lock(mutex_);
    if (phase_ == nullptr) return;
    const std::uint64_t row_ns = parts_.empty() ? LatencyRows().row_ns() : parts_.front().rows.row_ns();
    const std::uint64_t gone_ns = elapsed(start_ns_, now_ns);
    if (elapsed(seen_ns_, gone_ns) >= row_ns * 2 / 5) add(gone_ns);
}

void LatencyWatch::add(std::uint64_t now_ns) {
    const auto* mixed = std::get_if<MixedPhase>(phase_);
    const std::size_t parts = mixed != nullptr ? mixed->parts() : 1;
    while (parts_.size() < parts) parts_.emplace_back(most_rows_);
    std::vector<Latencies> now(parts);
    for (Team::Rank rank = latencies_.first(); rank < latencies_.first() + latencies_.size(); ++rank)
        now[mixed != nullptr ? mixed->part_of(rank) : 0].merge(latencies_.of(rank));
    for (std::size_t part = 0; part < parts; ++part) {
        parts_[part].rows.add(seen_ns_, now_ns, parts_[part].seen, now[part]);
        parts_[part].seen = std::move(now[part]);
    }
    seen_ns_ = now_ns;
}

}  // namespace strakes
