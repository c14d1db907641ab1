//! What a model holds in memory is what `state_bytes` says, measured by an allocator that counts.
//!
//! A test binary of its own, with one test: nothing else allocates while it measures.

mod common;

use common::Random;
use loranpac::lift::{self, LiftSpec};
use loranpac::registry::{METHODS, MethodOptions};
use loranpac::{Features, Label};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[test]
fn memory_stays_within_what_the_state_says() {
    const DIM: usize = 32;
    const WIDTH: usize = 1500;
    let mut random = Random(1);
    let x: Vec<f32> = (0..600 * DIM).map(|_| random.symmetric() as f32).collect();
    let labels: Vec<Label> = (0..600).map(|i| Label::from(i % 20)).collect();
    let test: Vec<f32> = x[..50 * DIM].to_vec();
    // The first pass is not measured: threads are started, and products of matrices set up buffers that stay.
    for (pass, method) in METHODS.iter().map(|m| (0, m)).chain(METHODS.iter().map(|m| (1, m))) {
        let lift = lift::build(method.input.lift("relu-random"), LiftSpec::new(DIM, WIDTH)).unwrap();
        let options = MethodOptions::new(lift);
        // The joint reference is slow, and one epoch is enough to see what it keeps.
        let settings = if method.knows("epochs") { vec![("epochs".to_owned(), "1".to_owned())] } else { Vec::new() };
        let options = MethodOptions { settings, ..options };
        let region = Region::new(ALLOCATOR);
        let mut model = method.build(&options).unwrap();
        for (x, labels) in x.chunks(200 * DIM).zip(labels.chunks(200)) {
            model.learn(Features::new(x, DIM).unwrap(), labels).unwrap();
        }
        model.predict(Features::new(&test, DIM).unwrap()).unwrap();
        let change = region.change();
        let held = change.bytes_allocated as i64 - change.bytes_deallocated as i64;
        let said = model.state_bytes() as i64;
        if pass == 0 {
            continue;
        }
        println!("{:20} holds {held:>10} bytes and says {said:>10}", method.name);
        // Labels, counts and the like are not worth counting; work space that a solver has freed is not held.
        assert!(held <= said + said / 20 + 64 * 1024, "{} holds {held} bytes, but says {said}", method.name);
        assert!(said <= held + held / 20 + 64 * 1024, "{} says {said} bytes, but holds {held}", method.name);
    }
}
