//! The description of an enum: its tag, and where the fields of each variant lie.
//!
//! `offset_of!` for fields of variants is unstable. So each variant is mirrored by a struct, from which the Rust
//! Reference defines the layout of these enums ("Primitive representation of enums with fields"):
//!
//! - `repr(u8)`: a union of `repr(C)` structs, each of which begins with the tag;
//! - `repr(C, u8)`: the tag, then a union of `repr(C)` structs, in a `repr(C)` struct.
//!
//! The mirrors take the types of their fields as parameters, so that they need none of the enum's own.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use crate::fields::fields;
use crate::item::{Field, Variant, unraw};
use crate::repr::Tag;

/// The tree of an enum.
pub fn variants(ty: &TokenStream, variants: &[Variant], tag: &Tag) -> TokenStream {
    let int = tag.ty();
    let mirrors = Mirrors::new(variants, tag);
    let items = mirrors.items(variants);
    let whole = mirrors.whole();
    let discriminants = discriminants(variants, tag);
    let unsigned = tag.unsigned();
    let cases = variants.iter().enumerate().map(|(index, variant)| {
        let name = unraw(&variant.ident);
        let was = &variant.attributes.was;
        let discriminant = discriminant(index);
        let fields = fields(
            variant
                .fields
                .iter()
                .enumerate()
                .map(|(at, field)| (field, mirrors.offset(index, at))),
        );
        quote! {
            ::durum::typed::__private::Case {
                discriminant: ::durum::typed::__private::Option::Some(#discriminant as #unsigned as ::core::primitive::u64),
                name: <::durum::typed::__private::String as ::core::convert::From<&::core::primitive::str>>::from(#name),
                was: ::std::vec![#(<::durum::typed::__private::String as ::core::convert::From<&::core::primitive::str>>::from(#was)),*],
                fields: #fields,
            }
        }
    });
    let payload = mirrors.payload();
    quote! {
        #items
        #discriminants
        const {
            ::core::assert!(
                ::core::mem::size_of::<#whole>() == ::core::mem::size_of::<#ty>()
                    && ::core::mem::align_of::<#whole>() == ::core::mem::align_of::<#ty>(),
                "the enum is not laid out as the Rust Reference says",
            );
        }
        let __payload = #payload;
        ::durum::typed::__private::Type::Variants(::durum::typed::__private::Variants {
            name: __name,
            was: ::std::vec![],
            size: __size,
            align: __align,
            tag_offset: 0,
            tag_width: ::core::mem::size_of::<#int>() as ::core::primitive::u64,
            cases: ::std::vec![#(#cases),*],
        })
    }
}

/// The types that an enum's layout is measured on.
struct Mirrors {
    int: TokenStream,
    before_union: bool,
    /// The mirror of each variant, with the types of its fields.
    cases: Vec<TokenStream>,
}

impl Mirrors {
    fn new(variants: &[Variant], tag: &Tag) -> Self {
        let int = tag.ty();
        let cases = variants.iter().enumerate().map(|(index, variant)| {
            let case = case(index);
            let own = (!tag.before_union).then_some(&int).into_iter();
            let types = variant.fields.iter().map(|field| &field.ty);
            quote!(#case<#(#own,)* #(#types),*>)
        });
        Self {
            cases: cases.collect(),
            int,
            before_union: tag.before_union,
        }
    }

    /// Their definitions.
    fn items(&self, variants: &[Variant]) -> TokenStream {
        let structs = variants.iter().enumerate().map(|(index, variant)| {
            let case = case(index);
            let tag = usize::from(!self.before_union);
            let parameters: Vec<_> = (0..tag + variant.fields.len())
                .map(|at| format_ident!("__Field{at}"))
                .collect();
            quote! {
                #[repr(C)]
                struct #case<#(#parameters),*>(#(#parameters),*);
            }
        });
        let parameters: Vec<_> = (0..variants.len()).map(case).collect();
        let members = (0..variants.len()).map(|index| format_ident!("__case_{index}"));
        quote! {
            #(#structs)*
            #[repr(C)]
            union __Cases<#(#parameters),*> {
                #(#members: ::core::mem::ManuallyDrop<#parameters>,)*
            }
            #[repr(C)]
            struct __Tagged<__Tag, __Cases>(__Tag, __Cases);
        }
    }

    /// The mirror of the whole enum.
    fn whole(&self) -> TokenStream {
        let Self { int, cases, .. } = self;
        if self.before_union {
            quote!(__Tagged<#int, __Cases<#(#cases),*>>)
        } else {
            quote!(__Cases<#(#cases),*>)
        }
    }

    /// Where the mirrors of the variants begin.
    fn payload(&self) -> TokenStream {
        if self.before_union {
            let whole = self.whole();
            quote!(::core::mem::offset_of!(#whole, 1))
        } else {
            quote!(0)
        }
    }

    /// Where a field lies, from the start of the enum.
    fn offset(&self, variant: usize, field: usize) -> TokenStream {
        let case = &self.cases[variant];
        let member = syn::Index::from(field + usize::from(!self.before_union));
        quote!(__payload + ::core::mem::offset_of!(#case, #member))
    }
}

fn case(index: usize) -> Ident {
    format_ident!("__Case{index}")
}

fn discriminant(index: usize) -> Ident {
    format_ident!("__DISCRIMINANT_{index}")
}

/// Whether zero is a value: the case whose discriminant that is has no fields but such of which it is one.
pub fn zero_is_value(variants: &[Variant], tag: &Tag) -> TokenStream {
    let discriminants = discriminants(variants, tag);
    let cases = variants.iter().enumerate().map(|(index, variant)| {
        let discriminant = discriminant(index);
        let fields = variant.fields.iter().map(Field::as_psafe);
        quote!((#discriminant == 0 #(&& #fields::ZERO_IS_VALUE)*))
    });
    quote!({
        #discriminants
        false #(|| #cases)*
    })
}

/// A constant for each variant: what it says, else one more than the one before.
fn discriminants(variants: &[Variant], tag: &Tag) -> TokenStream {
    let int = tag.ty();
    let constants = variants.iter().enumerate().map(|(index, variant)| {
        let name = discriminant(index);
        let value = match (
            &variant.discriminant,
            index.checked_sub(1).map(discriminant),
        ) {
            (Some(said), _) => quote!(#said),
            (None, Some(before)) => quote!(#before + 1),
            (None, None) => quote!(0),
        };
        quote!(const #name: #int = #value;)
    });
    quote!(#(#constants)*)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::Body;
    use crate::repr::Repr;
    use crate::tests::item;

    /// Without white space.
    fn code(source: &str) -> String {
        let item = item(source);
        let (Body::Enum(cases), Ok(Repr::Enum(tag))) = (&item.body, Repr::of(&item)) else {
            panic!("an enum with a tag");
        };
        variants(&item.ty(), cases, &tag)
            .to_string()
            .replace(' ', "")
    }

    #[test]
    fn without_a_union_each_mirror_begins_with_the_tag() {
        let code = code("#[repr(u16)] enum A { B, C(u64) }");
        assert!(code.contains(
            "__Cases<__Case0<::core::primitive::u16,>,__Case1<::core::primitive::u16,u64>>"
        ));
        assert!(code.contains("let__payload=0;"));
        assert!(code.contains("offset_of!(__Case1<::core::primitive::u16,u64>,1)"));
    }

    #[test]
    fn before_a_union_the_tag_stands_alone() {
        let code = code("#[repr(C, u16)] enum A { B, C(u64) }");
        let whole = "__Tagged<::core::primitive::u16,__Cases<__Case0<>,__Case1<u64>>>";
        assert!(code.contains(&format!("let__payload=::core::mem::offset_of!({whole},1);")));
        assert!(code.contains("offset_of!(__Case1<u64>,0)"));
    }

    #[test]
    fn discriminants_go_on_from_the_last_one_said() {
        let code = code("#[repr(i8)] enum A { B, C, D = -5, E }");
        for (index, value) in ["0", "__DISCRIMINANT_0+1", "-5", "__DISCRIMINANT_2+1"]
            .iter()
            .enumerate()
        {
            let constant = format!("const__DISCRIMINANT_{index}:::core::primitive::i8={value};");
            assert!(code.contains(&constant), "{constant}");
        }
        assert!(code.contains("__DISCRIMINANT_2as::core::primitive::u8as::core::primitive::u64"));
    }
}
