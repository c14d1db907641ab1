//! The `loranpac` command.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Some decoders panic on damaged files. The panic becomes an error, which is printed instead.
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !loranpac_data::fence::is_fenced() {
            usual(panic);
        }
    }));
    ExitCode::from(loranpac_cli::main(std::env::args_os()))
}

/// The system's allocator, which ends the process with a message and exit code 1 if memory is exhausted. Otherwise the
/// process would abort with a signal that looks like a crash. A model is replaced atomically, so that the process may
/// end at any time. Large work is refused before it begins; this handles failures that no estimate foresaw.
struct OrExit;

#[global_allocator]
static ALLOCATOR: OrExit = OrExit;

// SAFETY: every call is forwarded to the system's allocator, and its result is returned unless it is null: then the
// process ends, which no caller can observe.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for OrExit {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        given(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        given(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        given(unsafe { System.realloc(old, layout, size) }, size)
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        unsafe { System.dealloc(old, layout) }
    }
}

/// Returns allocated memory. Null ends the process, unless the caller handles a failed allocation.
fn given(memory: *mut u8, size: usize) -> *mut u8 {
    if memory.is_null() && !loranpac::memory::may_fail() {
        // On the stack: no memory can be allocated.
        let mut text = [0u8; 96];
        let room = text.len();
        let mut rest = &mut text[..];
        let _ = writeln!(rest, "error: out of memory: the system refuses {size} more bytes");
        let length = room - rest.len();
        let _ = std::io::stderr().write_all(&text[..length]);
        std::process::exit(1);
    }
    memory
}
