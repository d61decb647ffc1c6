//! C and Rust share a pool: they declare the same names, get the same types, and read what the other wrote; and a
//! program that knows neither reads it through the descriptors in the store.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr;

use client::{Described, Error, PoolOptions, Store, StoreOptions};
use durum_format::extent;
use durum_format::types::{Descriptor, Value};
use durum_service::ReadOnlyStore;

#[derive(Clone, Copy)]
#[repr(C)]
struct Money {
    units: i64,
    cents: u32,
}
client::describe!(Money as "money" { units, cents });

#[repr(C)]
struct Account {
    number: u64,
    balance: Money,
    next: *mut Account,
    flags: [u16; 3],
    open: bool,
    rate: f64,
    note: *mut u8,
}
client::describe!(Account as "account" { number, balance, next, flags, open, rate, note });

#[repr(C)]
struct Bank {
    first: *mut Account,
    by_digit: [*mut Account; 4],
    count: i32,
    fee: f32,
    reserves: [Money; 2],
}
client::describe!(Bank as "bank" { first, by_digit, count, fee, reserves });

const ACCOUNTS: i32 = 10;

/// The program in C, linked with the static library.
fn program(directory: &Path) -> PathBuf {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    // CARGO_TARGET_TMPDIR lies in the target directory.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    // Chosen as ci/lib.sh builds for tests: with this crate alone others would have other features, and be compiled
    // again.
    let built = Command::new(cargo)
        .args(["build", "--quiet", "--profile", "test", "--workspace"])
        .args(["--exclude", "durum-derive", "--all-targets"])
        .arg("--manifest-path")
        .arg(top.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(target)
        .status()
        .unwrap();
    assert!(built.success(), "libdurum.a cannot be built");
    let program = directory.join("interchange");
    let compiled = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(top.join("include"))
        .arg(top.join("tests/programs/interchange.c"))
        .arg("-o")
        .arg(&program)
        .arg(target.join("debug/libdurum.a"))
        .args(["-lpthread", "-ldl", "-lm"])
        .status()
        .unwrap();
    assert!(compiled.success(), "the program in C cannot be compiled");
    program
}

fn run(program: &Path, mode: &str, store: &Path) -> String {
    let output = Command::new(program).arg(mode).arg(store).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{mode}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Checks what the program in C made.
fn verify_in_rust(store: &Path) {
    let store = Store::open(store, StoreOptions::new()).unwrap();
    let pool = store.open_pool("bank", PoolOptions::new()).unwrap();
    let bank = pool.root::<Bank>().unwrap();
    // SAFETY: the root and what it reaches are live and unshared.
    unsafe {
        assert_eq!((*bank).count, ACCOUNTS);
        assert_eq!((*bank).fee, 0.5);
        assert_eq!((*bank).reserves[1].units, 77);
        assert_eq!((*(*bank).by_digit[1]).number, 9);
        let mut account = (*bank).first;
        for i in (0..ACCOUNTS).rev() {
            let at = &*account;
            assert_eq!(at.number, i as u64);
            assert_eq!(at.balance.units, -100 * i64::from(i));
            assert_eq!(at.balance.cents, i as u32);
            assert_eq!(at.flags[i as usize % 3], 0xfff0);
            assert_eq!(at.open, i % 2 == 0);
            assert_eq!(at.rate, f64::from(i) / 4.0);
            assert!(at.note.is_null());
            account = at.next;
        }
        assert!(account.is_null());
    }
}

/// Makes what the program in C verifies.
fn write_in_rust(store: &Path) {
    let store = Store::create(store, StoreOptions::new()).unwrap();
    let pool = store.create_pool("bank", PoolOptions::new()).unwrap();
    let bank = pool.root::<Bank>().unwrap();
    pool.transaction(|tx| {
        // SAFETY: the root is live and unshared, and new accounts are written before anything reads them.
        unsafe {
            tx.add(bank)?;
            for i in 0..ACCOUNTS {
                let account = tx.alloc_zeroed::<Account>()?;
                let mut flags = [0; 3];
                flags[i as usize % 3] = 0xfff0;
                account.write(Account {
                    number: i as u64,
                    balance: Money {
                        units: -100 * i64::from(i),
                        cents: i as u32,
                    },
                    next: (*bank).first,
                    flags,
                    open: i % 2 == 0,
                    rate: f64::from(i) / 4.0,
                    note: ptr::null_mut(),
                });
                (*bank).first = account;
                (*bank).by_digit[i as usize % 4] = account;
            }
            (*bank).count = ACCOUNTS;
            (*bank).fee = 0.5;
            (*bank).reserves[1].units = 77;
        }
        Ok::<_, Error>(())
    })
    .unwrap();
}

/// The objects of a store as its own descriptors tell them: names of types and values.
fn objects(store: &Path) -> Vec<(String, Value)> {
    let store = ReadOnlyStore::open(store).unwrap();
    let mut found = Vec::new();
    for summary in store.puddles() {
        if summary.kind != durum_service::PuddleKind::Data {
            continue;
        }
        let puddle = store.puddle(summary.uuid).unwrap();
        for object in extent::objects(&puddle, puddle.header()) {
            let object = object.unwrap();
            let (_, text) = store
                .types()
                .find(|(id, _)| *id == object.type_id)
                .expect("each object's type is registered");
            let descriptor = Descriptor::parse(text).unwrap();
            let mut bytes = vec![0; object.size as usize];
            extent::HeapBytes::read(&puddle, object.offset, &mut bytes).unwrap();
            let name = descriptor.name().unwrap().to_owned();
            found.push((name, descriptor.value(&bytes, 8)));
        }
    }
    found
}

fn field<'a>(value: &'a Value, wanted: &str) -> &'a Value {
    let Value::Struct { fields, .. } = value else {
        panic!("not a struct: {value:?}");
    };
    let found = fields.iter().find(|(name, _)| name == wanted);
    &found.expect("no such field").1
}

