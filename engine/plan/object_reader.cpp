// Strict reading of one JSON object.
#include "plan/object_reader.hpp"

#include <algorithm>
#include <cmath>

namespace strakes {

ObjectReader::ObjectReader(const nlohmann::json& value, std::string path,
                           std::initializer_list<std::string_view> allowed)
    : object_(&value), path_(std::move(path)) {
    if (!value.is_object())
        throw Refusal("'" + path_ + "' is not an object", path_, "Write it as {\"key\": value, ...}.");
    for (const auto& [key, unused] : value.items()) {
        if (std::ranges::find(allowed, std::string_view(key)) != allowed.end()) continue;
        std::string known;
        for (const std::string_view name : allowed) known.append(known.empty() ? "" : ", ").append(name);
        refuse(key, "is not a known key", "Known here: " + known + ".");
    }
}

bool ObjectReader::has(std::string_view key) const { return object_->contains(key); }

std::string ObjectReader::path_of(std::string_view key) const {
    return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

void ObjectReader::refuse(std::string_view key, std::string_view fault, std::string remedy) const {
    std::string path = path_of(key);
    std::string what = "'" + path + "' ";
    what.append(fault);
    throw Refusal(std::move(what), std::move(path), std::move(remedy));
}

const nlohmann::json& ObjectReader::value(std::string_view key) const {
    const auto found = object_->find(key);
    if (found == object_->end())
        refuse(key, "is missing", "Add it; schemas/plan.json and docs/reference/engine.md say what it means.");
    return *found;
}

std::string ObjectReader::string(std::string_view key) const {
    const nlohmann::json& found = value(key);
    if (!found.is_string()) refuse(key, "is not a string", "Write it in quotes.");
    return found.get<std::string>();
}

std::uint64_t ObjectReader::integer(std::string_view key, std::uint64_t least, std::uint64_t most) const {
    const nlohmann::json& found = value(key);
    const std::string range = std::to_string(least) + " to " + std::to_string(most);
    std::uint64_t number = 0;
    if (found.is_number_float()) {
        const auto real = found.get<double>();
        if (std::trunc(real) != real) refuse(key, "is not an integer", "Give an integer, " + range + ".");
        if (real < 0 || real >= 0x1p63) refuse(key, "is out of range", "Give an integer, " + range + ".");
        number = static_cast<std::uint64_t>(real);
    } else if (found.is_number_integer()) {
        const bool negative = !found.is_number_unsigned() && found.get<std::int64_t>() < 0;
        if (negative) refuse(key, "is out of range", "Give an integer, " + range + ".");
        number = found.get<std::uint64_t>();
    } else {
        refuse(key, "is not an integer", "Give an integer, " + range + ".");
    }
    if (number < least || number > most) refuse(key, "is out of range", "Give an integer, " + range + ".");
    return number;
}

double ObjectReader::positive_number(std::string_view key, double most) const {
    const nlohmann::json& found = value(key);
    if (!found.is_number()) refuse(key, "is not a number", "Give a number of seconds.");
    const auto number = found.get<double>();
    if (number <= 0 || number > most)
        refuse(key, "is out of range",
               "Give a number above 0, at most " + std::to_string(static_cast<std::uint64_t>(most)) + ".");
    return number;
}

bool ObjectReader::boolean(std::string_view key) const {
    const nlohmann::json& found = value(key);
    if (!found.is_boolean()) refuse(key, "is not a boolean", "true or false.");
    return found.get<bool>();
}

}  // namespace strakes
