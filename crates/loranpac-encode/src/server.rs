//! An embedding server that speaks `/v1/embeddings`, the interface that OpenAI introduced and most servers have.
//!
//! The encoder is an address with the model's name as a query: `http://localhost:8080/v1/embeddings?model=NAME`. A key
//! is taken from the environment variable `LORANPAC_API_KEY`, and is sent as a bearer token.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use ureq::Agent;
use ureq::http::Response;

use crate::encoder::{Batch, Encoder, check_layers, same_answers};
use crate::error::Error;
use crate::modality::Modality;
use crate::problem::ServerProblem;

/// The environment variable with the key.
pub const KEY: &str = "LORANPAC_API_KEY";
/// The text whose features are asked for first, and again in every request: they show whether the weights have changed.
const PROBE: &str = "loranpac";
/// Texts per request, besides [`PROBE`].
const BATCH: usize = 63;
/// Requests for one batch before it fails.
const ATTEMPTS: u32 = 5;
/// Bytes that an answer may have for each text, and the most features that are believed of the first answer.
const BYTES: u64 = 1 << 20;

/// A client of an embedding server.
pub struct Server {
    agent: Agent,
    address: String,
    model: Option<String>,
    key: Option<String>,
    dim: usize,
    /// Features of [`PROBE`].
    probe: Vec<f32>,
    /// The time that a request may take.
    limit: Duration,
    /// Pause after the first failed attempt; it doubles after each.
    pause: Duration,
}

/// The part of an answer that is read.
#[derive(Deserialize)]
struct Answer {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    index: usize,
    embedding: Vec<f32>,
}

impl Server {
    /// Whether a text is the address of a server.
    pub fn is_address(text: &str) -> bool {
        text.starts_with("http://") || text.starts_with("https://")
    }

    /// Connects to a server, and asks for one embedding to find the number of features. A request fails after `limit`.
    ///
    /// # Errors
    /// If the server does not answer, or its answer cannot be used.
    pub fn connect(address: &str, limit: Duration) -> Result<Server, Error> {
        Server::with_pause(address, limit, Duration::from_millis(500))
    }

    fn with_pause(address: &str, limit: Duration, pause: Duration) -> Result<Server, Error> {
        let (address, model) = match address.split_once("?model=") {
            Some((address, model)) => (address, Some(model.to_owned())),
            None => (address, None),
        };
        // An address is recorded in models and files of features: it must not hold a password or a key.
        let host = address.split("://").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default();
        if host.contains('@') || address.contains('?') || model.as_ref().is_some_and(|model| model.contains('&')) {
            let place = address.split('@').next_back().unwrap_or_default().split('?').next().unwrap_or_default();
            return Err(Error::Server { address: place.to_owned(), problem: ServerProblem::Credentials });
        }
        // A redirection could send texts to another server than the one that was named.
        let config = Agent::config_builder()
            .timeout_global(Some(limit))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .build();
        let key = std::env::var(KEY).ok().filter(|key| !key.is_empty());
        let agent = Agent::new_with_config(config);
        let (address, probe) = (address.to_owned(), Vec::new());
        let mut server = Server { agent, address, model, key, dim: 0, probe, limit, pause };
        server.probe = server.request(&[PROBE])?;
        server.dim = server.probe.len();
        Ok(server)
    }

    /// Features of texts. Tries again when the server is busy or fails for a time.
    fn request(&self, texts: &[&str]) -> Result<Vec<f32>, Error> {
        let (mut attempt, mut pause) = (1, self.pause);
        loop {
            match self.attempt(texts) {
                Ok(features) => return Ok(features),
                Err((_, Some(wait))) if attempt < ATTEMPTS => {
                    std::thread::sleep(wait.max(pause).min(Duration::from_secs(60)));
                }
                Err((problem, _)) => return Err(self.refuse(problem)),
            }
            attempt += 1;
            pause *= 2;
        }
    }

    /// One request. Fails with the problem and, if another attempt may help, the time to wait that the server asks for.
    fn attempt(&self, texts: &[&str]) -> Result<Vec<f32>, (ServerProblem, Option<Duration>)> {
        let mut body = json!({ "input": texts, "encoding_format": "float" });
        if let Some(model) = &self.model {
            body["model"] = json!(model);
        }
        let mut request = self.agent.post(&self.address).header("content-type", "application/json");
        if let Some(key) = &self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let mut response = match request.send(body.to_string()) {
            Ok(response) => response,
            Err(error) => {
                let passing = matches!(
                    error,
                    ureq::Error::Io(_)
                        | ureq::Error::Timeout(_)
                        | ureq::Error::HostNotFound
                        | ureq::Error::ConnectionFailed
                );
                return Err((self.silence(&error), passing.then_some(Duration::ZERO)));
            }
        };
        let status = response.status();
        let wait = wait(&response);
        let limit = BYTES * texts.len() as u64;
        if let (true, Some(target)) = (status.is_redirection(), response.headers().get("location")) {
            let target = String::from_utf8_lossy(target.as_bytes()).chars().take(200).collect();
            return Err((ServerProblem::Redirect { status: status.as_u16(), target }, None));
        }
        let text = response.body_mut().with_config().limit(limit).read_to_string();
        if !status.is_success() {
            let passing = status.as_u16() == 429 || status.is_server_error();
            let message = text.unwrap_or_default().chars().take(200).collect();
            return Err((ServerProblem::Status { status: status.as_u16(), message }, passing.then_some(wait)));
        }
        let text = text.map_err(|error| match error {
            ureq::Error::BodyExceedsLimit(_) => {
                (ServerProblem::Answer(format!("it is longer than {} MiB", limit >> 20)), None)
            }
            error => (self.silence(&error), Some(Duration::ZERO)),
        })?;
        features(&text, texts.len(), self.dim).map_err(|problem| (problem, None))
    }

