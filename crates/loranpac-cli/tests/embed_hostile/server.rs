//! Embedding servers that answer nonsense.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use crate::world::{World, message};

/// How a server answers a request to embed some texts; false closes the connection at once.
type Answer = fn(&mut TcpStream, usize) -> std::io::Result<()>;

/// Reads a request. Gives the number of its texts.
fn request(stream: &TcpStream) -> Option<usize> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body: serde_json::Value = serde_json::from_slice(&body).ok()?;
    Some(body["input"].as_array()?.len())
}

/// A server on this machine: its address.
fn serve(answer: Answer) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1/embeddings?model=small", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                let mut stream = stream;
                // A client that has seen enough closes the connection.
                let _ = request(&stream).map(|count| answer(&mut stream, count));
            });
        }
    });
    address
}

fn send(stream: &mut TcpStream, head: &str, body: &str) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 {head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

/// An embedding for each text, as JSON.
fn embeddings(count: usize, embedding: &str) -> String {
    let items: Vec<String> = (0..count).map(|at| format!("{{\"index\": {at}, \"embedding\": {embedding}}}")).collect();
    format!("{{\"data\": [{}]}}", items.join(", "))
}

fn world(rows: usize) -> World {
    let world = World::new();
    let rows: String = (0..rows).map(|row| format!("text {row},{}\n", row % 2)).collect();
    world.write("t.csv", format!("text,label\n{rows}"));
    world
}

#[track_caller]
fn refused(answer: Answer, words: &[&str]) {
    let address = serve(answer);
    let host = address.split('?').next().unwrap();
    world(70).refused(&address, "t.csv", &[&[host], words].concat());
}

#[test]
fn answers_that_cannot_be_used_are_refused() {
    refused(|s, _| send(s, "200 OK", "hello"), &["cannot be used", "expected value"]);
    refused(|s, _| send(s, "200 OK", "{\"data\": {}}"), &["cannot be used"]);
    refused(|s, n| send(s, "200 OK", &embeddings(n + 1, "[1, 2]")), &["2 embeddings for 1 texts"]);
    refused(|s, n| send(s, "200 OK", &embeddings(n, "[1, NaN]")), &["cannot be used"]);
    refused(|s, n| send(s, "200 OK", &embeddings(n, "[1, 1e999]")), &["cannot be used"]);
    refused(|s, n| send(s, "200 OK", &embeddings(n, "[1, null]")), &["cannot be used"]);
    refused(|s, n| send(s, "200 OK", &embeddings(n, "[\"1\", \"2\"]")), &["cannot be used", "string"]);
    refused(|s, n| send(s, "200 OK", &embeddings(n, "\"AACAPwAAAEA=\"")), &["cannot be used", "string"]);
    refused(|s, _| send(s, "200 OK", &"[".repeat(100_000)), &["cannot be used"]);
    refused(|s, _| send(s, "200 OK", "\u{1b}[2J\u{202e}"), &["cannot be used"]);
    refused(|s, _| send(s, "401 Unauthorized", "no \u{1b}[31mkey"), &["status 401", "no "]);
    refused(|s, _| send(s, "400 Bad Request", &"long ".repeat(5_000)), &["status 400", "long"]);
}

#[test]
fn embeddings_of_other_sizes_from_batch_to_batch_are_refused() {
    let one = |s: &mut TcpStream, n: usize| {
        let body = if n == 1 { embeddings(1, "[1, 2]") } else { embeddings(n, "[1, 2, 3]") };
        send(s, "200 OK", &body)
    };
    refused(one, &["embedding 0 has 3 numbers, others have 2"]);
    refused(
        |s, n| send(s, "200 OK", &if n == 8 { embeddings(7, "[1, 2]") } else { embeddings(n, "[1, 2]") }),
        &["7 embeddings for 8 texts"],
    );
}

#[test]
fn a_redirection_is_not_followed() {
    refused(
        |s, _| send(s, "307 Temporary Redirect\r\nlocation: http://127.0.0.1:9/elsewhere", ""),
        &["status 307", "refers to http://127.0.0.1:9/elsewhere"],
    );
}

#[test]
fn an_endless_answer_stops_at_its_limit() {
    let endless: Answer = |s, _| {
        write!(s, "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{{\"data\": [")?;
        loop {
            s.write_all(&[b' '; 1 << 16])?;
        }
    };
    refused(endless, &["cannot be used", "longer than 1 MiB"]);
}

#[test]
fn a_busy_server_is_asked_again_after_the_time_that_it_names() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static REQUESTS: AtomicUsize = AtomicUsize::new(0);
    let address = serve(|s, n| match REQUESTS.fetch_add(1, Ordering::Relaxed) {
        0 => send(s, "429 Too Many Requests\r\nretry-after: 1", "slow down"),
        _ => send(s, "200 OK", &embeddings(n, "[1, 2]")),
    });
    world(3).accepted(&address, "t.csv", &[]);
    assert_eq!(REQUESTS.load(Ordering::Relaxed), 3);
}

#[test]
fn a_server_that_fails_every_time_is_an_error_at_last() {
    refused(|s, _| send(s, "500 Internal Server Error", "it broke"), &["status 500", "it broke"]);
}

/// Embeddings of length 1 in a direction that grows with `turn`, in degrees.
fn turned(count: usize, turn: f32) -> String {
    let (y, x) = turn.to_radians().sin_cos();
    embeddings(count, &format!("[{x}, {y}]"))
}

#[test]
fn a_server_whose_model_changes_during_a_command_changes_nothing() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static REQUESTS: AtomicUsize = AtomicUsize::new(0);
    // The first batch of `learn` has the old model's answers, the second those of another.
    let address = serve(|s, n| {
        let old = REQUESTS.fetch_add(1, Ordering::Relaxed) < 3;
        send(s, "200 OK", &turned(n, if old { 10.0 } else { 50.0 }))
    });
    let world = world(70);
    assert!(world.call(&["init", "m.lrp", "--encoder", &address, "--width", "20"]).status.success());
    let output = world.call(&["learn", "m.lrp", "t.csv", "--encoder", &address, "--cache", "cache"]);
    assert!(!output.status.success() && message(&output).contains("model has changed"), "{}", message(&output));
    let learned = world.call(&["inspect", "m.lrp", "--json"]).stdout;
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&learned).unwrap()["samples"], 0);
    // What is in the cache is the old model's.
    let output = world.call(&["learn", "m.lrp", "t.csv", "--encoder", &address, "--cache", "cache"]);
    assert!(message(&output).contains("not those in the cache"), "{}", message(&output));
}
