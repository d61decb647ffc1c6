use durum::typed::*;
durum::pool!(P);

mod sorted {
    use durum::typed::*;

    #[derive(PSafe, Parts)]
    #[repr(C)]
    pub struct Sorted {
        numbers: [u64; 4],
        pub name: u64,
    }

    /// Its parts are those of the module only.
    impl std::ops::Deref for Sorted {
        type Target = [u64; 4];
        fn deref(&self) -> &[u64; 4] {
            &self.numbers
        }
    }
}

fn shuffle(sorted: Later<sorted::Sorted>) {
    let parts = sorted.parts();
    *parts.name.change() = 1;
    //~ field `numbers` of struct `SortedParts` is private
    parts.numbers.change().swap(0, 1);
}

fn through_deref(sorted: Later<sorted::Sorted>) {
    //~ no method named `at` found for struct `durum::typed::Later<'_, Sorted>`
    *sorted.at(0).change() = 9;
}

fn main() {
    let _ = (shuffle, through_deref);
}
