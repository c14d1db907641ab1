//! `loranpac embed` on inputs, encoders and servers that are damaged or hostile: it ends with a message that names what is
//! wrong, leaves the output as it was, and stays within a limit on memory.
#![cfg(target_os = "linux")] // Memory is limited as Linux does it.

#[path = "../../../loranpac-encode/tests/archives/mod.rs"]
mod archives;
mod encoders;
mod images;
#[path = "../../../loranpac-encode/tests/made/mod.rs"]
mod made;
mod networks;
mod packed;
#[path = "../../../loranpac-encode/tests/samples/png.rs"]
mod png;
mod server;
mod texts;
mod world;
