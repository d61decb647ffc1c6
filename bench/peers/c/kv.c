#include "kv.h"

#include <stdio.h>

static _Thread_local char last_error[256];

const char *peer_kv_error(void) {
    return last_error;
}

int peer_kv_failed(const char *text) {
    snprintf(last_error, sizeof(last_error), "%s", text);
    return -1;
}
