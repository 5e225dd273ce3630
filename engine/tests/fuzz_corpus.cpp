// Runs each input that the parser's fuzzer has kept (engine/fuzz).
#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "support.hpp"

namespace fs = std::filesystem;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

TEST_CASE("every input that the fuzzer has kept is accepted, or refused with a reason") {
    int inputs = 0;
    for (const auto& entry : fs::directory_iterator(STRAKES_FUZZ_CORPUS)) {
        INFO(entry.path().filename().string());
        const std::string input = strakes::tests::text_of(entry.path());
        CHECK(LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size()) == 0);
        ++inputs;
    }
    CHECK(inputs >= 50);
}
