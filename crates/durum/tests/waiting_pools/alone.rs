//! Each damage of a file makes its pool wait, and no other.

use std::fs;
use std::path::Path;

use durum::{Domain, Engine};

use crate::{Case, End, copy, each_file, waits_alone};

/// What happens to a file.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Missing,
    CutTo(fn(u64) -> u64),
    ZeroedHeader,
    SwappedWith,
}

const DAMAGES: [Damage; 7] = [
    Damage::Missing,
    Damage::CutTo(|_| 0),
    Damage::CutTo(|_| 4096),
    Damage::CutTo(|length| length / 2),
    Damage::CutTo(|length| length - 1),
    Damage::ZeroedHeader,
    Damage::SwappedWith,
];

fn damage(file: &Path, other: &Path, how: Damage) {
    match how {
        Damage::Missing => fs::remove_file(file).unwrap(),
        Damage::CutTo(length) => {
            let open = fs::OpenOptions::new().write(true).open(file).unwrap();
            open.set_len(length(open.metadata().unwrap().len()))
                .unwrap();
        }
        Damage::ZeroedHeader => {
            let open = fs::OpenOptions::new().write(true).open(file).unwrap();
            std::os::unix::fs::FileExt::write_all_at(&open, &[0; 1024], 0).unwrap();
        }
        Damage::SwappedWith => {
            fs::copy(other, file).unwrap();
        }
    }
}

fn each_damage(engine: Engine, is_chosen: impl Fn(Case, usize, Damage) -> bool) {
    each_file(
        engine,
        |_| true,
        |case, left, file, other| {
            let whole = left.dir.path().join("whole");
            let number = left.files_of("b").iter().position(|found| found == file);
            for how in DAMAGES {
                if !is_chosen(case, number.unwrap(), how) {
                    continue;
                }
                let kept = fs::read(file).unwrap();
                waits_alone(
                    case,
                    left,
                    file,
                    || damage(file, other, how),
                    || fs::write(file, &kept).unwrap(),
                );
                fs::remove_dir_all(left.store()).unwrap();
                copy(&whole, &left.store());
            }
        },
    );
}

/// Each damage, each end, each domain and each file, though not with each other.
fn some(case: Case, file: usize, how: Damage) -> bool {
    match (case.end, case.domain) {
        (End::Both, Domain::Dram) => file == 0,
        _ => matches!(how, Damage::Missing),
    }
}

/// Each end and each domain: the service does the same for the files of every engine.
fn few(_: Case, file: usize, how: Damage) -> bool {
    file == 0 && matches!(how, Damage::Missing)
}

#[test]
fn pools_wait_alone_on_shadow() {
    each_damage(Engine::Shadow, some);
}

#[test]
fn pools_wait_alone_on_hybrid() {
    each_damage(Engine::Hybrid, few);
}

#[test]
fn pools_wait_alone_on_twin() {
    each_damage(Engine::Twin, few);
}

#[test]
#[ignore = "some minutes: ci/campaigns.sh runs it"]
fn pools_wait_alone_whatever_happens_to_a_file() {
    for engine in [Engine::Shadow, Engine::Hybrid, Engine::Twin] {
        each_damage(engine, |_, _, _| true);
    }
}
