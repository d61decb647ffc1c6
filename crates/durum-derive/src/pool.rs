//! Which pool an implementation is for.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::{Error, GenericArgument, Generics, PathArguments, PathSegment, Type, parse_quote};

use crate::attributes::TYPES;
use crate::item::Item;

/// The pool of a type.
pub enum Pool {
    /// This one.
    One(TokenStream),
    /// Nothing in the type belongs to a pool.
    Every,
    /// Something does, by an alias, which does not say to which.
    Unsaid(Span),
}

impl Pool {
    /// Finds it: what the attribute says, the parameter that is a pool, or the pool of the first field that names one.
    ///
    /// # Errors
    /// Several parameters are pools.
    pub fn of(item: &Item) -> syn::Result<Self> {
        if let Some(pool) = &item.attributes.pool {
            return Ok(Self::One(pool.to_token_stream()));
        }
        let mut parameters = item.pool_parameters().map(|parameter| &parameter.ident);
        if let Some(pool) = parameters.next() {
            return match parameters.next() {
                None => Ok(Self::One(quote!(#pool))),
                Some(other) => Err(Error::new_spanned(
                    other,
                    format!(
                        "there are several pools: add #[durum(pool = {pool})] or #[durum(pool = {other})] to say which one this is for"
                    ),
                )),
            };
        }
        let mut unsaid = None;
        for field in item.fields() {
            if let Some(pool) = named_in(&field.ty, &mut unsaid) {
                return Ok(Self::One(pool.to_token_stream()));
            }
        }
        Ok(unsaid.map_or(Self::Every, Self::Unsaid))
    }

    /// The pool as a type, and the generics of an implementation for it: each parameter that stands for values is
    /// bound, and if it is for every pool there is one more parameter.
    pub fn implementation(
        &self,
        item: &Item,
        bound: impl FnOnce(&TokenStream) -> TokenStream,
    ) -> (TokenStream, Generics) {
        if let Self::One(pool) = self {
            return (pool.clone(), item.generics_with(&bound(pool)));
        }
        let pool = item.fresh("__AnyPool").to_token_stream();
        let mut generics = item.generics_with(&bound(&pool));
        generics
            .params
            .push(parse_quote!(#pool: ::durum::typed::__private::PoolType));
        (pool, generics)
    }
}

/// The pool that a type names, looked for from the outside in. Aliases on the way are noted in `unsaid`.
fn named_in<'a>(ty: &'a Type, unsaid: &mut Option<Span>) -> Option<&'a Type> {
    match ty {
        Type::Path(path) => {
            let last = path.path.segments.last()?;
            if let Some((_, place)) = TYPES.iter().find(|(name, _)| last.ident == name) {
                match arguments(last).nth(*place) {
                    Some(pool) if !is_kind(pool) => return Some(pool),
                    _ => drop(unsaid.get_or_insert(last.ident.span())),
                }
            }
            arguments(last).find_map(|argument| named_in(argument, unsaid))
        }
        Type::Array(array) => named_in(&array.elem, unsaid),
        Type::Tuple(tuple) => tuple.elems.iter().find_map(|elem| named_in(elem, unsaid)),
        Type::Group(group) => named_in(&group.elem, unsaid),
        Type::Paren(paren) => named_in(&paren.elem, unsaid),
        _ => None,
    }
}

/// Types among the arguments of a path's last segment.
fn arguments(segment: &PathSegment) -> impl Iterator<Item = &Type> {
    let arguments = match &segment.arguments {
        PathArguments::AngleBracketed(arguments) => Some(&arguments.args),
        PathArguments::None | PathArguments::Parenthesized(_) => None,
    };
    arguments
        .into_iter()
        .flatten()
        .filter_map(|argument| match argument {
            GenericArgument::Type(ty) => Some(ty),
            _ => None,
        })
}

/// Whether this is the kind of a `PWeak` by an alias, in the place of the pool.
fn is_kind(ty: &Type) -> bool {
    matches!(ty, Type::Path(path)
        if path.path.segments.last().is_some_and(|last| last.ident == "Shared" || last.ident == "Local"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::item;

    fn pool_of(source: &str) -> String {
        match Pool::of(&item(source)) {
            Ok(Pool::One(pool)) => pool.to_string(),
            Ok(Pool::Every) => "every".into(),
            Ok(Pool::Unsaid(_)) => "unsaid".into(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn the_attribute_goes_before_all_else() {
        let input = "#[durum(pool = Q)] struct A<P: PoolType> { b: Pbox<u8, P>, c: Pbox<u8, Q> }";
        assert_eq!(pool_of(input), "Q");
    }

    #[test]
    fn a_parameter_can_be_the_pool() {
        assert_eq!(
            pool_of("struct A<T, P: durum::typed::PoolType>(T, P);"),
            "P"
        );
        assert_eq!(pool_of("struct A<T, P>(T, P) where P: PoolType;"), "P");
        let two = pool_of("struct A<P: PoolType, Q: PoolType>(P, Q);");
        assert!(two.contains("#[durum(pool = P)] or #[durum(pool = Q)]"));
    }

    #[test]
    fn the_first_type_that_names_a_pool_tells_it() {
        assert_eq!(pool_of("struct A { a: u64, b: Option<Pbox<A, P>> }"), "P");
        assert_eq!(pool_of("struct A([(u8, PString<P>); 4]);"), "P");
        assert_eq!(
            pool_of("struct A { b: durum::typed::PHashMap<u8, u8, p::P> }"),
            "p :: P"
        );
        assert_eq!(pool_of("struct A { b: PWeak<A, P, Local> }"), "P");
        assert_eq!(pool_of("enum A { B, C(u8, Parc<A, P>) }"), "P");
        assert_eq!(pool_of("struct A { a: Pbox<u8>, b: Pbox<u8, P> }"), "P");
    }

    #[test]
    fn an_alias_names_no_pool() {
        assert_eq!(pool_of("struct A { b: Option<p::Pbox<A>> }"), "unsaid");
        assert_eq!(pool_of("struct A { b: PString }"), "unsaid");
        assert_eq!(pool_of("struct A { b: PHashMap<u8, u8> }"), "unsaid");
        assert_eq!(pool_of("struct A { b: PWeak<A, Local> }"), "unsaid");
    }

    #[test]
    fn plain_types_belong_to_every_pool() {
        assert_eq!(pool_of("struct A<T> { b: Option<T>, c: [u8; 4] }"), "every");
    }
}
