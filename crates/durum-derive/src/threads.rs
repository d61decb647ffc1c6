//! The shadow type: what threads may do with values in a pool.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};

use crate::item::{Item, unraw};

/// The shadow's name. It shows in errors about threads, so it tells which type they are about.
pub fn name(item: &Item) -> Ident {
    format_ident!("__{}Threads", unraw(&item.ident))
}

/// A type that is `Send` or `Sync` if the shadows of all fields are. They stand behind `PhantomData`: only auto traits
/// look through it, and these may go in circles, where a layout may not. So types may be recursive.
pub fn shadow(item: &Item) -> TokenStream {
    let name = name(item);
    let generics = item.generics_with(&quote!(::durum::typed::__private::PSafe));
    let (parameters, _, condition) = generics.split_for_impl();
    let fields = item.fields().map(|field| {
        let psafe = field.as_psafe();
        // From the type's first token to its last: errors of the same kind in the same place are told once.
        let (first, last) = field.ends();
        let open = quote_spanned!(first=> ::durum::typed::__private::PhantomData<#psafe::Threads);
        let close = quote_spanned!(last=> >);
        quote!(#open #close)
    });
    quote! {
        pub struct #name #parameters (
            #(#fields),*
        ) #condition;
    }
}
