// Clients of libcephfs without a cluster.
#ifdef STRAKES_CEPHFS
#include <doctest/doctest.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "backend/ceph.hpp"

using strakes::Ceph;

TEST_CASE("a process connects ranks with any rank number") {
    ::setenv("CEPH_CONF", "/nonexistent/ceph.conf", 1);  // NOLINT(concurrency-mt-unsafe): no other thread is there
    const strakes::FileStep first = Ceph::connect(0);
    REQUIRE(std::string(first.call) == "ceph_conf_read_file");
    for (const std::uint32_t rank : {Ceph::kMostSessions, 65535U}) {
        const strakes::FileStep step = Ceph::connect(rank);
        CHECK(std::string(step.call) == first.call);
        CHECK(step.error == first.error);
        Ceph::disconnect(rank);
    }
    ::unsetenv("CEPH_CONF");  // NOLINT(concurrency-mt-unsafe)
}
#endif
