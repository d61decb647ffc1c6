//! The description of a type: its name, and where its fields lie.

use proc_macro2::TokenStream;
use quote::quote;
use syn::GenericParam;

use crate::fields::fields;
use crate::item::{Body, Field, Item, unraw};
use crate::repr::Repr;
use crate::tagged;

/// The implementation of `Described`.
pub fn described(item: &Item, repr: Option<&Repr>) -> TokenStream {
    let ty = item.ty();
    let generics = item.generics_with(&quote!(::durum::typed::__private::PSafe));
    let (parameters, _, condition) = generics.split_for_impl();
    let name = named(item, None);
    let formers = item.attributes.was.iter();
    let formers: Vec<_> = formers
        .map(|former| named(item, Some(&former.value())))
        .collect();
    let tree = match (&item.body, repr) {
        (Body::Enum(variants), Some(Repr::Enum(tag))) => tagged::variants(&ty, variants, tag),
        (Body::Struct(fields), Some(_)) => structure(&ty, fields),
        // It has none, and the program will not be built.
        (_, None) => quote!(::core::unreachable!()),
        (Body::Enum(_), Some(Repr::Struct { .. })) => {
            unreachable!("the layout of an enum is that of one")
        }
    };
    let description = description(item);
    quote! {
        #[automatically_derived]
        unsafe impl #parameters ::durum::typed::__private::Described for #ty #condition {
            fn name() -> ::durum::typed::__private::Option<::durum::typed::__private::Cow<'static, ::core::primitive::str>> {
                ::durum::typed::__private::Option::Some(#name)
            }

            fn layout(
                __walk: &mut ::durum::typed::__private::Walk,
            ) -> ::durum::typed::__private::Type<::durum::typed::__private::String> {
                // A field that cannot live in a pool is told as such, not as one that has no description.
                fn __layout<__Field: ::durum::typed::__private::PSafe>(
                    __walk: &mut ::durum::typed::__private::Walk,
                ) -> ::durum::typed::__private::Type<::durum::typed::__private::String> {
                    <__Field as ::durum::typed::__private::Described>::layout(__walk)
                }
                let __name = ::durum::typed::__private::Cow::into_owned(#name);
                let __size = ::core::mem::size_of::<#ty>() as ::core::primitive::u64;
                let __align = ::core::mem::align_of::<#ty>() as ::core::primitive::u64;
                let __type = { #tree };
                __type #(.was(&[::core::convert::AsRef::<::core::primitive::str>::as_ref(&#formers)]))*
            }

            #description
        }
    }
}

fn structure(ty: &TokenStream, members: &[Field]) -> TokenStream {
    let fields = fields(members.iter().map(|field| {
        let member = &field.member;
        (field, quote!(::core::mem::offset_of!(#ty, #member)))
    }));
    quote!(::durum::typed::__private::Type::structure(__name, __size, __align, #fields))
}

/// The name in the store as a `Cow`, or one that it had before: `Pair<u64,8>`.
fn named(item: &Item, former: Option<&str>) -> TokenStream {
    let base = match (former, &item.attributes.name) {
        (Some(former), _) => former.to_owned(),
        (None, Some(name)) => name.value(),
        (None, None) => unraw(&item.ident),
    };
    let arguments: Vec<_> = item
        .generics
        .params
        .iter()
        .filter_map(|parameter| match parameter {
            GenericParam::Type(it) if item.pool_parameters().any(|pool| pool.ident == it.ident) => {
                None
            }
            GenericParam::Type(it) => {
                let ident = &it.ident;
                Some(quote!(::durum::typed::__private::name_of::<#ident>()))
            }
            GenericParam::Const(it) => {
                let ident = &it.ident;
                Some(quote!(#ident))
            }
            GenericParam::Lifetime(_) => None,
        })
        .collect();
    if arguments.is_empty() {
        return quote!(::durum::typed::__private::Cow::<'static, ::core::primitive::str>::Borrowed(#base));
    }
    let format = format!("{{}}<{}>", vec!["{}"; arguments.len()].join(","));
    quote! {
        ::durum::typed::__private::Cow::<'static, ::core::primitive::str>::Owned(::std::format!(#format, #base #(, #arguments)*))
    }
}

/// Without parameters, the description is a static of its own; else the default finds it by type.
fn description(item: &Item) -> Option<TokenStream> {
    if !item.generics.params.is_empty() {
        return None;
    }
    let ty = item.ty();
    Some(quote! {
        fn description() -> &'static ::durum::typed::__private::Description {
            static __DESCRIPTION: ::std::sync::OnceLock<::durum::typed::__private::Description> = ::std::sync::OnceLock::new();
            __DESCRIPTION.get_or_init(::durum::typed::__private::Description::of::<#ty>)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::item;

    fn name_of(source: &str) -> String {
        named(&item(source), None).to_string()
    }

    #[test]
    fn the_name_is_the_identifier_or_what_the_program_says() {
        assert!(name_of("struct A;").ends_with(r#"Borrowed ("A")"#));
        assert!(name_of("struct r#type;").ends_with(r#"Borrowed ("type")"#));
        assert!(name_of(r#"#[durum(name = "b::A")] struct A;"#).ends_with(r#"Borrowed ("b::A")"#));
    }

    #[test]
    fn arguments_belong_to_the_name_and_pools_do_not() {
        let both = name_of("struct A<T, P: PoolType, const N: usize>([T; N], P);");
        assert!(both.contains(r#""{}<{},{}>" , "A""#));
        assert!(both.ends_with("name_of :: < T > () , N))"));
        assert!(name_of("struct A<P: PoolType>(P);").ends_with(r#"Borrowed ("A")"#));
    }

    #[test]
    fn only_types_without_parameters_keep_their_description_in_a_static() {
        let has_static = |source| description(&item(source)).is_some();
        assert!(has_static("struct A;"));
        assert!(!has_static("struct A<P: PoolType>(P);"));
        assert!(!has_static("struct A<const N: usize>;"));
    }
}
