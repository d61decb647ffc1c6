//! The struct or enum that a derive stands on.

use proc_macro2::{Group, Ident, Spacing, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    Attribute, Data, DeriveInput, Error, Expr, GenericParam, Generics, Member, Type, TypeParam,
    TypeParamBound, Visibility, WherePredicate,
};

use crate::attributes::{Attributes, PartAttributes};

/// A struct or enum. `Self` in its field types, bounds and discriminants is replaced by the type, so that they mean the
/// same in items of their own.
pub struct Item {
    pub ident: Ident,
    pub visibility: Visibility,
    pub generics: Generics,
    /// What `#[durum(...)]` says.
    pub attributes: Attributes,
    /// These and all others.
    pub all_attributes: Vec<Attribute>,
    pub body: Body,
}

/// What is in a type.
pub enum Body {
    Struct(Vec<Field>),
    Enum(Vec<Variant>),
}

/// A field of a struct or variant.
pub struct Field {
    pub visibility: Visibility,
    /// Its name or number.
    pub member: Member,
    pub ty: Type,
    /// What `#[durum(...)]` says.
    pub attributes: PartAttributes,
}

/// A variant of an enum.
pub struct Variant {
    pub ident: Ident,
    /// What `#[durum(...)]` says.
    pub attributes: PartAttributes,
    pub fields: Vec<Field>,
    /// The discriminant, where it is said.
    pub discriminant: Option<Expr>,
    /// `#[default]`, if it stands there.
    pub default: Option<Attribute>,
}