    /// Why there is no answer.
    fn silence(&self, error: &ureq::Error) -> ServerProblem {
        match error {
            ureq::Error::Timeout(_) => ServerProblem::Timeout(self.limit),
            other => ServerProblem::Unreachable(other.to_string()),
        }
    }

    fn refuse(&self, problem: ServerProblem) -> Error {
        Error::Server { address: self.address.clone(), problem }
    }
}

/// The features in an answer to `count` texts, of `dim` numbers each; 0 if that is not known yet.
pub fn features(text: &str, count: usize, dim: usize) -> Result<Vec<f32>, ServerProblem> {
    let Answer { data } = serde_json::from_str(text).map_err(|e| ServerProblem::Answer(e.to_string()))?;
    if data.len() != count {
        return Err(ServerProblem::Answer(format!("{} embeddings for {count} texts", data.len())));
    }
    let dim = if dim == 0 { data.first().map_or(0, |item| item.embedding.len()) } else { dim };
    if dim == 0 {
        return Err(ServerProblem::Answer("an embedding without numbers".to_owned()));
    }
    let mut features = vec![f32::NAN; count * dim];
    for Item { index, embedding } in data {
        let wrong = |what: &str| Err(ServerProblem::Answer(format!("embedding {index} {what}")));
        if embedding.len() != dim {
            return wrong(&format!("has {} numbers, others have {dim}", embedding.len()));
        }
        if embedding.iter().any(|value| !value.is_finite()) {
            return wrong("has a number that is not finite");
        }
        match features.chunks_exact_mut(dim).nth(index) {
            Some(row) if row[0].is_nan() => row.copy_from_slice(&embedding),
            Some(_) => return wrong("occurs twice"),
            None => return wrong(&format!("is out of range: {count} texts were sent")),
        }
    }
    Ok(features)
}

/// The time to wait that a server asks for.
fn wait<B>(response: &Response<B>) -> Duration {
    let seconds = response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.trim().parse().ok());
    Duration::from_secs(seconds.unwrap_or(0))
}

impl Encoder for Server {
    fn name(&self) -> &str {
        self.model.as_deref().unwrap_or(&self.address)
    }

    fn modality(&self) -> Modality {
        Modality::Text
    }

    fn dim(&self) -> usize {
        self.dim
    }

    /// The weights of a server are unknown: this is a digest of its address and the model's name.
    fn digest(&self) -> [u8; 32] {
        Sha256::digest(format!("server\n{}\n{}\n{}", self.address, self.name(), self.dim)).into()
    }

    fn probe(&self) -> Option<&[f32]> {
        Some(&self.probe)
    }

    fn batch(&self) -> usize {
        BATCH
    }

