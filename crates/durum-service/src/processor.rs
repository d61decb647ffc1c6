//! What this machine's processor has, by the names that Clang has for it (`-mavx2`: `avx2`), to compare it with what
//! code was compiled for.

#[cfg(target_arch = "aarch64")]
#[path = "processor/aarch64.rs"]
mod arch;
#[cfg(target_arch = "x86_64")]
#[path = "processor/x86_64.rs"]
mod arch;

/// Whether the processor, and the system on it, has a feature. One that this build does not know it has not: code that
/// was made for that is not run.
pub(crate) fn has(feature: &str) -> bool {
    arch::has(feature)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_that_nobody_knows_are_missing() {
        for feature in ["", "avx2 ", "AVX2", "avx1024", "lse3"] {
            assert!(!has(feature), "{feature}");
        }
    }

    /// The system says the same, by names of its own.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn features_are_those_that_the_system_tells() {
        let told = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let flags = told.lines().find(|line| line.starts_with("flags"));
        let flags: Vec<&str> = flags.unwrap_or_default().split_whitespace().collect();
        let names = [
            ("sse2", "sse2"),
            ("sse3", "pni"),
            ("sse4.2", "sse4_2"),
            ("pclmul", "pclmulqdq"),
            ("cx16", "cx16"),
            ("popcnt", "popcnt"),
            ("avx", "avx"),
            ("f16c", "f16c"),
            ("fma", "fma"),
            ("avx2", "avx2"),
            ("bmi", "bmi1"),
            ("bmi2", "bmi2"),
            ("lzcnt", "abm"),
            ("sha", "sha_ni"),
            ("adx", "adx"),
            ("avx512f", "avx512f"),
            ("avx512bw", "avx512bw"),
            ("avx512vl", "avx512vl"),
            ("avx512vnni", "avx512_vnni"),
            ("avx512bf16", "avx512_bf16"),
            ("vaes", "vaes"),
            ("gfni", "gfni"),
            ("sse4a", "sse4a"),
            ("xop", "xop"),
            ("xsavec", "xsavec"),
            ("clzero", "clzero"),
        ];
        for (feature, flag) in names {
            assert_eq!(has(feature), flags.contains(&flag), "{feature}");
        }
    }
}
