// However the type is used, and whatever else is derived for it, there is nothing more to say.
use durum::typed::*;
durum::pool!(P);

//~ the layout of `Head` is not fixed: add #[repr(C)]:
//~ 1 error
#[derive(PSafe, Root)]
struct Head {
    first: PRefCell<Option<Pbox<Item, P>>, P>,
}

#[derive(PSafe, PClone, Parts)]
#[repr(C)]
struct Item {
    value: u64,
    next: Option<Pbox<Item, P>>,
}

fn main() {
    let head = P::open::<Head>("store", 0).unwrap();
    P::transaction(|j| {
        let item = Item {
            value: 1,
            next: head.first.borrow_mut(j).take(),
        };
        *head.first.borrow_mut(j) = Some(Pbox::new(item, j));
    })
    .unwrap();
}
