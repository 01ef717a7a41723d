//! Counts the allocations of a thread, which time alone does not show.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::Sub;

/// Allocations of one thread, those that grow an older one included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocations {
    pub count: u64,
    /// What grows counts with all of its new size: it may have been copied there.
    pub bytes: u64,
}

thread_local! {
    static SO_FAR: Cell<Allocations> = const { Cell::new(Allocations { count: 0, bytes: 0 }) };
}

impl Allocations {
    pub fn so_far() -> Allocations {
        SO_FAR.get()
    }
}

impl Sub for Allocations {
    type Output = Allocations;

    fn sub(self, earlier: Allocations) -> Allocations {
        Allocations {
            count: self.count - earlier.count,
            bytes: self.bytes - earlier.bytes,
        }
    }
}

fn note(size: usize) {
    let Allocations { count, bytes } = SO_FAR.get();
    SO_FAR.set(Allocations {
        count: count + 1,
        bytes: bytes + size as u64,
    });
}

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

// SAFETY: every call goes to the system's allocator as it came; counting touches a cell of the
// thread, which neither allocates nor is dropped.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size);
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}
