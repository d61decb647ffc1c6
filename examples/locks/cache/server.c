#define _GNU_SOURCE
#include "server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connection.h"

enum { EVENTS_MAX = 64, BACKLOG = 1024, PAUSE_MS = 100 };

struct worker {
    pthread_t thread;
    int epoll;
    int inlet, outlet; /* of a pipe: the listener writes sockets; its end is the worker's end */
    struct connection *connections;
};

static struct worker workers[SERVER_THREADS_MAX];

static void leave(struct worker *worker, struct connection *connection) {
    if (connection->next)
        connection->next->previous = connection->previous;
    if (connection->previous)
        connection->previous->next = connection->next;
    else
        worker->connections = connection->next;
    connection_end(connection);
}

static void serve(struct worker *worker, struct connection *connection) {
    enum wish wish = connection_go_on(connection);
    bool wants_output = wish == WISH_OUTPUT;
    if (wish != WISH_END && wants_output != connection->wants_output) {
        struct epoll_event event = {.events = wants_output ? EPOLLOUT : EPOLLIN,
                                    .data.ptr = connection};
        connection->wants_output = wants_output;
        if (epoll_ctl(worker->epoll, EPOLL_CTL_MOD, connection->socket, &event) != 0)
            wish = WISH_END;
    }
    if (wish == WISH_END)
        leave(worker, connection);
}

/* False: the listener has ended. */
static bool welcome(struct worker *worker) {
    int socket;
    ssize_t size = read(worker->outlet, &socket, sizeof socket);
    if (size < 0)
        return errno == EAGAIN || errno == EINTR;
    if (size == 0)
        return false;
    struct connection *connection = connection_begin(socket);
    if (!connection) {
        close(socket);
        return true;
    }
    connection->next = worker->connections;
    if (connection->next)
        connection->next->previous = connection;
    worker->connections = connection;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    if (epoll_ctl(worker->epoll, EPOLL_CTL_ADD, socket, &event) != 0)
        leave(worker, connection);
    return true;
}

static void *work(void *argument) {
    struct worker *worker = argument;
    struct epoll_event events[EVENTS_MAX];
    bool goes_on = true;
    while (goes_on) {
        int count = epoll_wait(worker->epoll, events, EVENTS_MAX, -1);
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr)
                serve(worker, events[i].data.ptr);
            else
                goes_on = welcome(worker);
        }
    }
    while (worker->connections)
        leave(worker, worker->connections);
    return NULL;
}

static bool start_worker(struct worker *worker) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    worker->outlet = ends[0];
    worker->inlet = ends[1];
    worker->epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    if (worker->epoll >= 0 &&
        epoll_ctl(worker->epoll, EPOLL_CTL_ADD, worker->outlet, &event) == 0) {
        errno = pthread_create(&worker->thread, NULL, work, worker);
        if (errno == 0)
            return true;
    }
    int error = errno;
    close(worker->outlet);
    close(worker->inlet);
    if (worker->epoll >= 0)
        close(worker->epoll);
    errno = error;
    return false;
}

static void stop_workers(unsigned count) {
    for (unsigned i = 0; i < count; i++)
        close(workers[i].inlet);
    for (unsigned i = 0; i < count; i++) {
        pthread_join(workers[i].thread, NULL);
        close(workers[i].outlet);
        close(workers[i].epoll);
    }
}

static int open_listener(uint16_t port) {
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listener < 0) {
        perror("no socket can be made");
        return -1;
    }
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, BACKLOG) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0) {
        fprintf(stderr, "port %u cannot be listened on: %s: choose another one with -p\n", port,
                strerror(errno));
        close(listener);
        return -1;
    }
    printf("port %u\n", ntohs(address.sin_port));
    fflush(stdout);
    return listener;
}

/* False: there are too many connections, and accepting has to wait until some have ended. */
static bool accept_one(int listener, struct worker *worker) {
    int socket = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0)
        return errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM;
    /* Answers are written as a whole: nothing is won by waiting for more. */
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    if (write(worker->inlet, &socket, sizeof socket) != sizeof socket)
        close(socket);
    return true;
}

static void listen_until_signal(int listener, int signals, unsigned count) {
    unsigned next = 0;
    bool is_full = false, has_told = false;
    for (;;) {
        struct pollfd polled[] = {{.fd = signals, .events = POLLIN},
                                  {.fd = is_full ? -1 : listener, .events = POLLIN}};
        if (poll(polled, 2, is_full ? PAUSE_MS : -1) < 0 && errno != EINTR)
            return;
        if (polled[0].revents)
            return;
        is_full = polled[1].revents && !accept_one(listener, &workers[next++ % count]);
        if (is_full && !has_told)
            fprintf(stderr, "too many connections: further ones wait; allow more with ulimit -n\n");
        has_told |= is_full;
    }
}

bool server_run(uint16_t port, unsigned threads) {
    sigset_t ending;
    sigemptyset(&ending);
    sigaddset(&ending, SIGINT);
    sigaddset(&ending, SIGTERM);
    /* Threads inherit this, so that no signal comes anywhere but to the listener, as something to
     * read. */
    pthread_sigmask(SIG_BLOCK, &ending, NULL);
    int signals = signalfd(-1, &ending, SFD_CLOEXEC);
    if (signals < 0) {
        perror("signals cannot be waited for");
        return false;
    }
    unsigned started = 0;
    while (started < threads && start_worker(&workers[started]))
        started++;
    if (started < threads)
        fprintf(stderr, "thread %u cannot be started: %s: use fewer with -t\n", started + 1,
                strerror(errno));
    int listener = started == threads ? open_listener(port) : -1;
    if (listener >= 0) {
        listen_until_signal(listener, signals, threads);
        close(listener);
    }
    stop_workers(started);
    close(signals);
    return listener >= 0;
}
