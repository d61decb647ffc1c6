//! The description of fields, of structs and of variants.

use proc_macro2::TokenStream;
use quote::quote;

use crate::item::Field;

/// The fields as a `Vec`, each with its offset.
pub fn fields<'a>(fields: impl Iterator<Item = (&'a Field, TokenStream)>) -> TokenStream {
    let fields = fields.map(|(field, offset)| {
        let name = field.name();
        let ty = &field.ty;
        let psafe = field.as_psafe();
        // The constant comes first because errors about it are the same as elsewhere, and the compiler tells the same
        // only once. That about the call would have more to say.
        quote! {
            ::durum::typed::__private::Field::new(#name, (#offset) as ::core::primitive::u64, {
                let _ = #psafe::OWNERS;
                __layout::<#ty>(__walk)
            })
        }
    });
    quote!(::std::vec![#(#fields),*])
}
