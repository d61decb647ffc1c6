/* The mark of modules whose sections are to be durable. */
#ifdef __cplusplus
extern "C" {
#endif
extern const char __durum_ido_code_was_not_compiled_by_durumcc;
static const char *const __durum_ido_needs_passes __attribute__((__used__, __retain__)) =
    &__durum_ido_code_was_not_compiled_by_durumcc;
#ifdef __cplusplus
}
#endif
