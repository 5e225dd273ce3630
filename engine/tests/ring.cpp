// Registration of a ring's own descriptor.
#ifdef STRAKES_URING
#include <doctest/doctest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "backend/uring_file.hpp"

using strakes::Ring;

namespace {

constexpr unsigned kByIndex = 1U << 4U;  // IORING_ENTER_REGISTERED_RING

// Enter the first ring that this thread registered, without submitting anything. Return 0 or an error number.
int enter_registered() { return ::syscall(__NR_io_uring_enter, 0, 0, 0, kByIndex, nullptr, 0) < 0 ? errno : 0; }

}  // namespace

TEST_CASE("a ring is entered without its descriptor after start, and no longer after stop") {
    int started = -1, before = 0, during = -1, after = 0;
    // In a separate thread, because rings are registered per thread and other tests may have registered some.
    std::thread([&] {
        Ring ring;
        before = enter_registered();
        started = ring.start(4);
        during = enter_registered();
        ring.stop();
        after = enter_registered();
    }).join();
    if (started == ENOSYS || started == EPERM) return;  // no io_uring here
    CHECK(started == 0);
    CHECK(before == EINVAL);
    CHECK(during == 0);
    CHECK(after != 0);
}
#endif
