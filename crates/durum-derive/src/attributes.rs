//! `#[durum(...)]`.

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::{Attribute, Error, LitStr, Type};

/// What `#[durum(...)]` on a type says.
#[derive(Default)]
pub struct Attributes {
    /// The name in the store, instead of the identifier.
    pub name: Option<LitStr>,
    /// The pool, where the fields do not tell.
    pub pool: Option<Type>,
    /// Names in the store that it had before.
    pub was: Vec<LitStr>,
}

impl Attributes {
    /// Of the attributes of a type, those of durum.
    pub fn parse(attributes: &[Attribute], errors: &mut Vec<Error>) -> Self {
        let mut found = Self::default();
        for attribute in attributes.iter().filter(|it| it.path().is_ident("durum")) {
            let parsed = attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("name") {
                    let name: LitStr = meta.value()?.parse()?;
                    check_name(&name)?;
                    if found.name.replace(name).is_some() {
                        return Err(meta.error("the name is said twice"));
                    }
                } else if meta.path.is_ident("pool") {
                    if found.pool.replace(meta.value()?.parse()?).is_some() {
                        return Err(meta.error("the pool is said twice"));
                    }
                } else if meta.path.is_ident("was") {
                    let was: LitStr = meta.value()?.parse()?;
                    check_name(&was)?;
                    add(&mut found.was, was)?;
                } else {
                    return Err(meta.error(
                        "durum knows `name = \"...\"`, `was = \"...\"` and `pool = P` here, nothing else",
                    ));
                }
                Ok(())
            });
            errors.extend(parsed.err());
        }
        found
    }
}

/// What `#[durum(...)]` on a field or a variant says.
#[derive(Default)]
pub struct PartAttributes {
    /// Names that it had before.
    pub was: Vec<LitStr>,
    /// Where the field says that it may take the place of reserved bytes.
    pub in_reserved: Option<Span>,
}

impl PartAttributes {
    /// Of the attributes of a field, or of a variant, those of durum.
    pub fn parse(attributes: &[Attribute], is_field: bool, errors: &mut Vec<Error>) -> Self {
        let mut found = Self::default();
        for attribute in attributes.iter().filter(|it| it.path().is_ident("durum")) {
            let parsed = attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("was") {
                    let was: LitStr = meta.value()?.parse()?;
                    check_characters(&was)?;
                    add(&mut found.was, was)?;
                } else if is_field && meta.path.is_ident("in_reserved") {
                    found.in_reserved = Some(meta.path.span());
                } else {
                    return Err(meta.error(match is_field {
                        true => "durum knows `was = \"...\"` and `in_reserved` here; all else goes before the type",
                        false => "durum knows `was = \"...\"` here; all else goes before the type",
                    }));
                }
                Ok(())
            });
            errors.extend(parsed.err());
        }
        found
    }
}

/// The most former names that one thing has.
const FORMERS_MAX: usize = 16;

fn add(formers: &mut Vec<LitStr>, former: LitStr) -> syn::Result<()> {
    if formers.len() == FORMERS_MAX {
        let problem =
            "there are at most 16 former names; leave out those that no pool has any more";
        return Err(Error::new_spanned(former, problem));
    }
    formers.push(former);
    Ok(())
}

/// Bytes that a name may have.
const NAME_MAX: usize = 255;

/// Names of primitives, which no other type may have.
const PRIMITIVES: [&str; 12] = [
    "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f32", "f64", "bool", "char",
];

/// Types of durum that name a pool, and at which place among their arguments.
pub const TYPES: [(&str, usize); 12] = [
    ("Pbox", 1),
    ("Prc", 1),
    ("Parc", 1),
    ("PWeak", 1),
    ("PCell", 1),
    ("PRefCell", 1),
    ("PMutex", 1),
    ("LogFree", 1),
    ("PVec", 1),
    ("PString", 0),
    ("PHashMap", 2),
    ("PBTreeMap", 2),
];

