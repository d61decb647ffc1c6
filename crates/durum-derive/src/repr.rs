//! Whether a layout is fixed: `#[repr(...)]`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::{Attribute, Error, LitInt, parenthesized};

use crate::item::{Body, Item};

/// A layout that no compiler changes.
pub enum Repr {
    /// A struct with its fields in the order in which they are written.
    Struct {
        /// Whether it is laid out, and passed, as its one field that has bytes.
        transparent: bool,
    },
    /// An enum that begins with a tag.
    Enum(Tag),
}

/// The tag of an enum.
pub struct Tag {
    /// An integer type of 1, 2, 4 or 8 bytes.
    pub int: Ident,
    /// Whether what follows the tag is one union (`repr(C, u8)`), or each variant begins with the tag (`repr(u8)`).
    pub before_union: bool,
}

impl Tag {
    /// The type of the tag.
    pub fn ty(&self) -> TokenStream {
        let int = &self.int;
        quote!(::core::primitive::#int)
    }

    /// The unsigned type of the same width, which keeps `as u64` from extending a sign.
    pub fn unsigned(&self) -> TokenStream {
        let unsigned = format!("u{}", self.int.to_string().trim_start_matches(['i', 'u']));
        let unsigned = Ident::new(&unsigned, Span::call_site());
        quote!(::core::primitive::#unsigned)
    }
}

/// What the attributes say, before anything is made of it.
#[derive(Default)]
struct Said {
    c: bool,
    transparent: bool,
    packed: Option<Span>,
    align: Option<Span>,
    int: Option<Ident>,
}

/// Why an item has no layout for a pool, with what to write instead.
#[derive(Debug)]
pub enum Refusal {
    /// None is said. Code that is made of the type as it is would be right.
    NotFixed(Error),
    /// One is said that a pool cannot hold.
    Unfit(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Unfit(error)
    }
}

impl Repr {
    /// The layout of an item.
    ///
    /// # Errors
    /// There is none that is fixed, or one that a pool cannot hold.
    pub fn of(item: &Item) -> Result<Self, Refusal> {
        let said = Said::parse(&item.all_attributes)?;
        match &item.body {
            Body::Struct(_) => said.of_struct(item),
            Body::Enum(_) => said.of_enum(item),
        }
    }
}

impl Said {
    fn parse(attributes: &[Attribute]) -> syn::Result<Self> {
        let mut said = Self::default();
        for attribute in attributes.iter().filter(|it| it.path().is_ident("repr")) {
            attribute.parse_nested_meta(|meta| {
                let Some(ident) = meta.path.get_ident() else {
                    return Err(meta.error("unknown representation"));
                };
                match ident.to_string().as_str() {
                    "C" => said.c = true,
                    "transparent" => said.transparent = true,
                    "packed" => said.packed = Some(ident.span()),
                    "align" => said.align = Some(ident.span()),
                    "u8" | "u16" | "u32" | "u64" | "usize" | "i8" | "i16" | "i32" | "i64"
                    | "isize" => said.int = Some(ident.clone()),
                    "Rust" => {}
                    other => {
                        return Err(meta.error(format!(
                            "a pool cannot hold types with the representation `{other}`"
                        )));
                    }
                }
                if meta.input.peek(syn::token::Paren) {
                    let argument;
                    parenthesized!(argument in meta.input);
                    argument.parse::<LitInt>()?;
                }
                Ok(())
            })?;
        }
        Ok(said)
    }

    fn of_struct(self, item: &Item) -> Result<Repr, Refusal> {
        if let Some(packed) = self.packed {
            return Err(Refusal::Unfit(Error::new(
                packed,
                "a packed struct cannot live in a pool, because its fields need references and these need alignment: remove `packed`, and order the fields by size to save room",
            )));
        }
        if !self.c && !self.transparent {
            let ident = &item.ident;
            return Err(Refusal::NotFixed(Error::new_spanned(
                ident,
                format!(
                    "the layout of `{ident}` is not fixed: add #[repr(C)]: objects in a pool outlive the program, and the next build of it might order the fields otherwise"
                ),
            )));
        }
        Ok(Repr::Struct {
            transparent: self.transparent,
        })
    }

    fn of_enum(self, item: &Item) -> Result<Repr, Refusal> {
        if let Some(align) = self.align {
            return Err(Refusal::Unfit(Error::new(
                align,
                "an enum in a pool has the alignment of its fields: put it into a struct with #[repr(C, align(...))] instead",
            )));
        }
        let ident = &item.ident;
        let Some(int) = self.int else {
            let why = if self.c {
                "how wide the tag of #[repr(C)] is depends on the platform"
            } else {
                "objects in a pool outlive the program, and the next build of it might place tag and fields otherwise"
            };
            // Of an enum without fields `repr(C, u8)` is an error of the compiler's.
            let wanted = match item.fields().next() {
                Some(_) => "C, u8",
                None => "u8",
            };
            return Err(Refusal::NotFixed(Error::new_spanned(
                ident,
                format!("the layout of `{ident}` is not fixed: add #[repr({wanted})]: {why}"),
            )));
        };
        Ok(Repr::Enum(Tag {
            int,
            before_union: self.c,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::item;

    fn repr_of(source: &str) -> Result<Repr, String> {
        Repr::of(&item(source)).map_err(|refusal| match refusal {
            Refusal::NotFixed(error) | Refusal::Unfit(error) => error.to_string(),
        })
    }

    fn problem(source: &str) -> String {
        repr_of(source).err().expect("it must be refused")
    }

    #[test]
    fn fixed_layouts_are_understood() {
        let transparent = |source| match repr_of(source) {
            Ok(Repr::Struct { transparent }) => transparent,
            _ => panic!("a struct with a fixed layout"),
        };
        assert!(!transparent("#[repr(C)] struct A;"));
        assert!(!transparent("#[repr(C, align(64))] struct A;"));
        assert!(!transparent("#[repr(align(64))] #[repr(C)] struct A;"));
        assert!(transparent("#[repr(transparent)] struct A(u64);"));

        let tag = |source| match repr_of(source) {
            Ok(Repr::Enum(tag)) => (tag.int.to_string(), tag.before_union),
            _ => panic!("an enum with a fixed layout"),
        };
        assert_eq!(tag("#[repr(u8)] enum A { B }"), ("u8".into(), false));
        assert_eq!(tag("#[repr(C, u16)] enum A { B }"), ("u16".into(), true));
        assert_eq!(tag("#[repr(i64, C)] enum A { B }"), ("i64".into(), true));
    }

    #[test]
    fn a_missing_representation_is_refused_with_the_one_to_add() {
        assert!(problem("struct A { b: u8 }").contains("add #[repr(C)]: "));
        assert!(problem("#[repr(Rust)] struct A { b: u8 }").contains("add #[repr(C)]: "));
        assert!(problem("#[repr(align(8))] struct A { b: u8 }").contains("add #[repr(C)]: "));
        assert!(problem("enum A { B }").contains("add #[repr(u8)]: "));
        assert!(problem("enum A { B, C(u8) }").contains("add #[repr(C, u8)]: "));
        assert!(problem("#[repr(C)] enum A { B }").contains("depends on the platform"));
    }

    #[test]
    fn what_a_pool_cannot_hold_is_refused() {
        assert!(problem("#[repr(C, packed)] struct A;").contains("remove `packed`"));
        assert!(problem("#[repr(C, packed(2))] struct A;").contains("remove `packed`"));
        assert!(problem("#[repr(u128)] enum A { B }").contains("`u128`"));
        assert!(problem("#[repr(simd)] struct A;").contains("`simd`"));
        assert!(problem("#[repr(C, u8, align(8))] enum A { B }").contains("align(...)"));
    }

    #[test]
    fn discriminants_are_not_sign_extended() {
        for (signed, unsigned) in [
            ("i8", "u8"),
            ("u16", "u16"),
            ("isize", "usize"),
            ("usize", "usize"),
        ] {
            let tag = Tag {
                int: Ident::new(signed, Span::call_site()),
                before_union: false,
            };
            assert!(tag.unsigned().to_string().ends_with(unsigned));
        }
    }
}
