//! What a model holds is what `state_bytes` says, and what it takes at its worst moment what `peak_bytes` says,
//! measured by an allocator that counts.
//!
//! A test binary of its own, with one test: nothing else allocates while it measures.

mod common;

use common::Random;
use loranpac::lift::{self, LiftSpec};
use loranpac::registry::{Input, METHODS, Method, MethodOptions};
use loranpac::{Features, Label, StreamSizes};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const DIM: usize = 32;
const WIDTH: usize = 2500;
const SAMPLES: usize = 1500;

/// Bytes that the model held, said that it held, took at its peak, and said that it would.
fn measure(method: &Method, max_rank: usize) -> [f64; 4] {
    let mut random = Random(1);
    let x: Vec<f32> = (0..SAMPLES * DIM).map(|_| random.symmetric() as f32).collect();
    // Two new classes in every task, the first of which is larger than what is lifted at a time.
    let sizes = [500, 200, 400, 400];
    let label = |task: usize, i: usize| Label::from((2 * task + i % 2) as i64);
    let labels: Vec<Label> = sizes.iter().enumerate().flat_map(|(t, n)| (0..*n).map(move |i| label(t, i))).collect();
    let lift = lift::build(method.input.lift("relu-random"), LiftSpec::new(DIM, WIDTH)).unwrap();
    // The joint reference is slow, and one epoch is enough to see what it keeps.
    let quick = || vec![("epochs".to_owned(), "1".to_owned())];
    let settings = if method.knows("epochs") { quick() } else { Vec::new() };
    let options = MethodOptions { settings, max_rank, ..MethodOptions::new(lift) };
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let mut model = method.build(&options).unwrap();
    let estimate = model.peak_bytes(&StreamSizes { samples: SAMPLES, largest_task: 500, classes: 8 });
    let mut first = 0;
    for size in sizes {
        let rows = first..first + size;
        model.learn(Features::new(&x[rows.start * DIM..rows.end * DIM], DIM).unwrap(), &labels[rows]).unwrap();
        first += size;
    }
    model.classifier().unwrap().predict(Features::new(&x[..50 * DIM], DIM).unwrap()).unwrap();
    let held = ALLOCATOR.current_usage() - before;
    [held, model.state_bytes(), ALLOCATOR.peak_usage() - before, estimate].map(|bytes| bytes as f64)
}

#[test]
fn memory_stays_within_what_the_model_says() {
    // The first pass is not measured: threads are started, and products of matrices set up buffers that stay.
    let methods = || METHODS.iter().filter(|method| method.input != Input::Raw);
    methods().for_each(|method| {
        measure(method, 10_000);
    });
    for method in methods() {
        for max_rank in [10_000, 300] {
            let [held, said, peak, estimate] = measure(method, max_rank);
            let name = format!("{} (r_max {max_rank})", method.name);
            println!("{name:32} holds {held:>10} says {said:>10}  peak {peak:>10} estimate {estimate:>10}");
            // Labels, counts and the like are not worth counting.
            let slack = 128.0 * 1024.0;
            assert!(held <= 1.05 * said + slack, "{name} holds {held} bytes, but says {said}");
            assert!(said <= 1.05 * held + slack, "{name} says {said} bytes, but holds {held}");
            // Solvers take a few megabytes of their own, whatever the size.
            assert!(peak <= 1.2 * estimate + 250.0 * slack, "{name} takes {peak} bytes, but estimated {estimate}");
        }
    }
}
