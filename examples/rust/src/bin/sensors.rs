//! A network of sensors (Puddles, EuroSys'24, §5.3): a home node gives each of its nodes a copy of a structure, the
//! nodes change their copies, each in a store of its own, and the home node has all of them come together in one
//! structure, in which nothing was copied field by field: pools are exported and imported as they are in memory, and
//! their pointers made to lead to where things are now.
//!
//!     sensors STORE begin VARIABLES EXPORT        the home node makes the structure, and an export of it
//!     sensors STORE work NODE ROUNDS FROM TO      a node takes it from there, and works: each round changes some
//!                                                 variables in a transaction. Tells each round; exports the result
//!     sensors STORE aggregate RESULT...           the home node takes in the results of all nodes
//!     sensors STORE sum                           the sum of the values of all variables
//!     sensors STORE read                          a line for each variable of each node: `NODE ID VALUE CHANGES`
//!
//! Whoever is killed is started again with the same words, and goes on. A node finds in its store what the last
//! transaction left; a result is there as a whole or not at all. The home node takes copies of the results and has one
//! transaction lead to all of them: until then it begins anew, and the results are where they were.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "the one program that has a store open has one thread, and objects are never freed"
)]

use std::cmp::Ordering;
use std::error::Error;
use std::path::Path;
use std::ptr;

use durum::{ExportOptions, ImportOptions, Pool, PoolOptions, Store, StoreOptions, Tx};

/// What the programs say when something is not as a transaction left it.
pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The pool of a node, and that of the home node before it gives copies away.
pub const STATE: &str = "state";
/// The pool of the home node in which everything comes together.
pub const NETWORK: &str = "network";
/// Variables that a round changes.
pub const CHANGES: u64 = 3;

/// What a node knows: variables in a tree by their ids, and in a list, that which changed last first.
#[repr(C)]
pub struct State {
    node: u64,
    rounds: u64,
    variables: u64,
    tree: *mut Variable,
    newest: *mut Variable,
    oldest: *mut Variable,
    /// That of another node.
    next: *mut State,
}
durum::describe!(State as "sensors state" { node, rounds, variables, tree, newest, oldest, next });

/// One of them.
#[repr(C)]
pub struct Variable {
    id: u64,
    value: u64,
    changes: u64,
    less: *mut Variable,
    greater: *mut Variable,
    newer: *mut Variable,
    older: *mut Variable,
}
durum::describe!(Variable as "sensors variable" { id, value, changes, less, greater, newer, older });

/// All nodes: their states in a list, and their variables in one list, node by node.
#[repr(C)]
pub struct Network {
    nodes: u64,
    variables: u64,
    states: *mut State,
    newest: *mut Variable,
    oldest: *mut Variable,
}
durum::describe!(Network as "sensors network" { nodes, variables, states, newest, oldest });

/// Makes the structure with so many variables, unless it is there, and an export of it.
pub fn begin(store: &Path, options: PoolOptions, variables: u64, to: &Path) -> Result<()> {
    let store = Store::open_or_create(store, StoreOptions::new())?;
    let pool = store.open_or_create_pool(STATE, options)?;
    let state = pool.root::<State>()?;
    if unsafe { (*state).variables } == 0 {
        pool.transaction(|tx| unsafe {
            tx.add(state)?;
            (*state).variables = variables;
            (*state).tree = plant(tx, state, 0..variables)?;
            Ok::<_, durum::Error>(())
        })?;
    }
    drop(pool);
    export(&store, to)
}

/// Makes the variables of these ids, in the order of ids for the list, and gives the root of their tree.
///
/// # Safety
/// The state is announced, and lives.
unsafe fn plant(
    tx: &Tx,
    state: *mut State,
    ids: std::ops::Range<u64>,
) -> durum::Result<*mut Variable> {
    if ids.is_empty() {
        return Ok(ptr::null_mut());
    }
    let id = ids.start + (ids.end - ids.start) / 2;
    unsafe {
        let less = plant(tx, state, ids.start..id)?;
        let variable = tx.alloc::<Variable>()?;
        let newer = (*state).oldest;
        variable.write(Variable {
            id,
            value: 0,
            changes: 0,
            less,
            greater: ptr::null_mut(),
            newer,
            older: ptr::null_mut(),
        });
        (*state).oldest = variable;
        match newer.as_mut() {
            // It is as new as this one.
            Some(newer) => newer.older = variable,
            None => (*state).newest = variable,
        }
        (*variable).greater = plant(tx, state, id + 1..ids.end)?;
        Ok(variable)
    }
}

