// The floor: a minimal program that makes the same system calls as the engine. It has one process per rank, a barrier
// in shared memory, names relative to a directory descriptor, and loops with nothing but the calls: it reads the clock
// twice per phase. Prints one JSON object: operations per second of each phase, from the first start to the last end.
//
// System calls are inline. With -DTHROUGH_LIBRARY they go through the C library, as in most programs. On kernels with
// mitigations against speculation, returning from a library function after a system call costs 0.1-0.2 us.
//
//   floor files DIR RANKS ITEMS                     empty files, a directory for every rank
//   floor directories DIR RANKS ITEMS
//   floor small DIR RANKS ITEMS BYTES               files of BYTES bytes: create and write, remove
//   floor pool DIR RANKS ITEMS SUBDIRECTORIES LEAST MOST UNIT
//                                                   pools of files of LEAST to MOST bytes, as in Postmark: create
//                                                   ITEMS, do ITEMS transactions, remove all; UNIT bytes a call
//   floor data DIR RANKS TRANSFER BYTES DIRECT MS   a file of BYTES for every rank: write it once, then rewrite it and
//                                                   read it, each repeatedly for MS milliseconds; DIRECT 0 or 1
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_RANKS = 256, MAX_PHASES = 8 };

struct shared {
    atomic_int waiting;
    atomic_int round;
    uint64_t start[MAX_PHASES][MAX_RANKS];
    uint64_t end[MAX_PHASES][MAX_RANKS];
    uint64_t operations[MAX_PHASES][MAX_RANKS];
};

struct work {
    struct shared* shared;
    int directory;  // descriptor of the directory that all ranks work in
    int rank, ranks;
    uint64_t items;
    size_t bytes;  // size of each small file or data file
    size_t transfer;
    char* buffer;
    int direct_flag;
    uint64_t repeat_ns;
    int subdirectories;  // number of subdirectories of a pool
    uint64_t least, most;
};

static void die(const char* what) {
    fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
    exit(1);
}

// Makes a system call and returns its result, or a negative value, with errno set, if it failed.
static inline __attribute__((always_inline)) long call(long which, long a, long b, long c, long d, long e) {
#if defined(__x86_64__) && !defined(THROUGH_LIBRARY)
    long result = which;
    register long fourth __asm__("r10") = d;
    register long fifth __asm__("r8") = e;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth)
                     : "rcx", "r11", "memory");
#elif defined(__aarch64__) && !defined(THROUGH_LIBRARY)
    register long result __asm__("x0") = a;
    register long second __asm__("x1") = b;
    register long third __asm__("x2") = c;
    register long fourth __asm__("x3") = d;
    register long fifth __asm__("x4") = e;
    register long number __asm__("x8") = which;
    __asm__ volatile("svc #0"
                     : "+r"(result)
                     : "r"(second), "r"(third), "r"(fourth), "r"(fifth), "r"(number)
                     : "memory");
#else
    return syscall(which, a, b, c, d, e);
#endif
#if !defined(THROUGH_LIBRARY)
    if (result < 0) errno = (int)-result;
    return result;
#endif
}

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static void barrier(const struct work* w) {
    struct shared* s = w->shared;
    const int round = atomic_load(&s->round);
    if (atomic_fetch_add(&s->waiting, 1) + 1 == w->ranks) {
        atomic_store(&s->waiting, 0);
        atomic_fetch_add(&s->round, 1);
    } else {
        while (atomic_load(&s->round) == round) sched_yield();
    }
}

// Names as in the engine, "f0.00123", because the speed of some file systems depends on names. The number in a name is
// incremented in place, which is the cheapest way to get a new name.
struct name {
    char text[24];
    size_t length;
};
static struct name first_name(const struct work* w, char letter) {
    struct name n = {{0}, 0};
    const int digits = snprintf(NULL, 0, "%" PRIu64, w->items);
    n.length = (size_t)snprintf(n.text, sizeof n.text, "%c%d.%0*d", letter, w->rank, digits, 0);
    return n;
}
static inline void next_name(struct name* n) {
    char* digit = n->text + n->length - 1;
    while (*digit == '9') *digit-- = '0';
    ++*digit;
}

