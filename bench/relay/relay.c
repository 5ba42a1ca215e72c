// A relay that parses nothing: the least that a proxy in user space costs. It knows bytes and sockets, and no HTTP.
//
// relay PORT REST /run/a.sock /run/b.sock ...
//
// One thread, one epoll. Each client connection has a connection of its own to a member, in turn, and both are kept. A request
// is one recv from the client and one send to the member, a response is one recv from the member and one send to the client.
// After each turn the relay rests for REST microseconds. A proxy that is busy finds many events in each turn; the
// relay is faster than the load, so without a rest it would wake up for each event, and cost more for a request, not less.
//
// It has no queue, no limits and no timeouts. A send that the kernel does not take whole ends the program, so that no figure of
// an incomplete response is reported.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define EVENTS 256
#define LARGEST (64 * 1024)

// One direction's receiving end. `other` is the end that its bytes go to.
struct end {
    int fd;
    int closed;
    struct end *other;
    struct end *next; // in the list of pairs to free after this turn
};

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static int listen_on(int port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (fd < 0) fail("socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) < 0) fail("bind");
    if (listen(fd, 4096) < 0) fail("listen");
    return fd;
}

static int member(const char *path) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (fd < 0) fail("socket");
    if (strlen(path) >= sizeof at.sun_path) {
        fprintf(stderr, "relay: the path is too long: %s\n", path);
        exit(2);
    }
    strcpy(at.sun_path, path);
    if (connect(fd, (struct sockaddr *)&at, sizeof at) < 0) fail(path);
    return fd;
}

static struct end *watch(int epoll, int fd) {
    struct end *end = calloc(1, sizeof *end);
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = end};
    if (!end) fail("calloc");
    end->fd = fd;
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0) fail("epoll_ctl");
    return end;
}

static void accept_all(int epoll, int listener, char **members, int count) {
    static int turn;
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC), on = 1;
        if (fd < 0 && (errno == EAGAIN || errno == ECONNABORTED)) return;
        if (fd < 0) fail("accept");
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        struct end *client = watch(epoll, fd), *behind = watch(epoll, member(members[turn++ % count]));
        client->other = behind;
        behind->other = client;
    }
}

// Passes on what one end has received. False: the connection has ended.
static int pass(struct end *from) {
    static char bytes[LARGEST];
    ssize_t got = recv(from->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 1;
    if (got <= 0) return 0;
    ssize_t sent = send(from->other->fd, bytes, got, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent == got) return 1;
    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) return 0;
    fprintf(stderr, "relay: %zd of %zd bytes sent\n", sent, got);
    exit(1);
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: relay PORT REST SOCKET...\n");
        return 2;
    }
    int epoll = epoll_create1(EPOLL_CLOEXEC), listener = listen_on(atoi(argv[1]));
    struct timespec rest = {.tv_nsec = atol(argv[2]) * 1000};
    prctl(PR_SET_TIMERSLACK, 1);
    struct epoll_event listening = {.events = EPOLLIN}, events[EVENTS];
    if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &listening) < 0) fail("epoll");
    for (;;) {
        struct end *ended = NULL;
        int count = epoll_wait(epoll, events, EVENTS, -1);
        if (count < 0 && errno != EINTR) fail("epoll_wait");
        for (int i = 0; i < count; i++) {
            struct end *end = events[i].data.ptr;
            if (!end) {
                accept_all(epoll, listener, argv + 3, argc - 3);
            } else if (!end->closed && !pass(end)) {
                // The other end may have an event in this turn, so both are freed after it.
                end->closed = end->other->closed = 1;
                end->next = ended;
                ended = end;
            }
        }
        while (ended) {
            struct end *next = ended->next;
            close(ended->fd);
            close(ended->other->fd);
            free(ended->other);
            free(ended);
            ended = next;
        }
        if (rest.tv_nsec > 0) nanosleep(&rest, NULL);
    }
}