    fn encode(&self, batch: Batch<'_>, layers: &[usize]) -> Result<Vec<f32>, Error> {
        let texts = batch.texts(self.name())?;
        check_layers(self, layers)?;
        let mut features = Vec::with_capacity(texts.len() * self.dim);
        for texts in texts.chunks(BATCH) {
            let answers = self.request(&[texts, &[PROBE]].concat())?;
            let (own, probe) = answers.split_at(texts.len() * self.dim);
            if !same_answers(&self.probe, probe) {
                return Err(self.refuse(ServerProblem::Changed));
            }
            features.extend_from_slice(own);
        }
        Ok(features)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::sync::mpsc;

    use super::*;

    /// Reads a request and returns its body.
    fn request(stream: &TcpStream) -> serde_json::Value {
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    /// A server that gives these answers, one per connection: status line and headers, body.
    fn serve(answers: Vec<(&'static str, String)>) -> (String, mpsc::Receiver<serde_json::Value>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/v1/embeddings?model=small", listener.local_addr().unwrap());
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            for (head, body) in answers {
                let (mut stream, _) = listener.accept().unwrap();
                sender.send(request(&stream)).unwrap();
                let length = body.len();
                let _ =
                    write!(stream, "HTTP/1.1 {head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
            }
        });
        (address, receiver)
    }

    fn answer(rows: &[(usize, &[f32])]) -> String {
        let data: Vec<_> = rows.iter().map(|(index, row)| json!({ "index": index, "embedding": row })).collect();
        json!({ "object": "list", "data": data }).to_string()
    }

    fn connect(address: &str) -> Result<Server, Error> {
        Server::with_pause(address, Duration::from_secs(5), Duration::from_millis(1))
    }

    #[test]
    fn texts_become_features_in_their_order() {
        let both = answer(&[(1, &[3.0, 4.0]), (2, &[0.0, 0.5]), (0, &[1.0, 2.0])]);
        let (address, requests) = serve(vec![("200 OK", answer(&[(0, &[0.0, 0.5])])), ("200 OK", both)]);
        let server = connect(&address).unwrap();
        assert_eq!((server.dim(), server.name(), server.modality()), (2, "small", Modality::Text));
        assert_eq!(server.encode(Batch::Texts(&["a", "b"]), &[0]).unwrap(), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(requests.recv().unwrap()["model"], "small");
        assert_eq!(requests.recv().unwrap()["input"], json!(["a", "b", PROBE]));
    }

    #[test]
    fn a_server_whose_model_changes_between_two_requests_is_refused() {
        let ok = |rows: &[(usize, &[f32])]| ("200 OK", answer(rows));
        let own: &[f32] = &[3.0, 4.0];
        let answers =
            vec![ok(&[(0, &[1.0, 2.0])]), ok(&[(0, own), (1, &[1.0, 2.001])]), ok(&[(0, own), (1, &[2.0, 1.0])])];
        let (address, _requests) = serve(answers);
        let server = connect(&address).unwrap();
        assert_eq!(server.encode(Batch::Texts(&["a"]), &[0]).unwrap(), own, "rounding varies");
        let error = server.encode(Batch::Texts(&["a"]), &[0]).unwrap_err().to_string();
        assert!(error.contains("model has changed"), "{error}");
    }

    #[test]
    fn a_busy_server_is_asked_again() {
        let good = answer(&[(0, &[1.0])]);
        let busy = ("429 Too Many Requests\r\nretry-after: 0", String::new());
        let (address, requests) = serve(vec![busy, ("503 Service Unavailable", String::new()), ("200 OK", good)]);
        assert_eq!(connect(&address).unwrap().dim(), 1);
        assert_eq!(requests.iter().count(), 3);
    }

    #[test]
    fn answers_that_cannot_be_used_are_refused_with_the_reason() {
        let check = |head: &'static str, body: &str, expected: &str| {
            let (address, _requests) = serve(vec![(head, body.to_owned())]);
            let error = connect(&address).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check("200 OK", "hello", "expected value");
        check("200 OK", "{\"data\": []}", "0 embeddings for 1 texts");
        check("200 OK", &answer(&[(0, &[1.0]), (1, &[1.0])]), "2 embeddings for 1 texts");
        check("200 OK", &answer(&[(5, &[1.0])]), "embedding 5 is out of range");
        check("200 OK", &answer(&[(0, &[])]), "without numbers");
        check("200 OK", "{\"data\": [{\"index\": 0, \"embedding\": [1e99]}]}", "out of range");
        check("200 OK", "{\"data\": [{\"index\": 0, \"embed", "EOF");
        check("401 Unauthorized", "{\"error\": \"no key\"}", "no key");
        check("404 Not Found", "", "404");
    }

    /// A server that treats every connection in the same way after it has read the request.
    fn serve_always(treat: impl Fn(&mut TcpStream) + Send + 'static) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                request(&stream);
                treat(&mut stream);
            }
        });
        address
    }

    #[test]
    fn half_an_answer_is_an_error() {
        let address = serve_always(|stream| {
            let _ = write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{{\"data\": [");
        });
        assert!(matches!(connect(&address).map(|_| ()), Err(Error::Server { .. })));
    }

    #[test]
    fn a_closed_connection_is_an_error_after_all_attempts() {
        let (sender, receiver) = mpsc::channel();
        let address = serve_always(move |_| sender.send(()).unwrap());
        let error = connect(&address).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("no answer"), "{error}");
        assert_eq!(receiver.try_iter().count(), ATTEMPTS as usize);
    }

    #[test]
    fn an_answer_that_is_too_slow_is_an_error() {
        // One byte at a time, each within the limit.
        let address = serve_always(|stream| {
            let _ = write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n");
            while stream.write_all(b" ").is_ok() {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let slow = Server::with_pause(&address, Duration::from_millis(100), Duration::from_millis(1));
        let error = slow.map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("no complete answer within 100ms; `timeout` allows more"), "{error}");
    }

    #[test]
    fn images_are_refused() {
        let (address, _requests) = serve(vec![("200 OK", answer(&[(0, &[1.0])]))]);
        let error = connect(&address).unwrap().encode(Batch::Images(&[]), &[0]).unwrap_err();
        assert!(error.to_string().contains("reads texts, not images"), "{error}");
    }
}
