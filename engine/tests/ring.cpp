// What a ring asks of the kernel besides its requests.
#ifdef STRAKES_URING
#include "backend/ring.hpp"

#include <doctest/doctest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

using strakes::Ring;

namespace {

constexpr unsigned kByIndex = 1U << 4U;  // IORING_ENTER_REGISTERED_RING

// Enters the ring that this thread has registered first, with nothing to do. 0 or an error number.
int enter_registered() { return ::syscall(__NR_io_uring_enter, 0, 0, 0, kByIndex, nullptr, 0) < 0 ? errno : 0; }

}  // namespace

TEST_CASE("a ring that was started is entered without its descriptor, and no longer when it is stopped") {
    int started = -1, before = 0, during = -1, after = 0;
    // Rings are registered by thread, and other tests may have left some.
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
