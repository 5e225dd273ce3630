// Preloaded into an engine as what sits between programs and the C library: counts the calls ($PRELOADED_COUNTS, a file
// that gets a line of their number at the end, the last one how often a descriptor was handed out that another file had), and with $PRELOADED_OWN=1 hands out descriptors of its own, which only its
// own calls understand. $PRELOADED_FAIL=drop: this process may not drop caches. $PRELOADED_FAIL=isend: its messages of
// phases are refused by MPI. Both for the rank $PRELOADED_RANK alone. Also counted: naps of a thread that has messages of
// a phase under way.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { OWN = 1 << 20 };

static atomic_long reads, writes, opens, others, naps, clashes;
static atomic_int taken[4096];  // descriptors that were handed out
static _Thread_local int gathers;

static int hands_out(void) { return getenv("PRELOADED_OWN") != NULL; }
static int real(int descriptor) { return descriptor >= OWN ? descriptor - OWN : descriptor; }
static int own(int descriptor) { return descriptor >= 0 && hands_out() ? descriptor + OWN : descriptor; }
static int fails(const char* what) {
    const char *chosen = getenv("PRELOADED_FAIL"), *rank = getenv("PRELOADED_RANK"), *mine = getenv("PMI_RANK");
    return chosen && rank && mine && !strcmp(chosen, what) && !strcmp(rank, mine);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((destructor)) static void say(void) {
    const char* path = getenv("PRELOADED_COUNTS");
    if (!path || !(reads + writes + opens + others)) return;
    FILE* file = fopen(path, "a");
    if (!file) return;
    fprintf(file, "%ld %ld %ld %ld %ld %ld\n", reads, writes, opens, others, naps, clashes);
    fclose(file);
}

int openat(int directory, const char* path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
    va_end(more);
    ++opens;
    const int opened = NEXT(openat)(real(directory), path, flags, mode);
    if (opened >= 0 && opened < 4096 && atomic_exchange(&taken[opened], 1)) ++clashes;
    return own(opened);
}
static int give_back(int descriptor) {
    if (real(descriptor) >= 0 && real(descriptor) < 4096) taken[real(descriptor)] = 0;
    return real(descriptor);
}
int close(int descriptor) { return NEXT(close)(give_back(descriptor)); }
ssize_t pread(int descriptor, void* to, size_t bytes, off_t offset) {
    ++reads;
    return NEXT(pread)(real(descriptor), to, bytes, offset);
}
ssize_t pwrite(int descriptor, const void* from, size_t bytes, off_t offset) {
    ++writes;
    return NEXT(pwrite)(real(descriptor), from, bytes, offset);
}
int fsync(int descriptor) { return ++others, NEXT(fsync)(real(descriptor)); }
int fdatasync(int descriptor) { return NEXT(fdatasync)(real(descriptor)); }
int fcntl(int descriptor, int command, ...) {
    va_list more;
    va_start(more, command);
    void* argument = va_arg(more, void*);
    va_end(more);
    return NEXT(fcntl)(real(descriptor), command, argument);
}
int fstat(int descriptor, struct stat* status) { return NEXT(fstat)(real(descriptor), status); }
int fstatat(int directory, const char* path, struct stat* status, int flags) {
    return ++others, NEXT(fstatat)(real(directory), path, status, flags);
}
int mkdirat(int directory, const char* path, mode_t mode) { return ++others, NEXT(mkdirat)(real(directory), path, mode); }
int unlinkat(int directory, const char* path, int flags) { return ++others, NEXT(unlinkat)(real(directory), path, flags); }
int renameat(int from, const char* old, int to, const char* new) {
    return ++others, NEXT(renameat)(real(from), old, real(to), new);
}
int fallocate(int descriptor, int mode, off_t offset, off_t bytes) {
    return NEXT(fallocate)(real(descriptor), mode, offset, bytes);
}
int posix_fadvise(int descriptor, off_t offset, off_t bytes, int advice) {
    return NEXT(posix_fadvise)(real(descriptor), offset, bytes, advice);
}
int syncfs(int descriptor) { return NEXT(syncfs)(real(descriptor)); }
int dup(int descriptor) { return own(NEXT(dup)(real(descriptor))); }
DIR* fdopendir(int descriptor) { return NEXT(fdopendir)(give_back(descriptor)); }

int access(const char* path, int mode) {
    if (fails("drop") && !strcmp(path, "/proc/sys/vm/drop_caches")) return errno = EACCES, -1;
    return NEXT(access)(path, mode);
}

int nanosleep(const struct timespec* nap, struct timespec* left) {
    if (gathers) ++naps;
    return NEXT(nanosleep)(nap, left);
}

// As the standard ABI has it: communicators, types and requests are pointers, and 2 is MPI_ERR_COUNT.
enum { PHASES = 2 };

int MPI_Isend(const void* bytes, int count, void* type, int to, int tag, void* all, void** request) {
    gathers = tag == PHASES;
    if (fails("isend") && tag == PHASES) return 2;
    return NEXT(MPI_Isend)(bytes, count, type, to, tag, all, request);
}
int MPI_Irecv(void* room, int count, void* type, int from, int tag, void* all, void** request) {
    gathers = tag == PHASES;
    return NEXT(MPI_Irecv)(room, count, type, from, tag, all, request);
}
int MPI_Improbe(int from, int tag, void* all, int* there, void** message, void* status) {
    gathers = tag == PHASES;
    return NEXT(MPI_Improbe)(from, tag, all, there, message, status);
}
