/* ask PORT OPERATIONS SETS: asks a cache on this machine, one request at a time, and prints what
 * one takes in nanoseconds. SETS of 100 are sets. Each answer is checked. */
#include "values.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

static int server;

static void expect(const char *request, const char *answer) {
    char buffer[256];
    size_t size = strlen(answer), received = 0;
    if (write(server, request, strlen(request)) != (ssize_t)strlen(request))
        fail("a request was not sent");
    while (received < size) {
        ssize_t count = read(server, buffer + received, sizeof buffer - received);
        if (count <= 0)
            fail("an answer does not come");
        received += (size_t)count;
    }
    if (received != size || memcmp(buffer, answer, size) != 0)
        fail("another answer");
}

static void set(uint64_t key) {
    char text[KEY_SIZE + 1], value[VALUE_SIZE + 1], request[128];
    versions[key]++;
    write_key(key, text);
    write_value(key, value);
    snprintf(request, sizeof request, "set %s 0 0 %d\r\n%s\r\n", text, VALUE_SIZE, value);
    expect(request, "STORED\r\n");
}

static void get(uint64_t key) {
    char text[KEY_SIZE + 1], value[VALUE_SIZE + 1], request[128], answer[128];
    write_key(key, text);
    write_value(key, value);
    snprintf(request, sizeof request, "get %s\r\n", text);
    snprintf(answer, sizeof answer, "VALUE %s 0 %d\r\n%s\r\nEND\r\n", text, VALUE_SIZE, value);
    expect(request, answer);
}

int main(int count, char **arguments) {
    if (count != 4)
        return 2;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)atoi(arguments[1])),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    server = socket(AF_INET, SOCK_STREAM, 0);
    if (server < 0 || connect(server, (struct sockaddr *)&address, sizeof address) != 0)
        fail("there is no server");
    setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    for (uint64_t key = 0; key < KEYS; key++)
        set(key);
    printf("%.1f\n", run(atol(arguments[2]), (unsigned)atoi(arguments[3]), set, get));
    return 0;
}
