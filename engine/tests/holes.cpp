// Holes are found before data, between data, and beyond the end of the file.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "support.hpp"
#include "system/descriptor.hpp"
#include "system/queries.hpp"

using namespace strakes;
using namespace strakes::tests;

TEST_CASE("holes of a file are counted, and so is the range beyond its end") {
    const TestDirectory place;
    const Mount mount(place.path(), "size=8m");  // tmpfs reports holes page by page
    if (!mount.is_there()) return;
    constexpr std::uint64_t kPage = 65536;
    const Descriptor file(::open((place.path() / "file").c_str(), O_RDWR | O_CREAT, 0600));
    const std::string data(kPage, 'x');
    for (const std::uint64_t page : {1U, 2U, 5U})
        REQUIRE(::pwrite(file.get(), data.data(), data.size(), static_cast<off_t>(page * kPage)) == kPage);
    CHECK(hole_bytes(file.get(), kPage, 3 * kPage) == 0);
    CHECK(hole_bytes(file.get(), 0, 3 * kPage) == kPage);
    CHECK(hole_bytes(file.get(), kPage, 6 * kPage) == 2 * kPage);
    CHECK(hole_bytes(file.get(), 3 * kPage, 4 * kPage) == kPage);
    CHECK(hole_bytes(file.get(), 0, 10 * kPage) == 7 * kPage);
    CHECK(hole_bytes(file.get(), 8 * kPage, 9 * kPage) == kPage);
}
