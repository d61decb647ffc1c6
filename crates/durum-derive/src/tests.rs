//! What tests have in common: the input of a derive is text.

use crate::Expand;
use crate::item::Item;

/// The type that a text declares.
pub fn item(source: &str) -> Item {
    Item::parse(source.parse().unwrap(), &mut Vec::new()).unwrap()
}

/// What a derive makes of a type: so many items.
pub fn code(derive: Expand, items: usize, source: &str) -> String {
    let code = derive(source.parse().unwrap()).unwrap();
    let file: syn::File = syn::parse2(code.clone()).unwrap();
    assert_eq!(file.items.len(), items);
    code.to_string()
}

/// What the compiler is told about a type that a derive refuses.
pub fn problems(derive: Expand, source: &str) -> String {
    let error = derive(source.parse().unwrap()).expect_err("it must be refused");
    error.into_compile_error().to_string()
}
