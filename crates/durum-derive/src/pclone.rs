//! `#[derive(PClone)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Error;

use crate::item::{self, Field, Item, binding};
use crate::pool::Pool;

/// The implementation of `PClone`.
///
/// Field types are in no condition of it: one that leads back to the type itself would make the compiler go round in
/// circles.
///
/// # Errors
/// A pool that nobody names, or several.
pub fn expand(input: TokenStream) -> syn::Result<TokenStream> {
    let mut errors = Vec::new();
    let item = Item::parse(input, &mut errors)?;
    let pool = Pool::of(&item).and_then(|pool| match pool {
        Pool::Unsaid(alias) => Err(Error::new(
            alias,
            "this alias does not say which pool the copy is made in: add #[durum(pool = P)] before the type, with the name of the pool",
        )),
        pool => Ok(pool),
    });
    let pool = pool.map_err(|error| errors.push(error));
    item::all(errors)?;
    let Ok(pool) = pool else {
        unreachable!("what failed has left an error")
    };

    let ty = item.ty();
    let (pool, generics) = pool.implementation(
        &item,
        |pool| quote!(::durum::typed::__private::PClone<#pool>),
    );
    let (parameters, _, condition) = generics.split_for_impl();
    let copy = copy(&item, &pool);
    Ok(quote! {
        #[automatically_derived]
        impl #parameters ::durum::typed::__private::PClone<#pool> for #ty #condition {
            #[inline]
            fn pclone(&self, __journal: &::durum::typed::__private::Journal<#pool>) -> #ty {
                #copy
            }
        }
    })
}

fn copy(item: &Item, pool: &TokenStream) -> TokenStream {
    let ident = &item.ident;
    let arms = item.arms(|variant, fields| {
        let variant = variant.map(|variant| quote!(::#variant));
        let copies = fields.iter().enumerate().map(|(index, field)| {
            let Field { member, ty, .. } = field;
            let original = binding(index);
            quote!(#member: <#ty as ::durum::typed::__private::PClone<#pool>>::pclone(#original, __journal))
        });
        quote!(#ident #variant { #(#copies,)* })
    });
    quote!(match self { #arms })
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
    fn parameters_are_copied_in_the_same_pool() {
        let of_one = code("struct A<T: PSafe, P: PoolType> { b: Pbox<T, P> }");
        assert!(of_one.contains("PClone < P > for A < T , P >"));
        assert!(of_one.contains("where T : :: durum :: typed :: __private :: PClone < P >"));
        assert!(!of_one.contains("P : :: durum :: typed :: __private :: PClone"));

        let of_all = code("enum A<T> { B(T), C { d: u8 }, E }");
        assert!(of_all.contains("PClone < __AnyPool > for A < T >"));
        assert!(
            of_all.contains("where T : :: durum :: typed :: __private :: PClone < __AnyPool >")
        );
    }

    #[test]
    fn field_types_are_no_conditions() {
        assert!(!code("struct A { next: Option<Pbox<A, P>> }").contains("where"));
    }

    #[test]
    fn an_alias_needs_the_pool() {
        assert!(problem("struct A { b: p::Pbox<u8> }").contains("add #[durum(pool = P)]"));
        code("#[durum(pool = P)] struct A { b: p::Pbox<u8> }");
    }
}
