//! Code of a stranger's, which a service runs, or who opens the store's directory: whatever it does, its own pool is
//! refused and says why, others open, nothing is quarantined, and somebody who can completes it.

use durum_service::{EngineKind, PoolSpec, Service};

use crate::commands::durum;
use crate::completions::{compiled_text, left, why_not};
use crate::sections::{come, record};
use crate::support::{Served, text};

/// What it does, and what is told of that.
const CODE: [(&str, &str, &[&str], &str); 7] = [
    (
        "faults",
        "int main(void) { *(volatile int *)8 = 1; }",
        &["-static"],
        "it ended by signal 11",
    ),
    (
        "lies",
        "int main(void) { return 0; }",
        &["-static"],
        "the code has ended and has not completed it",
    ),
    (
        "reaches-out",
        REACHES_OUT,
        &["-static"],
        "it ended with code 4",
    ),
    (
        "takes-memory",
        TAKES_MEMORY,
        &["-static"],
        "it ended with code 5",
    ),
    ("babbles", BABBLES, &["-static"], "it ended with code 6"),
    (
        "needs-more",
        NEEDS_MORE,
        &["-static"],
        "for a processor with avx1024,",
    ),
    // Landlock lets nobody read the C library.
    (
        "needs-files",
        "int main(void) { return 0; }",
        &[],
        "its execution: Permission denied",
    ),
];

/// Files, other programs, signals, tracing, processes.
const REACHES_OUT: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
int main(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/run/durum/durum.sock"};
    char *none[] = {NULL};
    if (open("/etc/passwd", O_RDONLY) >= 0 || open("/dev/shm/left-by-code", O_CREAT | O_RDWR, 0600) >= 0)
        return 20;
    if (socket(AF_UNIX, SOCK_STREAM, 0) >= 0 || !connect(3, (void *)&address, sizeof address))
        return 21;
    if (!kill(getpid(), 0) || !ptrace(PTRACE_TRACEME, 0, NULL, NULL))
        return 22;
    if (fork() >= 0 || !execve("/bin/true", none, none))
        return 23;
    return 4;
}
"#;

/// Until it gets none any more.
const TAKES_MEMORY: &str = "
#include <stdlib.h>
#include <string.h>
int main(void) {
    for (size_t all = 0; all < 1ul << 34; all += 1 << 20) {
        char *part = malloc(1 << 20);
        if (!part)
            return 5;
        memset(part, 1, 1 << 20);
    }
    return 24;
}
";

/// What no client sends, until nobody listens.
const BABBLES: &str = "
#include <signal.h>
#include <sys/socket.h>
int main(void) {
    static char words[300000];
    for (int length = 1; length <= 100000; length = length * 3 + 1)
        send(3, words, length, MSG_NOSIGNAL);
    return 6;
}
";

const NEEDS_MORE: &str = r#"
__attribute__((section("durum_features"), used)) static const char features[] = "avx1024";
int main(void) { return 25; }
"#;

#[test]
fn whatever_code_does_its_pool_waits_and_others_open() {
    let mut served =
        Served::start_with(&["--code-limit", "memory=64M", "--code-limit", "processor=1"]);
    let client = come(&served);
    let free = client.create_pool("free", &PoolSpec::new(EngineKind::Hybrid));
    client.close_pool(free.unwrap().uuid).unwrap();
    let loops = "int main(void) { for (;;) ; }";
    let loops = (
        "loops",
        loops,
        &["-static"] as &[&str],
        "it took more than 1s of processor time",
    );
    for (name, source, options, told) in CODE.into_iter().chain([loops]) {
        left(
            &served,
            name,
            &compiled_text(&format!("hostile-{name}"), source, options),
        );
        let why = why_not(&client, name).unwrap();
        assert!(why.contains(told), "{name}: {why}");
    }
    // All that was tried stays as it was, but for others nothing has happened.
    let pools = client.pools().unwrap();
    assert!(pools.iter().all(|pool| pool.quarantine.is_none()));
    let waiting = client.interrupted().unwrap();
    assert_eq!(waiting.len(), CODE.len() + 1);
    assert!(
        waiting
            .iter()
            .all(|left| left.sections == 1 && left.damage.is_none())
    );
    let free = client.open_pool("free").unwrap();
    client.close_pool(free.uuid).unwrap();
    assert!(!std::path::Path::new("/dev/shm/left-by-code").exists());
    let gone = waiting
        .iter()
        .find(|left| left.pools == ["loops"])
        .unwrap()
        .client;
    let taken = client.take_over(gone).unwrap();
    record(&taken.puddles[0], gone, 2, false);
    client.sections_done(gone).unwrap();
    client.close().unwrap();
    served.end();
    // Who opens the directory is the host.
    let store = durum::Store::open(served.store(), durum::StoreOptions::new()).unwrap();
    for (name, _, _, told) in CODE {
        let error = store.open_pool(name, durum::PoolOptions::default());
        let error = error.unwrap_err().to_string();
        assert!(error.contains(told), "{name}: {error}");
    }
    for name in ["free", "loops"] {
        store
            .open_pool(name, durum::PoolOptions::default())
            .unwrap();
    }
    store.close().unwrap();
    // A person is told of each, and not of the first one only.
    let run = durum(&["recover", text(&served.store()), "--complete-sections"]);
    assert_eq!(run.code, 3, "{}", run.err);
    for (name, _, _, told) in CODE {
        assert!(
            run.err.contains(&format!("left in \"{name}\"")),
            "{}",
            run.err
        );
        assert!(run.err.contains(told), "{name}: {}", run.err);
    }
}
