//! `loranpac learn` is killed again and again, at any moment, and goes on where it was.
//!
//! 500 kills by default; `LORANPAC_KILLS=10000 cargo test --release -p loranpac-cli --test kill -- --nocapture` for more.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Instant;

use common::{killed, loranpac, stdout};
use loranpac_store::Session;
use tempfile::TempDir;

/// Three days of samples, as CSV.
fn days(folder: &Path) -> Vec<String> {
    (0..3i64)
        .map(|day| {
            let path = folder.join(format!("day{day}.csv"));
            let mut text = "a,b,c,d,label\n".to_owned();
            for row in 0..60i64 {
                let class = 2 * day + row % 3;
                let value = |c: i64| ((row * 7919 + c * 104_729 + day * 31 + class * 977) % 1000) as f32 / 500.0 - 1.0;
                let cells: Vec<String> = (0..4).map(|c| value(c).to_string()).collect();
                text += &format!("{},class {class}\n", cells.join(","));
            }
            fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        })
        .collect()
}

/// Every file of a model by name, but for the lock.
fn files(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
    let named = entries.map(|e| (e.file_name().into_string().unwrap(), fs::read(e.path()).unwrap()));
    named.filter(|(name, _)| name != "LOCK").collect()
}

#[test]
fn learning_survives_being_killed_at_any_moment() {
    let wanted: usize = std::env::var("LORANPAC_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(500);
    let folder = TempDir::new().unwrap();
    let days = days(folder.path());
    let start = |name: &str| {
        let path = folder.path().join(name);
        let _ = fs::remove_dir_all(&path);
        stdout(&loranpac(&["init", path.to_str().unwrap(), "--like", &days[0], "--width", "120", "--keep", "2"]));
        path
    };
    let words = |path: &Path| -> Vec<String> {
        let fixed = ["--skip", "--quiet", "--task-size", "20", "--threads", "1"].map(str::to_owned);
        ["learn".to_owned(), path.to_str().unwrap().to_owned()].into_iter().chain(days.clone()).chain(fixed).collect()
    };
    let whole = start("whole.lrp");
    let clock = Instant::now();
    let arguments = words(&whole);
    stdout(&loranpac(&arguments.iter().map(String::as_str).collect::<Vec<_>>()));
    let whole_time = clock.elapsed();
    let expected = files(&whole);

    let (mut kills, mut finished, mut random) = (0, 0, 1u64);
    while kills < wanted {
        let path = start("killed.lrp");
        let mut learned = 0;
        loop {
            let done = killed(&words(&path), &mut random, whole_time.mul_f64(0.6));
            kills += usize::from(!done);
            // The model opens as after one of its tasks, every byte verifies, and nothing learned is lost.
            let damage = Session::verify(&path).unwrap().damage;
            assert!(damage.is_empty(), "after {kills} kills: {damage:?}");
            let mut model = Session::open(&path).unwrap();
            model.model().unwrap();
            let tasks = model.manifest().tasks.len();
            assert!(tasks >= learned && model.manifest().samples == 20 * tasks, "{learned} tasks, then {tasks}");
            learned = tasks;
            if done {
                assert_eq!(learned, 9);
                break;
            }
        }
        finished += 1;
        // The next writer clears away what a killed one has left; then it is the model that nothing ever happened to.
        drop(Session::open_to_write(&path).unwrap());
        let found = files(&path);
        assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        for (name, bytes) in &found {
            assert!(*bytes == expected[name], "{name} differs");
        }
    }
    println!(
        "{kills} kills, {finished} models finished in spite of them, 0 damaged, 0 tasks lost, all the same to the bit"
    );
}
