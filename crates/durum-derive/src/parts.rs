//! `#[derive(Parts)]`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Error, Generics, Member, parse_quote};

use crate::item::{self, Body, Field, Item, binding};

/// The type of the parts, and the implementation of `Parts`.
///
/// # Errors
/// A type without fields has no parts.
pub fn expand(input: TokenStream) -> syn::Result<TokenStream> {
    let mut errors = Vec::new();
    let item = Item::parse(input, &mut errors)?;
    if item.fields().next().is_none() {
        errors.push(Error::new_spanned(
            &item.ident,
            "there are no parts to take",
        ));
    }
    item::all(errors)?;

    let parts = format_ident!(
        "{}Parts",
        item::unraw(&item.ident),
        span = item.ident.span()
    );
    let lifetime: syn::Lifetime = parse_quote!('__later);
    let whole = item.generics_with(&quote!(::durum::typed::__private::PSafe));
    let mut borrowed: Generics = whole.clone();
    borrowed.params.insert(0, parse_quote!(#lifetime));

    let visibility = &item.visibility;
    let ident = &item.ident;
    let doc = format!("The parts of a [`{ident}`], to be changed later.");
    let (parameters, _, condition) = borrowed.split_for_impl();
    let definition = match &item.body {
        Body::Struct(fields) => {
            let inside = definition(fields, &lifetime);
            match fields.first().map(|field| &field.member) {
                Some(Member::Unnamed(_)) => {
                    quote!(#visibility struct #parts #parameters (#inside) #condition;)
                }
                _ => quote!(#visibility struct #parts #parameters #condition { #inside }),
            }
        }
        Body::Enum(variants) => {
            let variants = variants.iter().map(|variant| {
                let (case, fields) = (&variant.ident, definition(&variant.fields, &lifetime));
                match variant.fields.first().map(|field| &field.member) {
                    None => quote!(#case),
                    Some(Member::Named(_)) => quote!(#case { #fields }),
                    Some(Member::Unnamed(_)) => quote!(#case(#fields)),
                }
            });
            quote!(#visibility enum #parts #parameters #condition { #(#variants,)* })
        }
    };
    // Fields are found by a pattern, which sees through no `Deref`.
    let take = item.arms(|variant, fields| {
        let variant = variant.map(|variant| quote!(::#variant));
        let members = fields.iter().map(|field| &field.member);
        let bindings = (0..fields.len()).map(binding);
        quote! {
            #parts #variant {
                // SAFETY: all fields of the value, each once.
                #(#members: unsafe { ::durum::typed::__private::Later::part(&__whole, #bindings) },)*
            }
        }
    });
    let ty = item.ty();
    let (_, arguments, _) = borrowed.split_for_impl();
    let (parameters, _, condition) = whole.split_for_impl();
    Ok(quote! {
        #[doc = #doc]
        #[allow(dead_code, missing_docs, missing_debug_implementations)]
        #definition

        #[automatically_derived]
        impl #parameters ::durum::typed::__private::Parts for #ty #condition {
            type Parts<#lifetime> = #parts #arguments where Self: #lifetime;

            #[inline(always)]
            fn of<#lifetime>(__whole: ::durum::typed::__private::Later<#lifetime, Self>) -> #parts #arguments {
                match &*__whole { #take }
            }
        }
    })
}

/// The fields, each of them a `Later`, as visible as it was.
fn definition(fields: &[Field], lifetime: &syn::Lifetime) -> TokenStream {
    let fields = fields.iter().map(|field| {
        let (visibility, ty) = (&field.visibility, &field.ty);
        let name = match &field.member {
            Member::Named(name) => Some(quote!(#name:)),
            Member::Unnamed(_) => None,
        };
        quote!(#visibility #name ::durum::typed::__private::Later<#lifetime, #ty>)
    });
    quote!(#(#fields,)*)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests;

    fn code(source: &str) -> String {
        tests::code(expand, 2, source)
    }

    #[test]
    fn each_part_is_as_visible_as_the_field() {
        let code = code("pub(crate) struct A { pub b: u64, c: Option<Pbox<A, P>> }");
        assert!(code.contains("pub (crate) struct AParts < '__later >"));
        assert!(code.contains("pub b : :: durum"));
        assert!(code.contains(", c : :: durum"));
        assert!(code.contains("match & * __whole"));
    }

    #[test]
    fn an_enum_keeps_its_cases() {
        let code = code("enum A<T> { Nothing, One(T), Two { a: u64, b: T } }");
        assert!(code.contains("enum AParts < '__later , T >"));
        assert!(code.contains("Nothing , One ("));
        assert!(code.contains("A :: Two { a : __field_0 , b : __field_1 , } => AParts :: Two"));
    }

    #[test]
    fn what_has_no_fields_has_no_parts() {
        let problem = |source| tests::problems(expand, source);
        assert!(problem("struct A;").contains("no parts"));
        assert!(problem("enum A { B, C }").contains("no parts"));
    }
}
