//! What is asked of a program that observes itself, and told.

use durum_protocol::message;
use durum_protocol::watching::{self, Number, Numbers, OpenPool, Question, Told, Why};
use proptest::prelude::*;

use super::{EngineKind, UUID, line};

/// All messages, with their bytes.
pub(super) fn messages() -> Vec<String> {
    vec![
        line(&Question::Numbers),
        line(&Told::Unknown),
        line(&Told::Numbers(numbers())),
        line(&Question::Show {
            pools: vec!["words".to_owned()],
        }),
        line(&Told::Shown),
        line(&Told::NotShown {
            problem: "no".to_owned(),
            why: Why::NeedsMore,
        }),
    ]
}

fn numbers() -> Numbers {
    let number = |name: &str, grows, is_by_pool, values| Number {
        name: name.to_owned(),
        help: "What it is".to_owned(),
        grows,
        values,
        is_by_pool,
    };
    let pool = |name: &str, is_read_only| OpenPool {
        name: name.to_owned(),
        engine: EngineKind::Twin,
        is_read_only,
    };
    Numbers {
        store: UUID,
        pid: 17,
        open_us: 3_000_000,
        pools: vec![pool("a", false), pool("b", true)],
        all: vec![
            number("fences", true, false, vec![u64::MAX]),
            number("pool_bytes", false, true, vec![1, 2]),
        ],
    }
}

/// Who shows them counts on that.
#[test]
fn numbers_without_a_value_or_a_name_are_refused() {
    let told = |numbers: Numbers| watching::told(&message::encode(&Told::Numbers(numbers)));
    told(numbers()).unwrap();
    let changes: [fn(&mut Numbers); 9] = [
        |numbers| numbers.pools.truncate(1),
        |numbers| numbers.all[0].values.push(1),
        |numbers| numbers.all[0].values.clear(),
        |numbers| numbers.all[1].is_by_pool = false,
        |numbers| numbers.all[1].name.clear(),
        |numbers| numbers.all[1].name = "a\n# TYPE".into(),
        |numbers| numbers.all[1].help = "of lines\nfences 7".into(),
        |numbers| numbers.all[1].help = "long ".repeat(60),
        |numbers| numbers.pools[1].name = "\u{1b}[2J".into(),
    ];
    for change in changes {
        let mut changed = numbers();
        change(&mut changed);
        told(changed.clone()).expect_err(&format!("{changed:?}"));
    }
}

proptest! {
    #[test]
    fn any_bytes_are_a_question_or_told_or_an_error(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let _ = watching::question(&bytes);
        let _ = watching::told(&bytes);
    }

    #[test]
    fn what_is_told_with_bytes_changed_is_whole_or_an_error(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = message::encode(&Told::Numbers(numbers()));
        for (at, to) in changes {
            let at = at.index(bytes.len());
            bytes[at] = to;
        }
        if let Ok(Told::Numbers(numbers)) = watching::told(&bytes) {
            for number in &numbers.all {
                let wanted = if number.is_by_pool { numbers.pools.len() } else { 1 };
                prop_assert_eq!(number.values.len(), wanted);
            }
        }
    }
}
