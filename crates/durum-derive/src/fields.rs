//! The description of fields, of structs and of variants.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};

use crate::item::{Field, generated_at};

/// The fields as a `Vec`, each with its offset.
pub fn fields<'a>(fields: impl Iterator<Item = (&'a Field, TokenStream)>) -> TokenStream {
    let fields = fields.map(|(field, offset)| {
        let name = field.name();
        let ty = &field.ty;
        let psafe = field.as_psafe();
        let was = &field.attributes.was;
        let zero = zero_is_value(field).map(|check| quote!(const { #check }));
        let in_reserved = field.attributes.in_reserved.map(|_| quote!(.in_reserved()));
        // The constant comes first because errors about it are the same as elsewhere, and the compiler tells the same
        // only once. That about the call would have more to say.
        quote! {
            ::durum::typed::__private::Field::new(#name, (#offset) as ::core::primitive::u64, {
                let _ = #psafe::OWNERS;
                #zero
                __layout::<#ty>(__walk)
            })
            .was(&[#(#was),*])
            #in_reserved
        }
    });
    quote!(::std::vec![#(#fields),*])
}

/// An assertion that zero is a value of a field that may take the place of reserved bytes.
pub fn zero_is_value(field: &Field) -> Option<TokenStream> {
    let place = generated_at(field.attributes.in_reserved?);
    let psafe = field.as_psafe();
    let problem = format!(
        "the field `{}` cannot take the place of reserved bytes, because zero is no value of its type: use a number, an `Option` of a handle, a collection, or an enum with a case 0",
        field.name()
    );
    Some(quote_spanned!(place=> ::core::assert!(#psafe::ZERO_IS_VALUE, #problem)))
}