// One operation on one name, which returns 0 on success. Callers of each_name pass a constant, so that it is inlined.
typedef int (*operation)(const struct work* w, int directory, const struct name* n);

static inline __attribute__((always_inline)) void each_name(const struct work* w, int phase, int directory, char letter,
                                                            operation operate, const char* what) {
    struct name n = first_name(w, letter);
    barrier(w);
    w->shared->start[phase][w->rank] = now();
    for (uint64_t i = 0; i < w->items; ++i, next_name(&n)) {
        if (operate(w, directory, &n) != 0) die(what);
    }
    w->shared->end[phase][w->rank] = now();
    w->shared->operations[phase][w->rank] = w->items;
    barrier(w);
}

static inline int create_file(const struct work* w, int directory, const struct name* n) {
    (void)w;
    const long fd = call(SYS_openat, directory, (long)n->text, O_CREAT | O_EXCL | O_WRONLY, 0600, 0);
    return fd < 0 ? -1 : (int)call(SYS_close, fd, 0, 0, 0, 0);
}
static inline int create_small_file(const struct work* w, int directory, const struct name* n) {
    const long fd = call(SYS_openat, directory, (long)n->text, O_CREAT | O_EXCL | O_WRONLY, 0600, 0);
    if (fd < 0 || call(SYS_pwrite64, fd, (long)w->buffer, (long)w->bytes, 0, 0) != (long)w->bytes) return -1;
    return (int)call(SYS_close, fd, 0, 0, 0, 0);
}
static inline int open_close(const struct work* w, int directory, const struct name* n) {
    (void)w;
    const long fd = call(SYS_openat, directory, (long)n->text, O_RDONLY | O_NOFOLLOW, 0, 0);
    return fd < 0 ? -1 : (int)call(SYS_close, fd, 0, 0, 0, 0);
}
static inline int get_status(const struct work* w, int directory, const struct name* n) {
    (void)w;
    struct stat facts;
    return (int)call(SYS_newfstatat, directory, (long)n->text, (long)&facts, AT_SYMLINK_NOFOLLOW, 0);
}
static inline int rename_it(const struct work* w, int directory, const struct name* n) {
    (void)w;
    struct name other = *n;
    ++other.text[0];  // f to g, d to e
    return (int)call(SYS_renameat2, directory, (long)n->text, directory, (long)other.text, 0);
}
static inline int remove_file(const struct work* w, int directory, const struct name* n) {
    (void)w;
    return (int)call(SYS_unlinkat, directory, (long)n->text, 0, 0, 0);
}
static inline int create_directory(const struct work* w, int directory, const struct name* n) {
    (void)w;
    return (int)call(SYS_mkdirat, directory, (long)n->text, 0700, 0, 0);
}
static inline int remove_directory(const struct work* w, int directory, const struct name* n) {
    (void)w;
    return (int)call(SYS_unlinkat, directory, (long)n->text, AT_REMOVEDIR, 0, 0);
}

static int open_own_directory(const struct work* w) {
    char name[16];
    snprintf(name, sizeof name, "r%d", w->rank);
    if (mkdirat(w->directory, name, 0700) != 0) die("mkdirat");
    const int fd = openat(w->directory, name, O_RDONLY | O_DIRECTORY);
    if (fd < 0) die("openat of a directory");
    return fd;
}

static void remove_own_directory(const struct work* w, int fd) {
    char name[16];
    snprintf(name, sizeof name, "r%d", w->rank);
    close(fd);
    if (unlinkat(w->directory, name, AT_REMOVEDIR) != 0) die("removal of the directory");
}

