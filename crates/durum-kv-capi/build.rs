//! Gives the shared library its soname. The number changes when programs built before cannot run with it any more.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libdurum_kv.so.0");
}
