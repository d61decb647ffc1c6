//! The derives of durum's typed layer. Programs get them as `durum::typed::{PSafe, Root, PClone, Parts}`; this crate is
//! no use alone, and what a program has to know of each is said there.
//!
//! Reading order: `item` is what a derive stands on, after its `attributes`; `repr` says whether its layout is fixed.
//! `psafe` puts the first derive together from `layout` (the description; `tagged` for enums), `owners` and `threads`.
//! `pool` finds the pool that `root` and `pclone` work for. `parts` takes references apart.
//!
//! Generated code names everything by absolute paths through `::durum::typed::__private`, in a `const _` of its own;
//! what it has to name itself begins with two underscores. Its `unsafe impl`s stand in code of a macro, so programs may
//! forbid unsafe code.

#![warn(clippy::unwrap_used)]

mod attributes;
mod fields;
mod item;
mod layout;
mod owners;
mod parts;
mod pclone;
mod pool;
mod psafe;
mod repr;
mod root;
mod tagged;
#[cfg(test)]
mod tests;
mod threads;

use proc_macro::TokenStream;

/// Expands `durum::typed::PSafe`.
#[proc_macro_derive(PSafe, attributes(durum))]
pub fn psafe(input: TokenStream) -> TokenStream {
    expand(input, psafe::expand)
}

/// Expands `durum::typed::Root`.
#[proc_macro_derive(Root, attributes(durum, default))]
pub fn root(input: TokenStream) -> TokenStream {
    expand(input, root::expand)
}

/// Expands `durum::typed::PClone`.
#[proc_macro_derive(PClone, attributes(durum))]
pub fn pclone(input: TokenStream) -> TokenStream {
    expand(input, pclone::expand)
}

/// Expands `durum::typed::Parts`.
#[proc_macro_derive(Parts, attributes(durum))]
pub fn parts(input: TokenStream) -> TokenStream {
    expand(input, parts::expand)
}

type Expand = fn(proc_macro2::TokenStream) -> syn::Result<proc_macro2::TokenStream>;

fn expand(input: TokenStream, expand: Expand) -> TokenStream {
    expand(input.into())
        .unwrap_or_else(|error| error.into_compile_error())
        .into()
}
