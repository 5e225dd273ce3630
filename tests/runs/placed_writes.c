// Preloaded into an engine: before the first write to each file a line goes into $PLACED_WRITES with the processors
// that its thread may use, and the size of the pages that the bytes are on, as the kernel tells both.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned long huge_kib_at(const void* wanted) {
    FILE* lines = fopen("/proc/self/smaps", "r");
    char line[4096];
    unsigned long kib = 0;
    int here = 0;
    while (lines && fgets(line, sizeof line, lines)) {
        uintptr_t first, last;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &first, &last) == 2)
            here = first <= (uintptr_t)wanted && (uintptr_t)wanted < last;
        else if (here && sscanf(line, "AnonHugePages: %lu", &kib) == 1)
            break;
    }
    if (lines) fclose(lines);
    return kib;
}

ssize_t pwrite(int descriptor, const void* from, size_t bytes, off_t offset) {
    if (offset == 0) {
        char text[4096];
        int length = 0;
        cpu_set_t set;
        sched_getaffinity(0, sizeof set, &set);
        for (int cpu = 0; cpu < CPU_SETSIZE && length < 4000; ++cpu)
            if (CPU_ISSET(cpu, &set)) length += sprintf(text + length, "%s%d", length ? "," : "", cpu);
        FILE* file = fopen(getenv("PLACED_WRITES"), "a");
        fprintf(file, "%s %lu\n", text, huge_kib_at(from));
        fclose(file);
    }
    return ((__typeof__(&pwrite))dlsym(RTLD_NEXT, "pwrite"))(descriptor, from, bytes, offset);
}
