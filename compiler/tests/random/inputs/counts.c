// Whether the runtime has counted the pointers that a program can reach. The program tells what it
// finds (randomc/counts.py); this file is plain C, and may look at the headers of allocations.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { OBJECTS_MAX = 1 << 14, POINTERS_MAX = 1 << 15, ALLOCATIONS_MAX = 1 << 13 };
// docs/reference/nvl-runtime.md, "In the heap": the number of strong pointers, so far before the data.
enum { STRONG = 16 };

static struct {
    const void *address;
    int type;
} objects[OBJECTS_MAX];
static const char *pointers[POINTERS_MAX];
static struct {
    const char *start;
    size_t size;
} allocations[ALLOCATIONS_MAX];
static unsigned object_count, pointer_count, allocation_count;

int counts_object(const void *address, int type);
void counts_pointer(const void *target);
void counts_allocation(const void *start, size_t size);
void counts_check(void);

static void *next_of(void *row, size_t size, unsigned *count, unsigned most) {
    if (*count == most) {
        fprintf(stderr, "counts.c: more than %u\n", most);
        exit(3);
    }
    return (char *)row + size * (*count)++;
}

// Whether the object is new here. One may begin where the one begins that it is a part of.
int counts_object(const void *address, int type) {
    for (unsigned i = 0; i < object_count; i++)
        if (objects[i].address == address && objects[i].type == type)
            return 0;
    next_of(objects, sizeof *objects, &object_count, OBJECTS_MAX);
    objects[object_count - 1].address = address;
    objects[object_count - 1].type = type;
    return 1;
}

// A strong pointer in the heap, which is not null.
void counts_pointer(const void *target) {
    next_of(pointers, sizeof *pointers, &pointer_count, POINTERS_MAX);
    pointers[pointer_count - 1] = target;
}

void counts_allocation(const void *start, size_t size) {
    next_of(allocations, sizeof *allocations, &allocation_count, ALLOCATIONS_MAX);
    allocations[allocation_count - 1].start = start;
    allocations[allocation_count - 1].size = size;
}

// Ends the program if an allocation has less pointers than lead there. It may have more: from what
// was dropped and is not freed yet.
void counts_check(void) {
    for (unsigned i = 0; i < allocation_count; i++) {
        const char *start = allocations[i].start;
        uint64_t found = 0, counted = *(const uint64_t *)(start - STRONG);
        for (unsigned j = 0; j < pointer_count; j++)
            found += pointers[j] >= start && pointers[j] < start + allocations[i].size;
        if (counted < found) {
            fprintf(stderr, "an allocation of %zu bytes has %llu pointers and counts %llu\n",
                    allocations[i].size, (unsigned long long)found, (unsigned long long)counted);
            exit(3);
        }
    }
}