static const char* const kFilePhases = "file-create file-stat file-open-close file-rename file-remove";
static void do_files(const struct work* w) {
    const int d = open_own_directory(w);
    each_name(w, 0, d, 'f', create_file, "create");
    each_name(w, 1, d, 'f', get_status, "stat");
    each_name(w, 2, d, 'f', open_close, "open-close");
    each_name(w, 3, d, 'f', rename_it, "rename");
    each_name(w, 4, d, 'g', remove_file, "unlink");
    remove_own_directory(w, d);
}

static const char* const kDirectoryPhases = "dir-create dir-stat dir-rename dir-remove";
static void do_directories(const struct work* w) {
    const int d = open_own_directory(w);
    each_name(w, 0, d, 'd', create_directory, "mkdir");
    each_name(w, 1, d, 'd', get_status, "stat");
    each_name(w, 2, d, 'd', rename_it, "rename");
    each_name(w, 3, d, 'e', remove_directory, "rmdir");
    remove_own_directory(w, d);
}

static const char* const kSmallPhases = "file-create file-remove";
static void do_small(const struct work* w) {
    const int d = open_own_directory(w);
    each_name(w, 0, d, 'f', create_small_file, "create");
    each_name(w, 1, d, 'f', remove_file, "unlink");
    remove_own_directory(w, d);
}

static char* new_buffer(size_t bytes) {
    char* buffer = NULL;
    if (posix_memalign((void**)&buffer, 4096, bytes) != 0) die("memory");
    memset(buffer, 0xA5, bytes);
    return buffer;
}

// A file of a pool. Sizes, directories and choices come from a cheap generator (a shortened SplitMix64).
struct pooled {
    uint64_t item;
    uint64_t size;
    int directory;
};
struct pool {
    int directories[256];
    struct pooled* files;
    uint64_t count, next;
    uint64_t state;
};
static inline uint64_t below(struct pool* p, uint64_t range) {
    uint64_t z = p->state += 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    return (((z ^ (z >> 27)) >> 32) * range) >> 32;
}

// The name has the length of the engine's names.
static inline struct name pool_name(const struct work* w, uint64_t item) {
    struct name n = {"", 17};
    n.text[0] = 'f';
    n.text[1] = (char)('0' + w->rank % 10);
    n.text[2] = '.';
    for (int digit = 16; digit > 2; --digit, item /= 10) n.text[digit] = (char)('0' + item % 10);
    return n;
}

static inline void move_pooled(const struct work* w, const struct pool* p, const struct pooled* f, int flags,
                               uint64_t from, uint64_t to) {
    const struct name n = pool_name(w, f->item);
    const long fd = call(SYS_openat, p->directories[f->directory], (long)n.text, flags | O_NOFOLLOW, 0600, 0);
    if (fd < 0) die("openat in a pool");
    const long which = (flags & O_WRONLY) ? SYS_pwrite64 : SYS_pread64;
    while (from < to) {
        const uint64_t bytes = to - from < w->transfer ? to - from : w->transfer;
        if (call(which, fd, (long)w->buffer, (long)bytes, (long)from, 0) != (long)bytes) die("a transfer in a pool");
        from += bytes;
    }
    if (call(SYS_close, fd, 0, 0, 0, 0) != 0) die("close in a pool");
}

static inline void create_pooled(const struct work* w, struct pool* p) {
    struct pooled* f = &p->files[p->count++];
    f->item = p->next++;
    f->size = w->least + below(p, w->most - w->least + 1);
    f->directory = (int)below(p, (uint64_t)w->subdirectories);
    move_pooled(w, p, f, O_CREAT | O_EXCL | O_WRONLY, 0, f->size);
}
static inline void remove_pooled(const struct work* w, struct pool* p, uint64_t which) {
    const struct name n = pool_name(w, p->files[which].item);
    if (call(SYS_unlinkat, p->directories[p->files[which].directory], (long)n.text, 0, 0, 0) != 0) die("unlinkat");
    p->files[which] = p->files[--p->count];
}

