//! The features of AArch64, as the system tells them.

/// Names of Clang, and what they are to the standard library.
macro_rules! detected {
    ($feature:expr, $($name:literal = $($known:tt)&&+;)*) => {
        match $feature {
            $($name => $(std::arch::is_aarch64_feature_detected!($known))&&+,)*
            _ => false,
        }
    };
}

pub(super) fn has(feature: &str) -> bool {
    detected! { feature,
        "fp-armv8" = "fp";
        "neon" = "neon";
        "aes" = "aes" && "pmull";
        "sha2" = "sha2";
        "sha3" = "sha3";
        "sm4" = "sm4";
        "crc" = "crc";
        "lse" = "lse";
        "rdm" = "rdm";
        "fullfp16" = "fp16";
        "fp16fml" = "fhm";
        "dotprod" = "dotprod";
        "rcpc" = "rcpc";
        "rcpc-immo" = "rcpc2";
        "ccpp" = "dpb";
        "ccdp" = "dpb2";
        "jsconv" = "jsconv";
        "complxnum" = "fcma";
        "flagm" = "flagm";
        // They came together, with version 8.5.
        "altnzcv" = "flagm" && "frintts";
        "fptoint" = "frintts";
        "bf16" = "bf16";
        "i8mm" = "i8mm";
        "f32mm" = "f32mm";
        "f64mm" = "f64mm";
        "sve" = "sve";
        "sve2" = "sve2";
        "sve2-aes" = "sve2-aes";
        "sve2-sha3" = "sve2-sha3";
        "sve2-sm4" = "sve2-sm4";
        "sve2-bitperm" = "sve2-bitperm";
        "pauth" = "paca" && "pacg";
        "sb" = "sb";
        "ssbs" = "ssbs";
        "specrestrict" = "ssbs";
        "dit" = "dit";
        "mte" = "mte";
        "rand" = "rand";
    }
}
