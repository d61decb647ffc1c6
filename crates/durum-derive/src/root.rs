//! `#[derive(Root)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Error;

use crate::item::{self, Body, Item, Variant};
use crate::pool::Pool;

/// The implementation of `Root`.
///
/// # Errors
/// Several pools; an enum that does not say what it begins with.
pub fn expand(input: TokenStream) -> syn::Result<TokenStream> {
    let mut errors = Vec::new();
    let item = Item::parse(input, &mut errors)?;
    let pool = Pool::of(&item).map_err(|error| errors.push(error));
    let value = value(&item).map_err(|error| errors.push(error));
    item::all(errors)?;
    let (Ok(pool), Ok(value)) = (pool, value) else {
        unreachable!("what failed has left an error")
    };

    let ty = item.ty();
    let (pool, generics) = pool.implementation(&item, |_| {
        quote!(::durum::typed::__private::PSafe + ::durum::typed::__private::Default)
    });
    let (parameters, _, condition) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #parameters ::durum::typed::__private::Root<#pool> for #ty #condition {
            fn init(_: &::durum::typed::__private::Journal<#pool>) -> #ty {
                #value
            }
        }
    })
}

fn value(item: &Item) -> syn::Result<TokenStream> {
    let ident = &item.ident;
    match &item.body {
        Body::Struct(fields) => {
            let members = fields.iter().map(|field| &field.member);
            let types = fields.iter().map(|field| &field.ty);
            Ok(quote! {
                #ident { #(#members: <#types as ::durum::typed::__private::Default>::default(),)* }
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

    fn problem(input: TokenStream) -> String {
        expand(input).expect_err("it must be refused").to_string()
    }

    #[test]
    fn every_field_begins_with_its_default() {
        let code = expand(quote!(
            struct A {
                b: u64,
                c: Option<Pbox<A, P>>,
            }
        ))
        .unwrap();
        let file = syn::parse2::<syn::File>(code.clone()).unwrap();
        assert_eq!(file.items.len(), 1);
        let code = code.to_string();
        assert!(code.contains("Root < P > for A"));
        assert_eq!(code.matches(":: default ()").count(), 2);
    }

    #[test]
    fn without_a_pool_it_is_a_root_for_all() {
        let code = expand(quote!(
            struct A<__AnyPool>(__AnyPool);
        ))
        .unwrap()
        .to_string();
        assert!(code.contains("Root < __AnyPool_ > for A < __AnyPool >"));
    }

    #[test]
    fn an_enum_says_which_variant() {
        let code = expand(quote!(
            enum A {
                #[default]
                B,
                C(u8),
            }
        ))
        .unwrap();
        assert!(code.to_string().contains("A :: B { }"));
        assert!(
            problem(quote!(
                enum A {
                    B,
                    C,
                }
            ))
            .contains("mark a variant")
        );
        assert!(
            problem(quote!(
                enum A {
                    #[default]
                    B,
                    #[default]
                    C,
                }
            ))
            .contains("two variants")
        );
        assert!(
            problem(quote!(
                enum A {
                    #[default]
                    B(u8),
                    C,
                }
            ))
            .contains("without fields")
        );
    }

    #[test]
    fn unions_are_refused() {
        assert!(problem(quote!(union A { b: u8 })).contains("make it an enum"));
    }
}