/// Checks the accounts without any declaration of them.
fn verify_through_descriptors(store: &Path) {
    let objects = objects(store);
    let named = |name: &str| {
        objects
            .iter()
            .filter(|(found, _)| found == name)
            .map(|(_, value)| value)
            .collect::<Vec<_>>()
    };
    let banks = named("bank");
    assert_eq!(banks.len(), 1);
    assert_eq!(field(banks[0], "count"), &Value::Signed(10));
    assert_eq!(field(banks[0], "fee"), &Value::Float(0.5));
    let mut accounts = named("account");
    assert_eq!(accounts.len(), ACCOUNTS as usize);
    let number = |value: &Value| match field(value, "number") {
        Value::Unsigned(number) => *number,
        other => panic!("{other:?}"),
    };
    accounts.sort_by_key(|account| number(account));
    for (i, account) in accounts.iter().enumerate() {
        assert_eq!(number(account), i as u64);
        assert_eq!(field(account, "open"), &Value::Bool(i % 2 == 0));
        let balance = field(account, "balance");
        assert_eq!(field(balance, "units"), &Value::Signed(-100 * i as i64));
        assert!(matches!(field(account, "next"), Value::Pointer { .. }));
    }
}

#[test]
fn c_and_rust_read_each_others_pools() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let program = program(directory.path());

    let ids = Command::new(&program).arg("ids").output().unwrap().stdout;
    let ids: Vec<u64> = String::from_utf8(ids)
        .unwrap()
        .lines()
        .map(|line| line.parse().unwrap())
        .collect();
    assert_eq!(
        ids,
        [
            Money::description().id(),
            Account::description().id(),
            Bank::description().id()
        ],
        "the same names and layouts are the same types"
    );

    let by_c = directory.path().join("by-c");
    run(&program, "write", &by_c);
    verify_through_descriptors(&by_c);
    verify_in_rust(&by_c);

    let by_rust = directory.path().join("by-rust");
    write_in_rust(&by_rust);
    verify_through_descriptors(&by_rust);
    run(&program, "verify", &by_rust);
}