// A transaction: a read or an append, then a creation or a removal.
static inline void transact(const struct work* w, struct pool* p) {
    struct pooled* f = &p->files[below(p, p->count)];
    if (below(p, 100) < 50) {
        move_pooled(w, p, f, O_RDONLY, 0, f->size);
    } else if (f->size < w->most) {
        const uint64_t to = f->size + 1 + below(p, w->most - f->size);
        move_pooled(w, p, f, O_WRONLY | O_APPEND, f->size, to);
        f->size = to;
    }
    if (p->count == 1 || (p->count < 2 * w->items && below(p, 100) < 50))
        create_pooled(w, p);
    else
        remove_pooled(w, p, below(p, p->count));
}

static void start_phase(const struct work* w, int phase) {
    barrier(w);
    w->shared->start[phase][w->rank] = now();
}
static void end_phase(const struct work* w, int phase) {
    w->shared->end[phase][w->rank] = now();
    w->shared->operations[phase][w->rank] = w->items;
    barrier(w);
}

static const char* const kPoolPhases = "create transactions remove";
static void do_pool(const struct work* w) {
    const int d = open_own_directory(w);
    struct pool p = {.state = (uint64_t)w->rank};
    p.files = calloc(2 * w->items, sizeof *p.files);
    if (p.files == NULL) die("memory");
    char name[16];
    for (int s = 0; s < w->subdirectories; ++s) {
        snprintf(name, sizeof name, "s%d", s);
        if (mkdirat(d, name, 0700) != 0) die("mkdirat");
        p.directories[s] = openat(d, name, O_RDONLY | O_DIRECTORY);
        if (p.directories[s] < 0) die("openat of a directory");
    }
    start_phase(w, 0);
    while (p.count < w->items) create_pooled(w, &p);
    end_phase(w, 0);
    start_phase(w, 1);
    for (uint64_t i = 0; i < w->items; ++i) transact(w, &p);
    end_phase(w, 1);
    start_phase(w, 2);
    while (p.count > 0) remove_pooled(w, &p, p.count - 1);
    end_phase(w, 2);
    for (int s = 0; s < w->subdirectories; ++s) {
        snprintf(name, sizeof name, "s%d", s);
        if (close(p.directories[s]) != 0 || unlinkat(d, name, AT_REMOVEDIR) != 0) die("removal of a directory");
    }
    free(p.files);
    remove_own_directory(w, d);
}

// The files of all ranks are in one directory, as in the engine's layout file-per-process. XFS therefore places them in
// the same allocation group.
static void name_of_data(const struct work* w, char* name, size_t size) { snprintf(name, size, "data.%d", w->rank); }

static int open_data(const struct work* w, int flags) {
    char name[32];
    name_of_data(w, name, sizeof name);
    const int fd = openat(w->directory, name, flags | O_NOFOLLOW, 0600);
    if (fd < 0) die("openat of the data file");
    return fd;
}

// Transfers the file once, or repeatedly until the time is up, which is checked every 32 transfers.
static inline __attribute__((always_inline)) void each_transfer(const struct work* w, int phase, int flags, int reading,
                                                                int repeat) {
    const int fd = open_data(w, flags | w->direct_flag);
    uint64_t done = 0;
    barrier(w);
    const uint64_t start = now();
    do {
        for (size_t at = 0; at < w->bytes; at += w->transfer) {
            const long moved =
                call(reading ? SYS_pread64 : SYS_pwrite64, fd, (long)w->buffer, (long)w->transfer, (long)at, 0);
            if (moved != (long)w->transfer) die(reading ? "pread" : "pwrite");
            if (++done % 32 == 0 && repeat && now() - start >= w->repeat_ns) break;
        }
    } while (repeat && now() - start < w->repeat_ns);
    w->shared->end[phase][w->rank] = now();
    w->shared->start[phase][w->rank] = start;
    w->shared->operations[phase][w->rank] = done;
    barrier(w);
    close(fd);
}

