//! `#[derive(PSafe)]`.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Error, Type};

use crate::item::{self, Body, Field, Item, generated_at, unraw};
use crate::repr::{Refusal, Repr};
use crate::{attributes, fields, layout, owners, tagged, threads};

/// All that makes a type `PSafe`. A layout that is not fixed is told beside that: what else uses the type is right, and
/// the compiler has nothing to say about it.
///
/// # Errors
/// Everything else that is wrong with the type, at once. What is wrong with its fields' types the compiler will tell.
pub fn expand(input: TokenStream) -> syn::Result<TokenStream> {
    let mut errors = Vec::new();
    let item = Item::parse(input, &mut errors)?;
    refuse_lifetimes(&item, &mut errors);
    refuse_reserved_name(&item, &mut errors);
    let (repr, not_fixed) = match Repr::of(&item) {
        Ok(repr) => (Some(repr), None),
        Err(Refusal::NotFixed(error)) => (None, Some(error)),
        Err(Refusal::Unfit(error)) => {
            errors.insert(0, error);
            (None, None)
        }
    };
    if !errors.is_empty() {
        errors.splice(0..0, not_fixed);
        return Err(item::all(errors).expect_err("there is one"));
    }

    let not_fixed = not_fixed.map(Error::into_compile_error);
    let described = layout::described(&item, repr.as_ref());
    let threads = threads::shadow(&item);
    let psafe = psafe(&item, repr.as_ref());
    let no_drop = no_drop(&item);
    let one_pool = one_pool(&item);
    let zeros = zeros(&item);
    Ok(quote! {
        #[doc(hidden)]
        const _: () = {
            #not_fixed
            #described
            #threads
            #psafe
            #no_drop
            #one_pool
            #zeros
        };
    })
}

fn refuse_lifetimes(item: &Item, errors: &mut Vec<Error>) {
    errors.extend(item.generics.lifetimes().map(|lifetime| {
        Error::new_spanned(
            lifetime,
            format!(
                "a type in a pool cannot borrow, because it outlives the program: remove the lifetime `{}` and own what it refers to, with `Pbox`, `Prc` or `Parc`",
                lifetime.lifetime
            ),
        )
    }));
}

/// The identifier is the name in the store, unless another one is given.
fn refuse_reserved_name(item: &Item, errors: &mut Vec<Error>) {
    if item.attributes.name.is_none() && attributes::is_reserved(&unraw(&item.ident)) {
        errors.push(Error::new_spanned(
            &item.ident,
            "durum has a type of this name, for which this one would be taken in the store: add #[durum(name = \"...\")]",
        ));
    }
}

fn psafe(item: &Item, repr: Option<&Repr>) -> TokenStream {
    let ty = item.ty();
    let generics = item.generics_with(&quote!(::durum::typed::__private::PSafe));
    let (parameters, _, condition) = generics.split_for_impl();
    let (_, arguments, _) = item.generics.split_for_impl();
    let threads = threads::name(item);
    let fields: Vec<_> = item.fields().map(Field::as_psafe).collect();
    let owners = owners::sum(item);
    let kind = kind(item, repr);
    let any_value = any_value(item);
    let zero_is_value = match (&item.body, repr) {
        (Body::Struct(_), _) => quote!(true #(&& #fields::ZERO_IS_VALUE)*),
        (Body::Enum(variants), Some(Repr::Enum(tag))) => tagged::zero_is_value(variants, tag),
        (Body::Enum(_), _) => quote!(false),
    };
    quote! {
        #[automatically_derived]
        unsafe impl #parameters ::durum::typed::__private::PSafe for #ty #condition {
            type Threads = #threads #arguments;
            type Kind = #kind;
            const OWNERS: ::core::primitive::bool = false #(|| #fields::OWNERS)*;
            const POINTERS: ::core::primitive::bool = false #(|| #fields::POINTERS)*;
            const WORDS: ::core::primitive::bool = false #(|| #fields::WORDS)*;
            const POOL: ::durum::typed::__private::PoolId =
                ::durum::typed::__private::PoolId::ANY #(.and(#fields::POOL))*;
            const ZERO_IS_VALUE: ::core::primitive::bool = #zero_is_value;

            #[inline]
            fn owners(&self) -> ::core::primitive::i64 {
                #owners
            }

            #[inline]
            fn __any_value() -> ::durum::typed::__private::Option<Self> {
                #any_value
            }
        }
    }
}

