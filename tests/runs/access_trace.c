// Preloaded into an engine: notes every read and write at an offset, in the order in which each thread did them. The
// engine makes its system calls in place, so a filter of the kernel hands them over (seccomp(2), SECCOMP_RET_TRAP).
// A line of $ACCESS_TRACE/PROCESS.THREAD: operation, path, offset, bytes, FNV-1a of the content (Fowler, Noll, Vo
// 1991).
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { OURS = 0x7ace7ace };  // the sixth argument of calls that the filter lets through

static _Thread_local int trace = -1;

static void note(char operation, int descriptor, const unsigned char* bytes, long size, long offset) {
    char link[64], path[2048], line[2200];
    // Each thread may have a table of descriptors of its own.
    snprintf(link, sizeof link, "/proc/thread-self/fd/%d", descriptor);
    const ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return;
    path[length] = 0;
    uint64_t hash = UINT64_C(14695981039346656037);
    for (long i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
    if (trace < 0) {
        snprintf(line, sizeof line, "%s/%d.%ld", getenv("ACCESS_TRACE"), getpid(), syscall(SYS_gettid));
        trace = open(line, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    }
    const int end = snprintf(line, sizeof line, "%c %s %ld %ld %" PRIx64 "\n", operation, path, offset, size, hash);
    if (write(trace, line, (size_t)end) != end) abort();
}

static long let_through(long number, long a, long b, long c, long d) {
    long result = number;
    register long fourth asm("r10") = d;
    register long fifth asm("r8") = 0;
    register long sixth asm("r9") = OURS;
    asm volatile("syscall"
                 : "+a"(result)
                 : "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                 : "rcx", "r11", "memory");
    return result;
}

static void take_over(int signal, siginfo_t* info, void* context) {
    (void)signal;
    const int before = errno;
    greg_t* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
    const long number = info->si_syscall, offset = registers[REG_R10];
    const int descriptor = (int)registers[REG_RDI];
    const long done = let_through(number, descriptor, registers[REG_RSI], registers[REG_RDX], offset);
    registers[REG_RAX] = done;
    if (done > 0)
        note(number == SYS_pwrite64 ? 'w' : 'r', descriptor, (const unsigned char*)registers[REG_RSI], done, offset);
    errno = before;
}

__attribute__((constructor)) static void begin(void) {
    // A program that is started under the filter would be without the handler at first.
    if (strncmp(program_invocation_short_name, "strakes-engine", 14) != 0) return;
    struct sigaction action = {.sa_sigaction = take_over, .sa_flags = SA_SIGINFO | SA_NODEFER};
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pread64, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pwrite64, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[5])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OURS, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = sizeof steps / sizeof *steps, .filter = steps};
    if (sigaction(SIGSYS, &action, NULL) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
        perror("access_trace");
        abort();
    }
}