impl Item {
    /// Reads a derive's input. Mistakes that do not keep it from being read go to `errors`.
    pub fn parse(input: TokenStream, errors: &mut Vec<Error>) -> syn::Result<Self> {
        let named: DeriveInput = syn::parse2(input.clone())?;
        let (_, arguments, _) = named.generics.split_for_impl();
        let input = without_self(input, &|span| {
            let mut ident = named.ident.clone();
            ident.set_span(span);
            quote_spanned!(span=> #ident #arguments)
        });
        let input: DeriveInput = syn::parse2(input)?;

        let attributes = Attributes::parse(&input.attrs, errors);
        let body = match input.data {
            Data::Struct(data) => Body::Struct(Field::parse_all(data.fields, errors)),
            Data::Enum(data) if data.variants.is_empty() => {
                errors.push(Error::new_spanned(
                    &input.ident,
                    "an enum without variants has no values that a pool could hold",
                ));
                Body::Enum(Vec::new())
            }
            Data::Enum(data) => Body::Enum(
                data.variants
                    .into_iter()
                    .map(|variant| Variant::parse(variant, errors))
                    .collect(),
            ),
            Data::Union(data) => {
                let mut error = Error::new_spanned(
                    data.union_token,
                    "a union cannot live in a pool, because nobody knows which of its fields counts: make it an enum with #[repr(C, u8)]",
                );
                error.extend(errors.drain(..));
                return Err(error);
            }
        };
        Ok(Self {
            ident: input.ident,
            visibility: input.vis,
            generics: input.generics,
            attributes,
            all_attributes: input.attrs,
            body,
        })
    }

    /// All fields, those of all variants.
    pub fn fields(&self) -> impl Iterator<Item = &Field> {
        let (own, variants): (&[Field], &[Variant]) = match &self.body {
            Body::Struct(fields) => (fields, &[]),
            Body::Enum(variants) => (&[], variants),
        };
        own.iter()
            .chain(variants.iter().flat_map(|variant| &variant.fields))
    }

    /// The arms of a match over a value of the type. `arm` gets the variant, if it is an enum, and the fields, which
    /// are bound.
    pub fn arms(&self, arm: impl Fn(Option<&Ident>, &[Field]) -> TokenStream) -> TokenStream {
        let ident = &self.ident;
        match &self.body {
            Body::Struct(fields) => {
                let (pattern, arm) = (pattern(fields), arm(None, fields));
                quote!(#ident #pattern => #arm)
            }
            Body::Enum(variants) => variants
                .iter()
                .map(|variant| {
                    let case = &variant.ident;
                    let (pattern, arm) =
                        (pattern(&variant.fields), arm(Some(case), &variant.fields));
                    quote!(#ident::#case #pattern => #arm,)
                })
                .collect(),
        }
    }

    /// The type with its parameters.
    pub fn ty(&self) -> TokenStream {
        let ident = &self.ident;
        let (_, arguments, _) = self.generics.split_for_impl();
        quote!(#ident #arguments)
    }

    /// Parameters that stand for pools: those with a bound `PoolType`.
    pub fn pool_parameters(&self) -> impl Iterator<Item = &TypeParam> {
        self.generics
            .type_params()
            .filter(|parameter| self.is_pool(parameter))
    }

    /// Parameters that stand for values.
    pub fn value_parameters(&self) -> impl Iterator<Item = &TypeParam> {
        self.generics
            .type_params()
            .filter(|parameter| !self.is_pool(parameter))
    }

    /// The generics, each parameter that stands for values with one more bound.
    pub fn generics_with(&self, bound: &TokenStream) -> Generics {
        let mut generics = self.generics.clone();
        let values: Vec<_> = self
            .value_parameters()
            .map(|parameter| parameter.ident.clone())
            .collect();
        if !values.is_empty() {
            let predicates = &mut generics.make_where_clause().predicates;
            predicates.extend(
                values
                    .iter()
                    .map(|ident| -> WherePredicate { syn::parse_quote!(#ident: #bound) }),
            );
        }
        generics
    }

    /// An identifier that no parameter has.
    pub fn fresh(&self, wanted: &str) -> Ident {
        let mut ident = Ident::new(wanted, Span::call_site());
        let taken = |ident: &Ident| {
            self.generics.params.iter().any(|parameter| {
                matches!(parameter, GenericParam::Type(TypeParam { ident: it, .. }) if it == ident)
                    || matches!(parameter, GenericParam::Const(it) if it.ident == *ident)
            })
        };
        while taken(&ident) {
            ident = format_ident!("{ident}_");
        }
        ident
    }

    fn is_pool(&self, parameter: &TypeParam) -> bool {
        let in_where_clause = self.generics.where_clause.iter().any(|clause| {
            clause.predicates.iter().any(|predicate| match predicate {
                WherePredicate::Type(it) => {
                    matches!(&it.bounded_ty, Type::Path(path) if path.path.is_ident(&parameter.ident))
                        && it.bounds.iter().any(is_pool_type)
                }
                _ => false,
            })
        });
        in_where_clause || parameter.bounds.iter().any(is_pool_type)
    }
}

fn is_pool_type(bound: &TypeParamBound) -> bool {
    matches!(bound, TypeParamBound::Trait(bound)
        if bound.path.segments.last().is_some_and(|last| last.ident == "PoolType"))
}

impl Field {
    fn parse_all(fields: syn::Fields, errors: &mut Vec<Error>) -> Vec<Self> {
        let members: Vec<_> = fields.members().collect();
        members
            .into_iter()
            .zip(fields)
            .map(|(member, field)| {
                let attributes = PartAttributes::parse(&field.attrs, true, errors);
                Self {
                    attributes,
                    visibility: field.vis,
                    member: generated_member(member),
                    ty: field.ty,
                }
            })
            .collect()
    }

    /// `<F as PSafe>`, all of it in the place of the type, so that the compiler points there when it has something
    /// against it.
    pub fn as_psafe(&self) -> TokenStream {
        let ty = &self.ty;
        quote_spanned!(ty.span()=> <#ty as ::durum::typed::__private::PSafe>)
    }

    /// Where its type begins and ends. (Stable compilers cannot join the two.)
    pub fn ends(&self) -> (Span, Span) {
        let mut spans = self
            .ty
            .to_token_stream()
            .into_iter()
            .map(|token| token.span());
        let first = spans.next().unwrap_or_else(Span::call_site);
        (first, spans.last().unwrap_or(first))
    }

    /// Its name in the store.
    pub fn name(&self) -> String {
        match &self.member {
            Member::Named(ident) => unraw(ident),
            Member::Unnamed(index) => index.index.to_string(),
        }
    }
}

impl Variant {
    fn parse(variant: syn::Variant, errors: &mut Vec<Error>) -> Self {
        let attributes = PartAttributes::parse(&variant.attrs, false, errors);
        let mut ident = variant.ident;
        ident.set_span(generated_at(ident.span()));
        Self {
            attributes,
            ident,
            fields: Field::parse_all(variant.fields, errors),
            discriminant: variant.discriminant.map(|(_, value)| value),
            default: variant
                .attrs
                .into_iter()
                .find(|attribute| attribute.path().is_ident("default")),
        }
    }
}

/// The same place, but as code that a macro made: lints (`deprecated`, say) are for what people write.
pub fn generated_at(place: Span) -> Span {
    place.resolved_at(Span::call_site())
}

fn generated_member(mut member: Member) -> Member {
    match &mut member {
        Member::Named(ident) => ident.set_span(generated_at(ident.span())),
        Member::Unnamed(index) => index.span = generated_at(index.span),
    }
    member
}

/// The name of what field number `index` is bound to. A plain name might be that of a constant of the program, which a
/// pattern would then compare with.
pub fn binding(index: usize) -> Ident {
    format_ident!("__field_{index}")
}

/// A pattern behind the name of a struct or variant that binds every field: one that is added later cannot be
/// forgotten.
fn pattern(fields: &[Field]) -> TokenStream {
    let members = fields.iter().map(|field| &field.member);
    let bindings = (0..fields.len()).map(binding);
    quote!({ #(#members: #bindings,)* })
}

/// Without the `r#` of a raw identifier.
pub fn unraw(ident: &Ident) -> String {
    let text = ident.to_string();
    text.strip_prefix("r#").map(str::to_owned).unwrap_or(text)
}

/// All mistakes as one error.
pub fn all(errors: Vec<Error>) -> syn::Result<()> {
    match errors.into_iter().reduce(|mut all, error| {
        all.combine(error);
        all
    }) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// The tokens with every `Self` replaced by the type that it stands for.
fn without_self(tokens: TokenStream, ty: &dyn Fn(Span) -> TokenStream) -> TokenStream {
    let mut replaced = TokenStream::new();
    let mut rest = tokens.into_iter().peekable();
    while let Some(token) = rest.next() {
        match token {
            TokenTree::Ident(ident) if ident == "Self" => {
                let ty = ty(ident.span());
                let goes_on = matches!(rest.peek(), Some(TokenTree::Punct(punct)) if punct.as_char() == ':' && punct.spacing() == Spacing::Joint);
                if goes_on {
                    quote_spanned!(ident.span()=> <#ty>).to_tokens(&mut replaced);
                } else {
                    ty.to_tokens(&mut replaced);
                }
            }
            TokenTree::Group(group) => {
                let mut inside = Group::new(group.delimiter(), without_self(group.stream(), ty));
                inside.set_span(group.span());
                inside.to_tokens(&mut replaced);
            }
            other => other.to_tokens(&mut replaced),
        }
    }
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::item;

    #[test]
    fn self_is_replaced_wherever_it_stands() {
        let item = item(
            "struct A<T, const N: usize> where Self: Sized { next: Option<Pbox<Self, P>>, bytes: [u8; Self::LEN] }",
        );
        let types: Vec<_> = item
            .fields()
            .map(|field| field.ty.to_token_stream().to_string())
            .collect();
        assert_eq!(
            types,
            [
                "Option < Pbox < A < T , N > , P > >",
                "[u8 ; < A < T , N > > :: LEN]"
            ]
        );
        let clause = item.generics.where_clause.to_token_stream().to_string();
        assert_eq!(clause, "where A < T , N > : Sized");
    }

    #[test]
    fn pools_are_told_by_their_bound() {
        let item =
            item("struct A<T: PSafe, P: durum::typed::PoolType, Q>(T, P, Q) where Q: PoolType;");
        let names: Vec<_> = item
            .pool_parameters()
            .map(|it| it.ident.to_string())
            .collect();
        assert_eq!(names, ["P", "Q"]);
        assert_eq!(item.value_parameters().count(), 1);
    }

    #[test]
    fn fresh_names_are_no_parameters() {
        let item = item("struct A<__P, const __P_: usize>(__P);");
        assert_eq!(item.fresh("__P"), "__P__");
        assert_eq!(item.fresh("__Q"), "__Q");
    }
}
