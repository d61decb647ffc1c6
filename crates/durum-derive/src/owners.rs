//! How many handles a value has inline.

use proc_macro2::TokenStream;
use quote::quote;

use crate::item::{Body, Field, Item, binding, pattern};

/// The sum over the fields of `self`.
pub fn sum(item: &Item) -> TokenStream {
    let ident = &item.ident;
    match &item.body {
        Body::Struct(fields) => {
            let pattern = pattern(fields);
            let sum = of_fields(fields);
            quote! {
                let #ident #pattern = self;
                #sum
            }
        }
        Body::Enum(variants) => {
            let cases = variants.iter().map(|variant| {
                let case = &variant.ident;
                let pattern = pattern(&variant.fields);
                let sum = of_fields(&variant.fields);
                quote!(#ident::#case #pattern => #sum)
            });
            quote!(match self { #(#cases,)* })
        }
    }
}

/// Types without handles add nothing, and need not be looked at.
fn of_fields(fields: &[Field]) -> TokenStream {
    let types: Vec<_> = fields.iter().map(Field::as_psafe).collect();
    let bindings = (0..fields.len()).map(binding);
    quote!(0 #(+ if #types::OWNERS { #types::owners(#bindings) } else { 0 })*)
}
