//! The features of x86-64, where CPUID tells of them (Intel SDM, volume 2; AMD APM, volume 3).

use std::arch::x86_64::{__cpuid, __cpuid_count, CpuidResult};

/// What the system has to do for a feature beside the processor: keep its registers when threads change.
#[derive(Clone, Copy)]
enum System {
    Nothing,
    Avx,
    Avx512,
}

/// A register that a leaf of CPUID leaves.
#[derive(Clone, Copy)]
enum Register {
    Eax,
    Ebx,
    Ecx,
    Edx,
}

/// Leaf, its part, the register, what the system has to do, and the features by their bits.
type Row = (u32, u32, Register, System, &'static [(u32, &'static str)]);

#[rustfmt::skip]
const TABLE: &[Row] = &[
    (1, 0, Register::Edx, System::Nothing, &[(8, "cx8"), (15, "cmov"), (23, "mmx"), (24, "fxsr"), (25, "sse"), (26, "sse2")]),
    (1, 0, Register::Ecx, System::Nothing, &[
        (0, "sse3"), (1, "pclmul"), (9, "ssse3"), (13, "cx16"), (19, "sse4.1"), (20, "sse4.2"), (20, "crc32"), (22, "movbe"),
        (23, "popcnt"), (25, "aes"), (27, "xsave"), (30, "rdrnd"),
    ]),
    (1, 0, Register::Ecx, System::Avx, &[(12, "fma"), (28, "avx"), (29, "f16c")]),
    (7, 0, Register::Ebx, System::Nothing, &[
        (0, "fsgsbase"), (2, "sgx"), (3, "bmi"), (8, "bmi2"), (10, "invpcid"), (11, "rtm"), (18, "rdseed"), (19, "adx"),
        (23, "clflushopt"), (24, "clwb"), (29, "sha"),
    ]),
    (7, 0, Register::Ebx, System::Avx, &[(5, "avx2")]),
    (7, 0, Register::Ebx, System::Avx512, &[
        (16, "avx512f"), (16, "evex512"), (17, "avx512dq"), (21, "avx512ifma"), (28, "avx512cd"), (30, "avx512bw"),
        (31, "avx512vl"),
    ]),
    (7, 0, Register::Ecx, System::Nothing, &[
        (4, "pku"), (5, "waitpkg"), (7, "shstk"), (8, "gfni"), (22, "rdpid"), (23, "kl"), (25, "cldemote"), (27, "movdiri"),
        (28, "movdir64b"), (29, "enqcmd"),
    ]),
    (7, 0, Register::Ecx, System::Avx, &[(9, "vaes"), (10, "vpclmulqdq")]),
    (7, 0, Register::Ecx, System::Avx512, &[
        (1, "avx512vbmi"), (6, "avx512vbmi2"), (11, "avx512vnni"), (12, "avx512bitalg"), (14, "avx512vpopcntdq"),
    ]),
    // A program that uses matrices asks the system for them.
    (7, 0, Register::Edx, System::Nothing, &[
        (5, "uintr"), (14, "serialize"), (16, "tsxldtrk"), (18, "pconfig"), (22, "amx-bf16"), (24, "amx-tile"), (25, "amx-int8"),
    ]),
    (7, 0, Register::Edx, System::Avx512, &[(8, "avx512vp2intersect"), (23, "avx512fp16")]),
    (7, 1, Register::Eax, System::Nothing, &[(3, "raoint"), (7, "cmpccxadd"), (21, "amx-fp16"), (22, "hreset")]),
    (7, 1, Register::Eax, System::Avx, &[(0, "sha512"), (1, "sm3"), (2, "sm4"), (4, "avxvnni"), (23, "avxifma")]),
    (7, 1, Register::Eax, System::Avx512, &[(5, "avx512bf16")]),
    (7, 1, Register::Edx, System::Nothing, &[(8, "amx-complex"), (14, "prefetchi"), (15, "usermsr")]),
    (7, 1, Register::Edx, System::Avx, &[(4, "avxvnniint8"), (5, "avxneconvert"), (10, "avxvnniint16")]),
    (0xd, 1, Register::Eax, System::Nothing, &[(0, "xsaveopt"), (1, "xsavec"), (3, "xsaves")]),
    (0x14, 0, Register::Ebx, System::Nothing, &[(4, "ptwrite")]),
    (0x19, 0, Register::Ebx, System::Nothing, &[(2, "widekl")]),
    (0x8000_0001, 0, Register::Ecx, System::Nothing, &[
        (0, "sahf"), (5, "lzcnt"), (6, "sse4a"), (8, "prfchw"), (15, "lwp"), (21, "tbm"), (29, "mwaitx"),
    ]),
    (0x8000_0001, 0, Register::Ecx, System::Avx, &[(11, "xop"), (16, "fma4")]),
    (0x8000_0008, 0, Register::Ebx, System::Nothing, &[(0, "clzero"), (4, "rdpru"), (9, "wbnoinvd")]),
];

pub(super) fn has(feature: &str) -> bool {
    TABLE.iter().any(|(leaf, part, register, system, bits)| {
        let mut bits = bits.iter().filter(|(_, name)| *name == feature);
        bits.any(|(bit, _)| value(*leaf, *part, *register) >> bit & 1 != 0 && system.does())
    })
}

impl System {
    fn does(self) -> bool {
        match self {
            System::Nothing => true,
            // They ask the processor what the system has enabled.
            System::Avx => std::arch::is_x86_feature_detected!("avx"),
            System::Avx512 => std::arch::is_x86_feature_detected!("avx512f"),
        }
    }
}

fn value(leaf: u32, part: u32, register: Register) -> u32 {
    let base = leaf & 0x8000_0000;
    let last = cpuid(base, 0).eax;
    // The first part of a leaf tells how many it has, where it has several. Of those that do not exist nothing is told.
    let exists =
        last & 0x8000_0000 == base && leaf <= last && (leaf != 7 || part <= cpuid(leaf, 0).eax);
    if !exists {
        return 0;
    }
    let CpuidResult { eax, ebx, ecx, edx } = cpuid(leaf, part);
    match register {
        Register::Eax => eax,
        Register::Ebx => ebx,
        Register::Ecx => ecx,
        Register::Edx => edx,
    }
}

#[allow(unused_unsafe)] // CPUID became a safe function after the oldest compiler we support.
fn cpuid(leaf: u32, part: u32) -> CpuidResult {
    match part {
        // SAFETY: every x86-64 processor has CPUID.
        0 => unsafe { __cpuid(leaf) },
        // SAFETY: the same.
        part => unsafe { __cpuid_count(leaf, part) },
    }
}
