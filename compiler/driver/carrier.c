/* A program carries the code that completes its sections without it, and tells the runtime:
 * CODE_FILE has the code. */
__asm__(".section .rodata.durum_code, \"a\"\n"
        ".balign 64\n"
        "durum_code_begin: .incbin \"" CODE_FILE "\"\n"
        "durum_code_end:\n"
        ".previous");

extern const char durum_code_begin[], durum_code_end[];
void __durum_ido_carry(const void *code, unsigned long size);

__attribute__((constructor)) static void carry(void) {
    __durum_ido_carry(durum_code_begin, durum_code_end - durum_code_begin);
}
