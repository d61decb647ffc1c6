//! The page of `durum explore`, as it is served, and a store that would like to be a page itself.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use durum::{PoolOptions, Store, StoreOptions};
use serde_json::Value;

/// A page that is served, until this goes.
pub struct Page {
    pub child: Child,
    pub port: u16,
    /// The path with the token, `/` at both ends.
    pub path: String,
}

impl Page {
    pub fn of(arguments: &[&str]) -> Page {
        Page::from(Command::new(env!("CARGO_BIN_EXE_durum")), arguments)
    }

    /// The same by a command without arguments.
    pub fn from(mut command: Command, arguments: &[&str]) -> Page {
        let mut child = command
            .args(["explore", "--json"])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut said = String::new();
        while !said.trim_end().ends_with('}') {
            assert!(out.read_line(&mut said).unwrap() > 0, "{said}");
        }
        let said: Value = serde_json::from_str(&said).unwrap();
        let port = said["port"].as_u64().unwrap() as u16;
        let url = said["url"].as_str().unwrap();
        let path = url.strip_prefix(&format!("http://127.0.0.1:{port}"));
        Page {
            child,
            port,
            path: path.unwrap().to_owned(),
        }
    }

    /// Presses Ctrl-C. Gives the exit code.
    pub fn interrupt(&mut self) -> i32 {
        // SAFETY: the process is this one's child, and was not waited for.
        unsafe { libc::kill(self.child.id() as i32, libc::SIGINT) };
        self.child
            .wait()
            .unwrap()
            .code()
            .expect("it ends by itself")
    }

    /// Sends lines, and gives the head and the body of what is answered.
    pub fn send(&self, lines: &str) -> (String, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.write_all(lines.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }

    /// Asks as a browser does.
    pub fn ask(&self, method: &str, path: &str, more: &str) -> (String, String) {
        let host = format!("Host: 127.0.0.1:{}\r\n", self.port);
        self.send(&format!("{method} {path} HTTP/1.1\r\n{host}{more}\r\n"))
    }

    pub fn get(&self, what: &str) -> Value {
        let (head, body) = self.ask("GET", &format!("{}{what}", self.path), "");
        assert!(
            head.starts_with("HTTP/1.1 200 OK\r\n"),
            "{what}: {head} {body}"
        );
        serde_json::from_str(&body).unwrap()
    }

    /// What a check finds, once it has ended; with the leaks of a pool, if there is one named.
    pub fn check(&self, words: &str) -> Value {
        let mut told = self.get(&format!("check?{words}"));
        while told["ended"] == false {
            let run = told["run"].as_str().unwrap();
            told = self.get(&format!("check?{words}&run={run}"));
        }
        told
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[repr(C)]
pub struct Hostile {
    pub text: [u8; 64],
    pub next: *mut Hostile,
}
durum::describe!(Hostile as "</script><img src=x onerror=alert(1)>" { text, next });

/// A closed store whose pool, types and texts are markup: a root, an object that it leads to, and 19 that nothing leads
/// to.
pub fn make_hostile(path: &Path) {
    let store = Store::create(path, StoreOptions::new()).unwrap();
    let name = "<script>alert('pool')\u{202e}";
    let pool = store.create_pool(name, PoolOptions::new()).unwrap();
    let said = "</script><script>alert(1)</script><!-- \u{202e}\n&lt;";
    let root = pool.root::<Hostile>().unwrap();
    pool.transaction(|tx| {
        // SAFETY: the root is there, and this thread alone.
        unsafe {
            tx.add(root)?;
            (&mut (*root).text)[..said.len()].copy_from_slice(said.as_bytes());
        }
        let next = tx.alloc::<Hostile>()?;
        // SAFETY: as above.
        unsafe { (*root).next = next };
        for _ in 0..19 {
            tx.alloc::<Hostile>()?;
        }
        Ok::<_, durum::Error>(())
    })
    .unwrap();
    drop((pool, store));
}

/// The answers in a file, with the objects of each pool by their addresses, and what stands around them.
pub fn answers_in(html: &str) -> (Value, String) {
    let mut parts = html.split("<script type=\"application/json\" id=\"");
    let mut around = parts.next().unwrap().to_owned();
    let mut answers = Value::Null;
    for part in parts {
        let (name, part) = part.split_once("\">").unwrap();
        let (data, rest) = part.split_once("</script>").unwrap();
        around += rest;
        let data: Value = serde_json::from_str(data).unwrap();
        if name == "answers" {
            answers = data;
            continue;
        }
        let (pool, at) = name
            .strip_prefix("objects-")
            .unwrap()
            .rsplit_once('-')
            .unwrap();
        let pool = &mut answers["pools"][pool];
        assert_eq!(
            pool["firsts"][at.parse::<usize>().unwrap()],
            data[0]["address"]
        );
        for object in data.as_array().unwrap() {
            pool["objects"][object["address"].as_str().unwrap()] = object.clone();
        }
    }
    (answers, around)
}
