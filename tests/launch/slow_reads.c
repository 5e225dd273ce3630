// A file system of which every read takes SLOW_READS_MS longer, however many there are at a time.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/types.h>
#include <time.h>

typedef ssize_t (*Read)(int, void*, size_t, off_t);

static ssize_t slowly(const char* name, int descriptor, void* to, size_t bytes, off_t offset) {
    const char* text = getenv("SLOW_READS_MS");
    const long ms = text ? atol(text) : 0;
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
    return ((Read)dlsym(RTLD_NEXT, name))(descriptor, to, bytes, offset);
}

ssize_t pread(int descriptor, void* to, size_t bytes, off_t offset) {
    return slowly("pread", descriptor, to, bytes, offset);
}
ssize_t pread64(int descriptor, void* to, size_t bytes, off_t offset) {
    return slowly("pread64", descriptor, to, bytes, offset);
}