/// Makes an export of the state, unless it is there.
pub fn export(store: &Store, to: &Path) -> Result<()> {
    if !to.exists() {
        store.export_pool(STATE, to, &ExportOptions::default())?;
    }
    Ok(())
}

/// A node's store, with the state in it that the home node gives.
pub fn join(store: &Path, from: &Path) -> Result<Store> {
    let store = Store::open_or_create(store, StoreOptions::new())?;
    if store.pools()?.is_empty() {
        let options = ImportOptions {
            copies: true,
            ..ImportOptions::default()
        };
        store.import(from, &options)?;
    }
    Ok(store)
}

/// Works until there were so many rounds. Tells the number of each that is durable.
pub fn work(store: &Store, node: u64, rounds: u64, told: impl Fn(u64)) -> Result<()> {
    let pool = store.open_pool(STATE, PoolOptions::new())?;
    let state = pool.root::<State>()?;
    let done = unsafe { (*state).rounds };
    for round in done + 1..=rounds {
        pool.transaction(|tx| unsafe {
            tx.add(state)?;
            (*state).node = node;
            (*state).rounds = round;
            for change in 0..CHANGES {
                let reading = reading(node, round * CHANGES + change);
                let id = reading % (*state).variables;
                let variable = find((*state).tree, id);
                tx.add(variable)?;
                (*variable).value = reading;
                (*variable).changes += 1;
                to_the_front(tx, state, variable)?;
            }
            Ok::<_, durum::Error>(())
        })?;
        told(round);
    }
    Ok(())
}

/// What a node has measured: Knuth's multiplicative hash.
fn reading(node: u64, number: u64) -> u64 {
    (node << 32 | number).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16
}

/// # Safety
/// The tree has a variable of this id.
unsafe fn find(mut at: *mut Variable, id: u64) -> *mut Variable {
    unsafe {
        loop {
            at = match id.cmp(&(*at).id) {
                Ordering::Equal => return at,
                Ordering::Less => (*at).less,
                Ordering::Greater => (*at).greater,
            };
        }
    }
}

/// # Safety
/// State and variable are announced, and the variable is one of the state's.
unsafe fn to_the_front(tx: &Tx, state: *mut State, variable: *mut Variable) -> durum::Result<()> {
    unsafe {
        let (newer, older) = ((*variable).newer, (*variable).older);
        if newer.is_null() {
            return Ok(());
        }
        tx.add(newer)?;
        (*newer).older = older;
        match older.is_null() {
            true => (*state).oldest = newer,
            false => {
                tx.add(older)?;
                (*older).newer = newer;
            }
        }
        let newest = (*state).newest;
        tx.add(newest)?;
        (*newest).newer = variable;
        (*variable).newer = ptr::null_mut();
        (*variable).older = newest;
        (*state).newest = variable;
        Ok(())
    }
}

/// Takes in the results of all nodes, unless that was done.
pub fn aggregate(store: &Path, results: &[&Path]) -> Result<()> {
    let store = Store::open_or_create(store, StoreOptions::new())?;
    if store.pools()?.iter().any(|pool| pool.name == NETWORK) {
        let pool = store.open_pool(NETWORK, PoolOptions::new())?;
        if unsafe { (*pool.root::<Network>()?).nodes } > 0 {
            return Ok(());
        }
        // Results have come, and nothing leads to them.
        drop(pool);
        store.remove_pool(NETWORK)?;
    }
    drop(store.create_pool(NETWORK, PoolOptions::new())?);
    let options = ImportOptions {
        copies: true,
        ..ImportOptions::default()
    };
    let states = import(&store, results, &options)?;
    let pool = store.open_pool(NETWORK, PoolOptions::new())?;
    link(&pool, &states)
}

