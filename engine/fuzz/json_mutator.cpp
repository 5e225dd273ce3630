// Mutations that keep the input valid JSON, since random changes of bytes hardly ever get past the first key. Replaces
// values by limit values, by other values of the input and, in a cross-over, by values of another input.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

using Json = nlohmann::json;

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

using Random = std::minstd_rand;

Json parse(const std::uint8_t* data, std::size_t size) {
    return Json::parse(std::string_view(reinterpret_cast<const char*>(data), size), nullptr, false);
}

std::size_t pick(Random& random, std::size_t choices) {
    return std::uniform_int_distribution<std::size_t>(0, choices - 1)(random);
}

void collect(Json& node, std::vector<Json*>& into) {
    into.push_back(&node);
    if (node.is_structured())
        for (Json& child : node) collect(child, into);
}

std::vector<Json*> nodes_of(Json& document) {
    std::vector<Json*> nodes;
    collect(document, nodes);
    return nodes;
}

Json at_a_limit(Random& random) {
    static const std::vector<Json> kLimits{
        nullptr, true,    false,   0,       1,      2,        -1,   512,           4096,          65535,
        65536,   65537,   1 << 30, 0.5,     1e308,  1e19,     -0.0, INT64_MIN,     INT64_MAX,     UINT64_MAX,
        "",      "posix", "uring", "mpiio", "hdf5", "amount", "a",  Json::array(), Json::object()};
    return kLimits[pick(random, kLimits.size())];
}

void change(Json& document, Random& random) {
    const std::vector<Json*> nodes = nodes_of(document);
    Json& node = *nodes[pick(random, nodes.size())];
    switch (pick(random, 5)) {
        case 0:
            node = at_a_limit(random);
            break;
        case 1:
            node = Json(*nodes[pick(random, nodes.size())]);
            break;
        case 2:
            if (node.is_object() && !node.empty()) {
                node.erase(std::next(node.begin(), static_cast<std::ptrdiff_t>(pick(random, node.size()))));
            } else if (node.is_array() && !node.empty()) {
                node.erase(pick(random, node.size()));
            }
            break;
        case 3:
            if (node.is_array() && !node.empty()) node.push_back(Json(node[pick(random, node.size())]));
            break;
        default:
            if (node.is_number_unsigned()) {
                const auto number = node.get<std::uint64_t>();
                node = pick(random, 2) == 0 ? number * 2 : number - 1;
            }
    }
}

// Writes the document and returns its size, or 0 if it does not fit.
std::size_t write(const Json& document, std::uint8_t* data, std::size_t most) {
    const std::string text = document.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (text.size() > most) return 0;
    std::ranges::copy(text, data);
    return text.size();
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
    Random random(seed);
    Json document = pick(random, 4) == 0 ? Json(Json::value_t::discarded) : parse(data, size);
    if (document.is_discarded()) return LLVMFuzzerMutate(data, size, most);
    for (std::size_t i = pick(random, 3) + 1; i > 0; --i) change(document, random);
    const std::size_t written = write(document, data, most);
    return written > 0 ? written : LLVMFuzzerMutate(data, size, most);
}

extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* first, std::size_t first_size,
                                                 const std::uint8_t* second, std::size_t second_size,
                                                 std::uint8_t* into, std::size_t most, unsigned seed) {
    Random random(seed);
    Json document = parse(first, first_size);
    Json other = parse(second, second_size);
    if (document.is_discarded() || other.is_discarded()) return 0;
    const std::vector<Json*> nodes = nodes_of(document);
    const std::vector<Json*> others = nodes_of(other);
    *nodes[pick(random, nodes.size())] = Json(*others[pick(random, others.size())]);
    return write(document, into, most);
}
