//! How many handles a value has inline.

use proc_macro2::TokenStream;
use quote::quote;

use crate::item::{Field, Item, binding};

/// The sum over the fields of `self`. Types without handles add nothing, and need not be looked at.
pub fn sum(item: &Item) -> TokenStream {
    let arms = item.arms(|_, fields| {
        let types: Vec<_> = fields.iter().map(Field::as_psafe).collect();
        let bindings = (0..fields.len()).map(binding);
        quote!(0 #(+ if #types::OWNERS { #types::owners(#bindings) } else { 0 })*)
    });
    quote!(match self { #arms })
}
