//! `#[derive(Root)]`.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{Error, parse_quote};

use crate::item::{self, Body, Item, Variant};
use crate::pool::Pool;

/// The implementation of `Root`.
///
/// # Errors
/// Several pools; an enum that does not say what it begins with.
pub fn expand(input: TokenStream) -> syn::Result<TokenStream> {
    let mut errors = Vec::new();
    let item = Item::parse(input, &mut errors)?;
    let named = Pool::of(&item).unwrap_or_else(|error| {
        errors.push(error);
        Pool::Every
    });
    let journal = item.fresh("__journal");
    let (pool, mut generics) =
        named.implementation(&item, |pool| quote!(::durum::typed::__private::Root<#pool>));
    let value = value(&item, &pool, &journal).unwrap_or_else(|error| {
        errors.push(error);
        TokenStream::new()
    });
    item::all(errors)?;

    let ty = item.ty();
    if let (Pool::Every | Pool::Unsaid(_), Body::Struct(fields)) = (&named, &item.body) {
        // A field may be a root in one pool only, which its type does not show here.
        let condition = generics.make_where_clause();
        condition
            .predicates
            .extend(fields.iter().map(|field| -> syn::WherePredicate {
                let ty = &field.ty;
                parse_quote!(#ty: ::durum::typed::__private::Root<#pool>)
            }));
    }
    let (parameters, _, condition) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #parameters ::durum::typed::__private::Root<#pool> for #ty #condition {
            #[allow(unused_variables)]
            fn init(#journal: &::durum::typed::__private::Journal<#pool>) -> #ty {
                #value
            }
        }
    })
}

fn value(item: &Item, pool: &TokenStream, journal: &Ident) -> syn::Result<TokenStream> {
    let ident = &item.ident;
    match &item.body {
        Body::Struct(fields) => {
            let members = fields.iter().map(|field| &field.member);
            let types = fields.iter().map(|field| &field.ty);
            Ok(quote! {
                #ident { #(#members: <#types as ::durum::typed::__private::Root<#pool>>::init(#journal),)* }
            })
        }
        Body::Enum(variants) => {
            let default = default(item, variants)?;
            Ok(quote!(#ident::#default {}))
        }
    }
}

fn default<'a>(item: &Item, variants: &'a [Variant]) -> syn::Result<&'a syn::Ident> {
    let mut marked = variants.iter().filter(|variant| variant.default.is_some());
    match (marked.next(), marked.next()) {
        (Some(variant), None) if variant.fields.is_empty() => Ok(&variant.ident),
        (Some(variant), None) => Err(Error::new_spanned(
            &variant.ident,
            "only a variant without fields can be the #[default]: implement `Root` by hand to begin with this one",
        )),
        (Some(_), Some(second)) => Err(Error::new_spanned(
            &second.default,
            "there are two variants with #[default], and a pool can begin with one only",
        )),
        (None, _) => Err(Error::new_spanned(
            &item.ident,
            "a pool must know what it begins with: mark a variant without fields with #[default]",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests;

    fn code(source: &str) -> String {
        tests::code(expand, 1, source)
    }

    fn problem(source: &str) -> String {
        tests::problems(expand, source)
    }

    #[test]
    fn every_field_begins_as_a_root_would() {
        let code = code("struct A { b: u64, c: Option<Pbox<A, P>> }");
        assert!(code.contains("Root < P > for A"));
        assert_eq!(code.matches(":: init (__journal)").count(), 2);
    }

    #[test]
    fn without_a_pool_it_is_a_root_for_all() {
        let code = code("struct A<__AnyPool>(__AnyPool);");
        assert!(code.contains("Root < __AnyPool_ > for A < __AnyPool >"));
        assert!(code.contains("__AnyPool : :: durum :: typed :: __private :: Root < __AnyPool_ >"));
    }

    #[test]
    fn an_enum_says_which_variant() {
        assert!(code("enum A { #[default] B, C(u8) }").contains("A :: B { }"));
        assert!(problem("enum A { B, C }").contains("mark a variant"));
        assert!(problem("enum A { #[default] B, #[default] C }").contains("two variants"));
        assert!(problem("enum A { #[default] B(u8), C }").contains("without fields"));
    }

    #[test]
    fn unions_are_refused() {
        assert!(problem("union A { b: u8 }").contains("make it an enum"));
    }
}