/// Some value of the type: each field is what its type gives, and an enum is its first case.
fn any_value(item: &Item) -> TokenStream {
    let (case, fields) = match &item.body {
        Body::Struct(fields) => (quote!(Self), fields.as_slice()),
        Body::Enum(variants) => match variants.first() {
            Some(first) => {
                let name = &first.ident;
                (quote!(Self::#name), first.fields.as_slice())
            }
            None => return quote!(::durum::typed::__private::Option::None),
        },
    };
    let members = fields.iter().map(|field| &field.member);
    let values = fields.iter().map(Field::as_psafe);
    quote!(::durum::typed::__private::Option::Some(#case { #(#members: #values::__any_value()?),* }))
}

/// What the type is to an `Option`.
///
/// It must not name types of fields, which may be less visible than the type itself. So it is computed by constants,
/// and, as these cannot depend on parameters, in a generic type by the types of fields that are parameters or numbers.
fn kind(item: &Item, repr: Option<&Repr>) -> TokenStream {
    // The one field with bytes is a handle, or none is.
    let is_transparent = matches!(repr, Some(Repr::Struct { transparent: true }));
    let private = quote!(::durum::typed::__private);
    if item.generics.params.is_empty() {
        let fields: Vec<_> = item.fields().map(Field::as_psafe).collect();
        let handle = match is_transparent {
            true => quote!(false #(|| <#fields::Kind as #private::PointerKind>::HANDLE)*),
            false => quote!(false),
        };
        return quote!(#private::KindOf<{ false #(|| #fields::POINTERS)* }, { #handle }>);
    }
    let is_visible = |field: &Field| is_parameter_or_number(item, &field.ty);
    if !item.fields().all(is_visible) {
        return quote!(#private::Pointers);
    }
    let kind = item.fields().map(Field::as_psafe).fold(
        quote!(#private::Plain),
        |others, field| quote!(<#others as #private::PointerKind>::With<#field::Kind>),
    );
    match is_transparent {
        true => kind,
        false => quote!(<#kind as #private::PointerKind>::AsPart),
    }
}

/// Whether a type is made of nothing else.
fn is_parameter_or_number(item: &Item, ty: &Type) -> bool {
    const NUMBERS: [&str; 14] = [
        "u8", "u16", "u32", "u64", "usize", "i8", "i16", "i32", "i64", "isize", "f32", "f64",
        "bool", "char",
    ];
    match ty {
        Type::Array(array) => is_parameter_or_number(item, &array.elem),
        Type::Tuple(tuple) => tuple
            .elems
            .iter()
            .all(|ty| is_parameter_or_number(item, ty)),
        Type::Paren(inside) => is_parameter_or_number(item, &inside.elem),
        Type::Path(path) => path.path.get_ident().is_some_and(|ident| {
            NUMBERS.iter().any(|number| ident == number)
                || item.value_parameters().any(|it| it.ident == *ident)
        }),
        _ => false,
    }
}

/// A type without parameters is refused where it is written, and not where it is used, if its fields lead into several
/// pools.
fn one_pool(item: &Item) -> Option<TokenStream> {
    let ty = item.ty();
    let place = generated_at(item.ident.span());
    item.generics.params.is_empty().then(|| {
        quote_spanned! {place=>
            const _: () = <#ty as ::durum::typed::__private::PSafe>::POOL.assert_one();
        }
    })
}

/// Zero is a value of each field that may take the place of reserved bytes. Of a generic type that is seen where it is
/// used.
fn zeros(item: &Item) -> TokenStream {
    let is_seen_here = item.generics.params.is_empty();
    let checks = item.fields().filter_map(fields::zero_is_value);
    let checks: Vec<_> = checks.filter(|_| is_seen_here).collect();
    quote!(#(const _: () = #checks;)*)
}

/// A trait that everything with a destructor implements, and this type, too: with a destructor, it would do so twice.
fn no_drop(item: &Item) -> TokenStream {
    let ty = item.ty();
    let place = generated_at(item.ident.span());
    let conflict = Ident::new(
        &format!("{}_must_not_implement_Drop", unraw(&item.ident)),
        place,
    );
    let (parameters, _, condition) = item.generics.split_for_impl();
    let any = item.fresh("__Any");
    quote_spanned! {place=>
        trait #conflict {}
        impl<#any: ::core::ops::Drop> #conflict for #any {}
        #[automatically_derived]
        impl #parameters #conflict for #ty #condition {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests;

    fn code(source: &str) -> String {
        tests::code(expand, 1, source)
    }

    fn problems(source: &str) -> String {
        tests::problems(expand, source)
    }

    #[test]
    fn forms_of_structs_and_enums_are_accepted() {
        for input in [
            "#[repr(C)] struct A { b: u8, r#type: [u8; 4] }",
            "#[repr(C)] struct A(u8, Option<Pbox<Self, P>>);",
            "#[repr(C)] struct A;",
            "#[repr(transparent)] struct A(u64);",
            "#[repr(C, align(64))] struct A<T, const N: usize> where T: Copy, { b: [T; N] }",
            "#[repr(u8)] enum A { B, C = 7, D(u8), E { f: u8 } }",
            "#[repr(C, i16)] enum A<T: PSafe = u8> { B(T) = -1, C }",
        ] {
            code(input);
        }
    }

    #[test]
    fn pools_need_not_be_psafe() {
        let code = code("#[repr(C)] struct A<T, P: PoolType> { b: Pbox<T, P> }");
        assert!(code.contains("where T : :: durum :: typed :: __private :: PSafe {"));
        assert!(code.contains("name_of :: < T >"));
        assert!(!code.contains("name_of :: < P >"));
    }

    #[test]
    fn a_destructor_would_conflict_by_a_telling_name() {
        let code = code("#[repr(C)] struct Node { b: u8 }");
        assert!(code.contains("impl Node_must_not_implement_Drop for Node"));
    }

    #[test]
    fn a_transparent_handle_is_a_handle() {
        assert!(
            code("#[repr(transparent)] struct A(Pbox<u8, P>);")
                .contains("PointerKind > :: HANDLE }")
        );
        assert!(!code("#[repr(C)] struct A(Pbox<u8, P>);").contains("PointerKind > :: HANDLE }"));
    }

    #[test]
    fn a_missing_representation_is_told_beside_the_code() {
        let code = code("enum A { B(u8) }");
        assert_eq!(code.matches("compile_error").count(), 1);
        assert!(code.contains("PSafe for A"));
    }

    #[test]
    fn all_mistakes_are_told_at_once() {
        let problems = problems(
            r#"#[durum(nmae = "x")] struct A<'a, 'b> { #[durum(name = "y")] b: &'a u8, c: &'b u8 }"#,
        );
        assert_eq!(problems.matches("compile_error").count(), 5);
        assert!(problems.contains("add #[repr(C)]"));
        assert!(problems.contains("nothing else"));
        assert!(problems.contains("goes before the type"));
        assert!(problems.contains("remove the lifetime `'a`"));
        assert!(problems.contains("remove the lifetime `'b`"));
    }

    #[test]
    fn unions_and_empty_enums_are_refused() {
        assert!(problems("#[repr(C)] union A { b: u8 }").contains("make it an enum"));
        assert!(problems("#[repr(u8)] enum A {}").contains("no values"));
    }
}
