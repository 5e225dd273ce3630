// Messages for the failures of a transfer loop.
#include "workload/transfer_loop.hpp"

#include <cerrno>
#include <utility>

namespace strakes {

namespace {

std::string hexadecimal(std::byte value) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    const auto number = std::to_integer<unsigned>(value);
    return {'0', 'x', kDigits[number / 16], kDigits[number % 16]};
}

}  // namespace

Failure describe(const LoopEnd& end, std::string path) {
    const std::string_view call = end.reading ? "read" : "write";
    if (end.call != nullptr) return call_failure(end.call, std::move(path), end.error);
    Failure failure;
    if (end.mismatch) {
        failure.what = "the data read are not the data written";
        failure.why =
            "expected byte " + hexadecimal(end.mismatch->expected) + ", found " + hexadecimal(end.mismatch->found);
        failure.remedy =
            "Treat this file system as corrupting data until the cause is known; repeat with direct to leave the page "
            "cache out.";
        failure.offset_bytes = end.mismatch->offset_bytes;
    } else if (end.error == LoopEnd::kEndOfFile) {
        failure.what = std::string(call) + " moved nothing";
        failure.why = end.reading ? "the file ends before the data that were written"
                                  : "the file system accepted no byte and gave no reason";
        failure.remedy = "Make sure that nothing else changes the files of this run.";
        failure.offset_bytes = end.offset;
    } else {
        failure = call_failure(call, "", end.error);
        if (end.error == EINVAL)
            failure.remedy =
                "With direct, use a transfer_bytes that is a multiple of the device's block, such as 4096.";
        failure.offset_bytes = end.offset;
    }
    failure.path = std::move(path);
    failure.operation = call;
    return failure;
}

}  // namespace strakes