static const char* const kDataPhases = "write rewrite read";
static void do_data(const struct work* w) {
    char name[32];
    name_of_data(w, name, sizeof name);
    each_transfer(w, 0, O_CREAT | O_EXCL | O_WRONLY, 0, 0);
    each_transfer(w, 1, O_WRONLY, 0, 1);
    each_transfer(w, 2, O_RDONLY, 1, 1);
    if (unlinkat(w->directory, name, 0) != 0) die("unlinkat");
}

// Runs the job in one process per rank. The first failure ends all ranks.
static void run_ranks(struct work* w, void (*job)(const struct work*)) {
    for (int rank = 0; rank < w->ranks; ++rank) {
        w->rank = rank;
        const pid_t child = fork();
        if (child < 0) die("fork");
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (w->bytes != 0) w->buffer = new_buffer(w->transfer != 0 ? w->transfer : w->bytes);
            job(w);
            exit(0);
        }
    }
    for (int left = w->ranks; left > 0; --left) {
        int status = 0;
        if (wait(&status) < 0) die("wait");
        if (status != 0) exit(1);
    }
}

static void print_phases(const struct work* w, const char* names) {
    char list[128];
    snprintf(list, sizeof list, "%s", names);
    int phase = 0;
    printf("{");
    for (char* name = strtok(list, " "); name; name = strtok(NULL, " "), ++phase) {
        uint64_t start = UINT64_MAX, end = 0, operations = 0;
        for (int rank = 0; rank < w->ranks; ++rank) {
            if (w->shared->start[phase][rank] < start) start = w->shared->start[phase][rank];
            operations += w->shared->operations[phase][rank];
            if (w->shared->end[phase][rank] > end) end = w->shared->end[phase][rank];
        }
        printf("%s\"%s\": %.3f", phase ? ", " : "", name, (double)operations / ((double)(end - start) * 1e-9));
    }
    printf("}\n");
}

static uint64_t number(const char* text) { return strtoull(text, NULL, 10); }

int main(int argc, char** argv) {
    if (argc < 5) {
        fprintf(stderr, "usage: floor files|directories|small|pool|data DIR RANKS ...\n");
        return 2;
    }
    struct work w = {.ranks = (int)number(argv[3]), .items = number(argv[4])};
    if (w.ranks < 1 || w.ranks > MAX_RANKS) return 2;
    w.shared = mmap(NULL, sizeof *w.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    w.directory = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (w.shared == MAP_FAILED || w.directory < 0) die(argv[2]);

    if (strcmp(argv[1], "files") == 0) {
        run_ranks(&w, do_files);
        print_phases(&w, kFilePhases);
    } else if (strcmp(argv[1], "directories") == 0) {
        run_ranks(&w, do_directories);
        print_phases(&w, kDirectoryPhases);
    } else if (strcmp(argv[1], "small") == 0 && argc == 6) {
        w.bytes = number(argv[5]);
        run_ranks(&w, do_small);
        print_phases(&w, kSmallPhases);
    } else if (strcmp(argv[1], "pool") == 0 && argc == 9) {
        w.subdirectories = (int)number(argv[5]);
        w.least = number(argv[6]);
        w.most = number(argv[7]);
        w.bytes = w.transfer = number(argv[8]);
        if (w.subdirectories < 1 || w.subdirectories > 256 || w.least > w.most || w.transfer == 0) return 2;
        run_ranks(&w, do_pool);
        print_phases(&w, kPoolPhases);
    } else if (strcmp(argv[1], "data") == 0 && argc == 8) {
        w.transfer = number(argv[4]);
        w.bytes = number(argv[5]);
        w.direct_flag = number(argv[6]) ? O_DIRECT : 0;
        w.repeat_ns = number(argv[7]) * 1000000U;
        if (w.transfer == 0 || w.bytes % w.transfer != 0) return 2;
        run_ranks(&w, do_data);
        print_phases(&w, kDataPhases);
    } else {
        return 2;
    }
    return 0;
}
