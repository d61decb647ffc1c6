/* Code that somebody has left in a store. The first byte that comes by the socket says what it
 * tries, and what follows is what that is about. It ends with 0 where it could not do what it must
 * not, and where it could do what it may; else it says what happened. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

static char about[200];
static volatile int sink;

static int fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    return 9;
}

/* What must fail, and not only because it makes no sense. */
#define REFUSED(call)                                                                              \
    do {                                                                                           \
        errno = 0;                                                                                 \
        if ((long)(call) != -1)                                                                    \
            return fail(#call " is possible");                                                     \
        if (errno != EPERM && errno != EACCES && errno != ENOSYS)                                  \
            return fail(#call);                                                                    \
    } while (0)

static int files(void) {
    REFUSED(open("/etc/passwd", O_RDONLY));
    REFUSED(open(about, O_RDWR | O_CREAT, 0600));
    REFUSED(openat(AT_FDCWD, "/proc/self/fd/3", O_RDWR));
    REFUSED(syscall(SYS_openat2, AT_FDCWD, "/", NULL, 0));
    REFUSED(creat(about, 0600));
    REFUSED(unlink(about));
    REFUSED(mkdir(about, 0700));
    REFUSED(symlink("/", about));
    REFUSED(chdir("/"));
    REFUSED(truncate(about, 0));
    REFUSED(ftruncate(0, 1 << 20));
    REFUSED(memfd_create("more", 0));
    REFUSED(syscall(SYS_io_uring_setup, 8, about));
    REFUSED(syscall(SYS_userfaultfd, 0));
    REFUSED(syscall(SYS_bpf, 0, about, sizeof about));
    REFUSED(syscall(SYS_open_by_handle_at, 0, about, 0));
    REFUSED(mount("none", "/", "tmpfs", 0, NULL));
    return 0;
}

static int network(void) {
    REFUSED(socket(AF_INET, SOCK_STREAM, 0));
    REFUSED(socket(AF_UNIX, SOCK_STREAM, 0));
    int pair[2];
    REFUSED(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, about, sizeof address.sun_path - 1);
    REFUSED(connect(3, (struct sockaddr *)&address, sizeof address));
    REFUSED(bind(3, (struct sockaddr *)&address, sizeof address));
    REFUSED(listen(3, 1));
    return 0;
}

static int signals(void) {
    pid_t other = atoi(about);
    REFUSED(kill(other, SIGTERM));
    REFUSED(kill(0, SIGTERM));
    REFUSED(kill(-1, 0));
    REFUSED(syscall(SYS_tgkill, other, other, SIGTERM));
    REFUSED(syscall(SYS_tkill, other, SIGTERM));
    REFUSED(syscall(SYS_rt_sigqueueinfo, other, SIGTERM, about));
    REFUSED(syscall(SYS_pidfd_open, other, 0));
    REFUSED(fcntl(3, F_SETOWN, other));
    REFUSED(fcntl(3, F_SETFL, O_ASYNC));
    REFUSED(syscall(SYS_tgkill, getpid(), getpid(), SIGABRT));
    return 0;
}

static int traces(void) {
    pid_t other = atoi(about);
    char byte;
    struct iovec here = {&byte, 1}, there = {about, 1};
    REFUSED(ptrace(PTRACE_ATTACH, other, NULL, NULL));
    REFUSED(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
    REFUSED(process_vm_readv(other, &here, 1, &there, 1, 0));
    REFUSED(process_vm_writev(other, &here, 1, &there, 1, 0));
    REFUSED(syscall(SYS_kcmp, other, other, 0, 0, 0));
    REFUSED(syscall(SYS_pidfd_getfd, 3, 0, 0));
    return 0;
}

/* What needs a capability, and is a call that code may make otherwise. */
static int capabilities(void) {
    int size = 1 << 24;
    REFUSED(setsockopt(3, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size));
    REFUSED(setsockopt(3, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size));
    REFUSED(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0));
    return 0;
}

static int processes(void) {
    REFUSED(fork());
    REFUSED(syscall(SYS_vfork));
    REFUSED(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
    REFUSED(syscall(SYS_clone, CLONE_VM | SIGCHLD, 0, 0, 0, 0));
    REFUSED(syscall(SYS_clone3, about, 64));
    char *none[] = {NULL};
    REFUSED(execve("/bin/true", none, none));
    REFUSED(execveat(AT_FDCWD, "/bin/true", none, none, 0));
    REFUSED(execveat(3, "", none, none, AT_EMPTY_PATH));
    REFUSED(unshare(CLONE_NEWUSER));
    REFUSED(setuid(0));
    REFUSED(prctl(38 /* no new privileges */, 0, 0, 0, 0));
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    REFUSED(setrlimit(RLIMIT_DATA, &limit));
    REFUSED(setpriority(PRIO_PROCESS, 0, -5));
    return 0;
}

/* The file is one that the code was given, and could execute where nothing kept it from that. */
static int executes_a_file(int file) {
    char *none[] = {NULL};
    if (dup2(file, 4) != 4)
        return fail("dup2");
    REFUSED(execveat(4, "", none, none, AT_EMPTY_PATH));
    return 0;
}

static int code_of_data(void) {
    REFUSED(
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return fail("mmap");
    REFUSED(mprotect(memory, 4096, PROT_READ | PROT_EXEC));
    REFUSED(syscall(SYS_pkey_mprotect, memory, 4096, PROT_EXEC, -1));
    return 0;
}

static int memory(void) {
    /* What is shared is counted by no limit. */
    REFUSED(mmap(NULL, 1 << 30, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    REFUSED(syscall(SYS_shmget, 1, 1 << 20, 01600));
    /* Nor is what is to grow like a stack. */
    REFUSED(mmap(NULL, 1 << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN,
                 -1, 0));
    /* Addresses without memory are no matter: a store reserves many. */
    if (mmap((void *)0x200000000000, 1ul << 40, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED)
        return fail("reserving addresses");
    for (size_t all = 0; all < 1u << 30; all += 1 << 20) {
        char *part =
            mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (part == MAP_FAILED)
            return errno == ENOMEM ? 0 : fail("mmap");
        memset(part, 1, 1 << 20);
    }
    return fail("a gigabyte is possible");
}

static void *thread(void *argument) {
    *(int *)argument = 1;
    return NULL;
}

static void *sleeps(void *argument) {
    usleep(300000);
    return argument;
}

/* So many threads at a time, for a while. */
static int threads(int count) {
    static pthread_t running[100];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 16 << 10);
    for (int i = 0; i < count; i++)
        if ((errno = pthread_create(&running[i], &small, sleeps, NULL)))
            return fail("a thread");
    for (int i = 0; i < count; i++)
        pthread_join(running[i], NULL);
    return 0;
}

/* What a client needs. */
static int may(void) {
    pthread_t running[4];
    int done[4] = {0};
    for (int i = 0; i < 4; i++)
        if ((errno = pthread_create(&running[i], NULL, thread, &done[i])))
            return fail("a thread");
    for (int i = 0; i < 4; i++)
        if (pthread_join(running[i], NULL), !done[i])
            return fail("a thread has not run");
    void *memory = malloc(8 << 20);
    if (!memory)
        return fail("malloc");
    memset(memory, 1, 8 << 20);
    struct flock lock = {.l_type = F_RDLCK};
    if (fcntl(0, F_SETLK, &lock))
        return fail("a lock of a file");
    if (send(3, "answer", 6, 0) != 6)
        return fail("send");
    return 0;
}

/* It has nothing but its socket. */
static int has(char **arguments, char **environment) {
    if (*environment || !arguments[0] || arguments[1])
        return fail("an environment, or arguments");
    for (int file = 5; file < 2000; file++)
        if (fcntl(file, F_GETFD) >= 0)
            return fail("another descriptor");
    if (fcntl(4, F_GETFD) >= 0)
        return fail("the descriptor of the code");
    char byte;
    if (read(0, &byte, 1) != 0)
        return fail("something to read");
    sigset_t blocked;
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    for (int number = 1; number < 32; number++)
        if (sigismember(&blocked, number) == 1)
            return fail("a signal that is blocked");
    return 0;
}

int main(int count, char **arguments, char **environment) {
    (void)count;
    char what[201] = {0};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr header;
    } control;
    struct iovec part = {what, sizeof what - 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control};
    if (recvmsg(3, &message, 0) < 1)
        return fail("recvmsg");
    memcpy(about, what + 1, sizeof about - 1);
    int file = -1;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header)
        memcpy(&file, CMSG_DATA(header), sizeof file);
    switch (what[0]) {
    case 'e':
        return atoi(about);
    case 'w':
        fputs("something is wrong", stderr);
        return 3;
    case 'l':
        for (;;)
            sink++;
    case 's':
        for (;;)
            pause();
    case 'f':
        *(volatile int *)8 = 1;
        return 1;
    case 'a':
        abort();
    case 'o':
        return files();
    case 'n':
        return network();
    case 'k':
        return signals();
    case 't':
        return traces();
    case 'p':
        return processes();
    case 'c':
        return capabilities();
    case 'x':
        return code_of_data();
    case 'X':
        return executes_a_file(file);
    case 'm':
        return memory();
    case 'T':
        return threads(atoi(about));
    case 'g': {
        /* A file that it was given becomes no longer. */
        signal(SIGXFSZ, SIG_IGN);
        if (write(file, "more", 4) > 0)
            return fail("a file becomes longer");
        return 0;
    }
    case 'h':
        return has(arguments, environment);
    case 'y':
        return may();
    }
    return 8;
}
