/* What `durumcc -fido` includes in front of each source: code whose sections (what threads do while
 * they hold a lock) are to be durable. No program includes it, and it declares nothing that one
 * could use.
 *
 * docs/reference/ido-ir.md has the mark and the options. Sources in assembler, which the driver
 * compiles beside others, have neither. */
#if !defined(DURUM_IDO_H) && !defined(__ASSEMBLER__)
#define DURUM_IDO_H
#pragma GCC system_header

#ifndef __DURUM_IDO_OPTIONS__
#error "durum_ido.h is for durumcc: compile with `durumcc -fido`"
#endif
#if __SIZEOF_POINTER__ != 8
#error "-fido needs a 64-bit machine: addresses in a store have 8 bytes"
#endif

/* The passes take this reference away. It is never defined: code that they have not seen does not
 * link, instead of running with sections that a crash leaves in their middle. */
#ifdef __cplusplus
extern "C"
#else
extern
#endif
    const char __durum_ido_code_was_not_compiled_by_durumcc;
static const char *const __durum_ido_needs_passes __attribute__((__used__, __retain__)) =
    &__durum_ido_code_was_not_compiled_by_durumcc;
/* isdigit and its like are functions that sections may call, instead of a table of the thread's
 * that the next run has elsewhere. */
#define __NO_CTYPE 1
#ifdef __DURUM_IDO_VARIABLES__
/* Names of variables that last, from a list: a semicolon between them. */
static const char __durum_ido_variables[] __attribute__((__used__, __retain__)) =
    __DURUM_IDO_VARIABLES__;
#endif
/* What the command line asks of the passes; intermediate code carries it along. */
static const int __durum_ido_options __attribute__((__used__, __retain__)) = __DURUM_IDO_OPTIONS__;
#endif
