//! Just enough of the x86-64 instruction format (Intel SDM volume 2) to recognise fences, write-backs and non-temporal
//! stores.

/// What an instruction does to durability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing.
    None,
    /// SFENCE or MFENCE.
    Fence,
    /// CLWB.
    Clwb,
    /// CLFLUSHOPT or CLFLUSH.
    OtherFlush,
    /// A non-temporal store of so many bytes.
    Stream(u64),
}

/// The effect of the instruction that `code` begins with.
pub(super) fn effect(code: &[u8; 16]) -> Effect {
    match code[0] {
        // Two-byte VEX: the second byte ends with L and pp; the map is 0F.
        0xc5 if code[1] & 3 == 1 && code[2] == 0xe7 => Effect::Stream(16 << (code[1] >> 2 & 1)),
        // Three-byte VEX: map in the second byte, L and pp at the end of the third.
        0xc4 if code[1] & 0x1f == 1 && code[2] & 3 == 1 && code[3] == 0xe7 => {
            Effect::Stream(16 << (code[2] >> 2 & 1))
        }
        // EVEX: map in the second byte, pp in the third, L'L in the fourth.
        0x62 if code[1] & 7 == 1 && code[2] & 3 == 1 && code[4] == 0xe7 => {
            Effect::Stream(16 << (code[3] >> 5 & 3))
        }
        _ => legacy(code),
    }
}

fn legacy(code: &[u8; 16]) -> Effect {
    let mut at = 0;
    let mut operand_size = false;
    while matches!(
        code[at],
        0x66 | 0xf2 | 0xf3 | 0x2e | 0x3e | 0x26 | 0x36 | 0x64 | 0x65
    ) {
        operand_size |= code[at] == 0x66;
        at += 1;
        if at > 8 {
            return Effect::None;
        }
    }
    let rex = if code[at] & 0xf0 == 0x40 { code[at] } else { 0 };
    if rex != 0 {
        at += 1;
    }
    let (opcode, modrm) = ([code[at], code[at + 1]], code[at + 2]);
    let (register, in_memory) = (modrm >> 3 & 7, modrm >> 6 != 3);
    match (opcode, in_memory, register) {
        ([0x0f, 0xae], false, 6 | 7) if !operand_size => Effect::Fence,
        ([0x0f, 0xae], true, 6) if operand_size => Effect::Clwb,
        ([0x0f, 0xae], true, 7) => Effect::OtherFlush,
        ([0x0f, 0xc3], true, _) => Effect::Stream(if rex & 8 != 0 { 8 } else { 4 }),
        ([0x0f, 0xe7], true, _) if operand_size => Effect::Stream(16),
        ([0x0f, 0xe7], true, _) => Effect::Stream(8),
        _ => Effect::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_recognised() {
        let cases: &[(&[u8], Effect, &str)] = &[
            (&[0x0f, 0xae, 0xf8], Effect::Fence, "sfence"),
            (&[0x0f, 0xae, 0xf0], Effect::Fence, "mfence"),
            (&[0x0f, 0xae, 0xe8], Effect::None, "lfence"),
            (&[0x66, 0x0f, 0xae, 0x37], Effect::Clwb, "clwb [rdi]"),
            (
                &[0x66, 0x41, 0x0f, 0xae, 0x34, 0x24],
                Effect::Clwb,
                "clwb [r12]",
            ),
            (
                &[0x66, 0x0f, 0xae, 0x3f],
                Effect::OtherFlush,
                "clflushopt [rdi]",
            ),
            (&[0x0f, 0xae, 0x3f], Effect::OtherFlush, "clflush [rdi]"),
            (&[0x0f, 0xae, 0x37], Effect::None, "xsaveopt [rdi]"),
            (&[0x0f, 0xc3, 0x07], Effect::Stream(4), "movnti [rdi], eax"),
            (
                &[0x48, 0x0f, 0xc3, 0x07],
                Effect::Stream(8),
                "movnti [rdi], rax",
            ),
            (
                &[0x66, 0x0f, 0xe7, 0x07],
                Effect::Stream(16),
                "movntdq [rdi], xmm0",
            ),
            (
                &[0xc5, 0xf9, 0xe7, 0x07],
                Effect::Stream(16),
                "vmovntdq [rdi], xmm0",
            ),
            (
                &[0xc5, 0xfd, 0xe7, 0x07],
                Effect::Stream(32),
                "vmovntdq [rdi], ymm0",
            ),
            (
                &[0xc4, 0xc1, 0x7d, 0xe7, 0x00],
                Effect::Stream(32),
                "vmovntdq [r8], ymm0",
            ),
            (
                &[0x62, 0xf1, 0x7d, 0x48, 0xe7, 0x07],
                Effect::Stream(64),
                "vmovntdq [rdi], zmm0",
            ),
            (&[0x48, 0x89, 0x07], Effect::None, "mov [rdi], rax"),
            (&[0xc3], Effect::None, "ret"),
        ];
        for (bytes, expected, name) in cases {
            let mut code = [0x90; 16];
            code[..bytes.len()].copy_from_slice(bytes);
            assert_eq!(effect(&code), *expected, "{name}");
        }
    }
}
