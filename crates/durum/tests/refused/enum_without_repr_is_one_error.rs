// However the type is used, and whatever else is derived for it, there is nothing more to say.
use durum::typed::*;
durum::pool!(P);

//~ the layout of `Item` is not fixed: add #[repr(C, u8)]:
//~ 1 error
#[derive(PSafe, Root, PClone, Parts)]
enum Item {
    #[default]
    Nothing,
    Value(u64),
    Node { inside: Option<Pbox<Item, P>> },
}

fn set(item: Later<Item>) {
    match item.parts() {
        ItemParts::Nothing => {}
        ItemParts::Value(value) => *value.change() = 7,
        ItemParts::Node { inside } => {
            if let Ok(inside) = inside.some() {
                set(inside.object());
            }
        }
    }
}

fn main() {
    let item = P::open::<PRefCell<Item, P>>("store", 0).unwrap();
    P::transaction(|j| {
        let copy = item.borrow().pclone(j);
        let mut item = item.borrow_mut(j);
        *item = Item::Node {
            inside: Some(Pbox::new(copy, j)),
        };
        set(item.later());
    })
    .unwrap();
}
