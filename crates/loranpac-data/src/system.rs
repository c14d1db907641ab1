//! Memory of the machine and of this process, as the operating system reports it.

use loranpac::memory::Room;

/// Memory reserved for what no estimate covers: texts, tables, the readers' buffers.
const RESERVE: usize = 16 << 20;
/// The scratch space of a thread if the sizes of the caches are unknown.
const SCRATCH: u64 = 64 << 20;

/// The peak resident memory of this process. Linux only.
pub fn peak_memory() -> Option<u64> {
    kilobytes("/proc/self/status", "VmHWM:")
}

/// The resident memory of this process. Linux only.
pub fn resident_memory() -> Option<u64> {
    kilobytes("/proc/self/status", "VmRSS:")
}

/// Memory that can be used without swapping: what the machine has available, within the limits of this process.
pub fn available_memory() -> Option<u64> {
    let machine = kilobytes("/proc/meminfo", "MemAvailable:").or_else(by_system_call);
    [machine, address_space(), control_group()].into_iter().flatten().min()
}

/// The available memory of systems without `/proc`.
fn by_system_call() -> Option<u64> {
    let memory = sysinfo::MemoryRefreshKind::nothing().with_ram();
    let system = sysinfo::System::new_with_specifics(sysinfo::RefreshKind::nothing().with_memory(memory));
    Some(system.available_memory()).filter(|&bytes| bytes > 0)
}

/// The memory that this process may still allocate, less a reserve.
pub fn room() -> Room {
    let available = available_memory().map(|bytes| (bytes as usize).saturating_sub(RESERVE));
    // The linear algebra gives each thread a buffer of twice the largest cache.
    let caches =
        (0..8).filter_map(|level| kilobytes_in(&format!("/sys/devices/system/cpu/cpu0/cache/index{level}/size")));
    Room { available, scratch: caches.max().map_or(SCRATCH, |cache| 2 * cache) as usize + RESERVE }
}

/// The address space that `ulimit -v` leaves.
fn address_space() -> Option<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let limit: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(limit.saturating_sub(kilobytes("/proc/self/status", "VmSize:")?))
}

/// The memory that the limit of the innermost control group leaves, of version 2 or 1.
fn control_group() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let number = |path: String| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let left = |line: &str| {
        let (root, limit, used, path) = match line.strip_prefix("0::") {
            Some(path) => ("/sys/fs/cgroup", "memory.max", "memory.current", path),
            None => {
                let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
                controllers.split(',').find(|name| *name == "memory")?;
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", path)
            }
        };
        // In a container the path is that of the host, and the group is mounted at the root.
        let folders = [format!("{root}{}", path.trim_end_matches('/')), root.to_owned()];
        folders.into_iter().find_map(|folder| {
            let limit = number(format!("{folder}/{limit}"))?;
            let reclaimable = number_of(&format!("{folder}/memory.stat"), "inactive_file").unwrap_or(0);
            Some(limit.saturating_sub(number(format!("{folder}/{used}"))?.saturating_sub(reclaimable)))
        })
    };
    groups.lines().filter_map(left).min()
}

fn kilobytes(file: &str, key: &str) -> Option<u64> {
    number_of(file, key).map(|kb| kb * 1024)
}

/// The number after a key at the beginning of a line.
fn number_of(file: &str, key: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next()? == key).then(|| words.next()?.parse().ok())?
    })
}

/// A file that holds a number of kilobytes, such as `1024K`.
fn kilobytes_in(file: &str) -> Option<u64> {
    std::fs::read_to_string(file).ok()?.trim().strip_suffix('K')?.parse::<u64>().ok().map(|kb| kb * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_available_is_no_more_than_the_machine_has() {
        let all = kilobytes("/proc/meminfo", "MemTotal:").unwrap();
        let available = available_memory().unwrap();
        assert!(available > 0 && available <= all, "{available} of {all}");
        assert!(room().scratch > RESERVE);
        let system = by_system_call().unwrap();
        assert!(system > 0 && system <= all, "{system} of {all}");
    }
}
