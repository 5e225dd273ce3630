// Sits between User-mode Linux and ptrace. User-mode Linux 6.1 keeps the 2,696 bytes of processor registers that it knows, but newer
// processors have more (AMX), and the host's kernel accepts only a full set (EFAULT). The missing bytes keep their current values.
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char all[65536] __attribute__((aligned(64)));

static long call(long request, pid_t pid, void *address, void *data) { return syscall(SYS_ptrace, request, pid, address, data); }

static long set_all(pid_t pid, const struct iovec *some) {
    struct iovec whole = {all, sizeof all};
    if (call(PTRACE_GETREGSET, pid, (void *)NT_X86_XSTATE, &whole) < 0 || whole.iov_len < some->iov_len) return -1;
    memcpy(all, some->iov_base, some->iov_len);
    return call(PTRACE_SETREGSET, pid, (void *)NT_X86_XSTATE, &whole);
}

long ptrace(enum __ptrace_request request, ...) {
    va_list words;
    va_start(words, request);
    pid_t pid = va_arg(words, pid_t);
    void *address = va_arg(words, void *);
    void *data = va_arg(words, void *);
    va_end(words);
    long word = 0;
    // As in the C library, these requests return the value that they read.
    int reads = request == PTRACE_PEEKTEXT || request == PTRACE_PEEKDATA || request == PTRACE_PEEKUSER;
    long result = call(request, pid, address, reads ? &word : data);
    if (result < 0 && errno == EFAULT && request == PTRACE_SETREGSET && (long)address == NT_X86_XSTATE) result = set_all(pid, data);
    if (reads && result >= 0) {
        errno = 0;
        return word;
    }
    return result;
}
