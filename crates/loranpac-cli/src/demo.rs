//! `loranpac demo`: the main job on data that is inside the program.

use anyhow::Result;

/// Options of `demo`.
#[derive(clap::Args)]
pub struct Args {}

pub fn main(_: Args) -> Result<()> {
    Ok(())
}