/// Has the puddles of the results join the network's pool. Where each node's state is: nothing leads there yet.
pub fn import(
    store: &Store,
    results: &[&Path],
    options: &ImportOptions,
) -> Result<Vec<*mut State>> {
    let options = ImportOptions {
        into: Some(NETWORK.to_owned()),
        ..options.clone()
    };
    let imported = results.iter().map(|result| {
        let report = store.import(result, &options)?;
        let root = report.root.ok_or("a result without a state")?;
        Ok(root as *mut State)
    });
    imported.collect()
}

/// Has the network lead to all states, and joins their lists of variables, in one transaction.
pub fn link(pool: &Pool, states: &[*mut State]) -> Result<()> {
    let network = pool.root::<Network>()?;
    pool.transaction(|tx| unsafe {
        tx.add(network)?;
        for &state in states.iter().rev() {
            tx.add(state)?;
            (*state).next = (*network).states;
            (*network).states = state;
            (*network).nodes += 1;
            (*network).variables += (*state).variables;
            // Its variables come before those that are there.
            let (last, first) = ((*state).oldest, (*network).newest);
            match first.is_null() {
                true => (*network).oldest = last,
                false => {
                    tx.add(last)?;
                    tx.add(first)?;
                    (*last).older = first;
                    (*first).newer = last;
                }
            }
            (*network).newest = (*state).newest;
        }
        Ok::<_, durum::Error>(())
    })?;
    Ok(())
}

/// The sum of the values of all variables.
pub fn sum(pool: &Pool) -> Result<u64> {
    let mut at = unsafe { (*pool.root::<Network>()?).newest };
    let mut sum = 0_u64;
    while let Some(variable) = unsafe { at.as_ref() } {
        sum = sum.wrapping_add(variable.value);
        at = variable.older;
    }
    Ok(sum)
}

/// Walks the one list of all variables and shows each: node, id, value, changes. Fails where a list or tree is not what
/// a network is made of.
pub fn read(pool: &Pool, mut show: impl FnMut(u64, u64, u64, u64)) -> Result<()> {
    let network = unsafe { &*pool.root::<Network>()? };
    let (mut nodes, mut variables) = (0, 0);
    let (mut newer, mut at): (*mut Variable, _) = (ptr::null_mut(), network.newest);
    let mut next = network.states;
    while let Some(state) = unsafe { next.as_ref() } {
        nodes += 1;
        for _ in 0..state.variables {
            let variable = unsafe { at.as_ref() }.ok_or("the list is too short")?;
            if variable.newer != newer || unsafe { find(state.tree, variable.id) } != at {
                return Err(
                    format!("node {}: {} is not in its place", state.node, variable.id).into(),
                );
            }
            show(state.node, variable.id, variable.value, variable.changes);
            variables += 1;
            (newer, at) = (at, variable.older);
        }
        next = state.next;
    }
    let is_whole = at.is_null() && newer == network.oldest;
    match is_whole && (nodes, variables) == (network.nodes, network.variables) {
        true => Ok(()),
        false => Err(format!("{nodes} nodes with {variables} variables do not add up").into()),
    }
}

/// The network, to be read.
fn network(store: &str) -> Result<Pool> {
    let store = Store::open(store, StoreOptions::new())?;
    Ok(store.open_pool(NETWORK, PoolOptions::new().read_only(true))?)
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [store, "begin", variables, to] => {
            begin(store.as_ref(), PoolOptions::new(), variables.parse()?, to.as_ref())?;
        }
        [store, "work", node, rounds, from, to] => {
            let store = join(store.as_ref(), from.as_ref())?;
            work(&store, node.parse()?, rounds.parse()?, |round| println!("{round}"))?;
            export(&store, to.as_ref())?;
        }
        [store, "aggregate", ref results @ ..] => {
            let results: Vec<&Path> = results.iter().map(Path::new).collect();
            aggregate(store.as_ref(), &results)?;
        }
        [store, "sum"] => println!("{}", sum(&network(store)?)?),
        [store, "read"] => {
            read(&network(store)?, |node, id, value, changes| {
                println!("{node} {id} {value} {changes}");
            })?;
        }
        _ => return Err("sensors STORE begin VARIABLES EXPORT | work NODE ROUNDS FROM TO | aggregate RESULT... | sum | read".into()),
    }
    Ok(())
}
