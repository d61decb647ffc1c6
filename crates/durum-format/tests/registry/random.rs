//! Random changes: what is read is what was written, whatever was folded or lost.

use durum_format::Fault;
use durum_format::registry::{self, Change, encode_changes, encode_changes_within, parse, salvage};
use proptest::prelude::*;

use crate::common::uuid;
use crate::{after, change, file, store};

proptest! {
    /// A record is made where it has room, and not where one byte is missing.
    #[test]
    fn a_record_is_made_where_it_has_room(changes in prop::collection::vec(change(), 0..9)) {
        let record = encode_changes(store().uuid, 7, &changes);
        let within = |max| encode_changes_within(store().uuid, 7, &changes, max);
        prop_assert_eq!(within(record.len()), Some(record.clone()));
        for less in [record.len() - 1, record.len() / 2, 0] {
            prop_assert_eq!(within(less), None);
        }
    }

    /// Against a model: the state that the changes give, folded anywhere, cut anywhere, damaged anywhere.
    #[test]
    fn any_history_reads_back(
        steps in prop::collection::vec(prop::collection::vec(change(), 0..4), 1..12),
        folded in 0_usize..12,
        is_importing: bool,
        lost in 0_usize..1 << 20,
        length in 1_usize..600,
    ) {
        let mut steps = steps;
        let mut folded = folded % (steps.len() + 1);
        // Only a file whose snapshot speaks of imports gets records that do.
        if is_importing {
            steps.insert(0, vec![Change::Coming(uuid(0x77))]);
            folded += 1;
        } else {
            for step in &mut steps {
                step.retain(|change| !matches!(change, Change::Coming(_)));
            }
        }
        let (bytes, ends) = file(&steps, folded);
        let model = after(&steps, steps.len());
        prop_assert_eq!(&parse(&bytes).unwrap().state, &model);
        let used = ends[ends.len() - 1];
        let start = lost % used;
        let mut damaged = bytes.clone();
        damaged[start..(start + length).min(used)].fill(0);
        if damaged != bytes {
            match parse(&damaged) {
                // All from here on is gone: as if it had never been.
                Ok(parsed) => {
                    prop_assert!(ends.len() > 1 && start + length > ends[ends.len() - 2]);
                    let kept = parsed.state.sequence as usize;
                    prop_assert!(kept < steps.len());
                    prop_assert_eq!(parsed.state, after(&steps, kept));
                }
                Err(error) => prop_assert_eq!(error.fault() == Fault::OtherVersion, false),
            }
            prop_assert_eq!(salvage(None, &[&damaged, &bytes]), Some(model));
        }
        prop_assert!(registry::parse(&bytes[..used.min(start)]).is_err());
    }
}