/// Whether a name, or one with generic arguments behind it, would be taken for that of a type of durum. What is stored
/// under such a name has more to it than its fields: a `PString` holds UTF-8.
pub fn is_reserved(name: &str) -> bool {
    let parts = |char: char| !(char.is_alphanumeric() || char == '_');
    let first = name.split(parts).next().unwrap_or(name);
    let is_spelled = ["counted ", "root ", "weak ", "durum "]
        .iter()
        .any(|begin| name.starts_with(begin));
    let is_type = first == "Option" || TYPES.iter().any(|(name, _)| *name == first);
    is_spelled || name.starts_with(['(', '[']) || is_type
}

/// The rules of docs/format/types.md, which would otherwise be found broken at the first use of the type only.
fn check_characters(literal: &LitStr) -> syn::Result<()> {
    let name = literal.value();
    let fine = |char: char| !char.is_control() && char != '"' && char != '\\';
    match name.is_empty() || name.len() > NAME_MAX || !name.chars().all(fine) {
        false => Ok(()),
        true => Err(Error::new_spanned(
            literal,
            "the name must have 1 to 255 bytes, none of them a control character, '\"' or '\\'",
        )),
    }
}

/// The same for the name of a type.
fn check_name(literal: &LitStr) -> syn::Result<()> {
    check_characters(literal)?;
    let name = literal.value();
    let problem = if PRIMITIVES.contains(&name.as_str()) {
        "this is the name of a primitive; choose another one"
    } else if is_reserved(&name) {
        "durum describes types of its own by this name; choose another one"
    } else {
        return Ok(());
    };
    Err(Error::new_spanned(literal, problem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::ToTokens;
    use syn::parse_quote;

    fn errors_of(attribute: Attribute) -> String {
        let mut errors = Vec::new();
        Attributes::parse(&[attribute], &mut errors);
        errors.iter().map(Error::to_string).collect()
    }

    #[test]
    fn name_and_pool_are_read() {
        let mut errors = Vec::new();
        let attributes: [Attribute; 2] = [
            parse_quote!(#[durum(name = "index::Node", pool = crate::P)]),
            parse_quote!(#[doc = "other people's attributes"]),
        ];
        let found = Attributes::parse(&attributes, &mut errors);
        assert!(errors.is_empty());
        assert_eq!(found.name.unwrap().value(), "index::Node");
        assert_eq!(found.pool.to_token_stream().to_string(), "crate :: P");
    }

    #[test]
    fn parts_have_former_names_and_fields_may_lie_in_reserved_bytes() {
        let attribute: Attribute = parse_quote!(#[durum(was = "a", was = "b", in_reserved)]);
        let mut errors = Vec::new();
        let found = PartAttributes::parse(std::slice::from_ref(&attribute), true, &mut errors);
        let was: Vec<_> = found.was.iter().map(LitStr::value).collect();
        assert_eq!(
            (was, found.in_reserved.is_some()),
            (vec!["a".to_owned(), "b".to_owned()], true)
        );
        assert!(errors.is_empty());
        PartAttributes::parse(&[attribute], false, &mut errors);
        PartAttributes::parse(&[parse_quote!(#[durum(was = "")])], true, &mut errors);
        let told: Vec<_> = errors.iter().map(Error::to_string).collect();
        assert!(told[0].contains("before the type") && told[1].contains("1 to 255 bytes"));
        assert!(errors_of(parse_quote!(#[durum(was = "PString")])).contains("of its own"));
    }

    #[test]
    fn unknown_words_and_impossible_names_are_refused() {
        assert!(errors_of(parse_quote!(#[durum(nam = "x")])).contains("nothing else"));
        assert!(errors_of(parse_quote!(#[durum(name = "")])).contains("1 to 255 bytes"));
        assert!(errors_of(parse_quote!(#[durum(name = "a\"b")])).contains("1 to 255 bytes"));
        assert!(errors_of(parse_quote!(#[durum(name = "u64")])).contains("primitive"));
        for reserved in ["PString", "PVec<u64>", "counted u64", "root u64", "[u64;3]"] {
            assert!(errors_of(parse_quote!(#[durum(name = #reserved)])).contains("of its own"));
        }
        assert!(
            !is_reserved("PStringLike") && !is_reserved("mine::PString") && !is_reserved("roots")
        );
        assert!(errors_of(parse_quote!(#[durum(name = "a", name = "b")])).contains("twice"));
        assert!(errors_of(parse_quote!(#[durum(pool = 5)])).contains("expected"));
    }
}
