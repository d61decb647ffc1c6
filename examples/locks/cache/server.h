/* Threads that serve clients on a port of the loopback interface. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum { SERVER_THREADS_MAX = 64 };

/* Prints the port, serves until SIGINT or SIGTERM, and frees all. Port 0 is any. False: it has told
 * why not. */
bool server_run(uint16_t port, unsigned threads);
