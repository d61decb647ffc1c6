/* Sections whose memory is simulated: what programs of the tests are told of it. */
#pragma once
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/* Where all that lasts is. */
#define BASE 0x200000000000ull
#define POOL_SIZE (64 * 1024)

/* A program of the tests has these; its data begins at the root, with zeros. */
struct root;
void init(struct root *root);
void operate(struct root *root, int number);
/* What is there, without any address that another run has not. */
uint64_t digest(const struct root *root);
extern const int operations;
/* How many objects that were taken there are, if all that are taken are to be known. */
uint64_t known_objects(const struct root *root) __attribute__((weak));

/* A program of several threads looks at what is there by itself, and says what is wrong, or NULL. `is_done`: which
 * operations have ended. */
extern const int threads __attribute__((weak));
const char *examine(const struct root *root, const int *is_done) __attribute__((weak));

/* A global variable that lasts. The plain program keeps it where any other one is. */
#define durum_durable __attribute__((annotate("durum_durable")))

/* As in nv.h. */
void durum_durable_begin(void);
void durum_durable_end(void);

/* Up to a line. */
void *nv_malloc(size_t size) __attribute__((malloc));
void nv_free(void *object);
