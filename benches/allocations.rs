//! Counts the allocations of a thread, which time alone does not show.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::Sub;

/// The allocations of one thread, reallocations included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocations {
    pub count: u64,
    /// A reallocation counts with its whole new size, because it may copy everything.
    pub bytes: u64,
}

thread_local! {
    static TOTAL: Cell<Allocations> = const { Cell::new(Allocations { count: 0, bytes: 0 }) };
}

impl Allocations {
    /// Returns all allocations of this thread since it started.
    pub fn current() -> Allocations {
        TOTAL.get()
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

fn count_allocation(size: usize) {
    let Allocations { count, bytes } = TOTAL.get();
    TOTAL.set(Allocations {
        count: count + 1,
        bytes: bytes + size as u64,
    });
}

/// The system's allocator, with every allocation counted.
struct CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

// SAFETY: every call goes to the system's allocator unchanged; counting accesses a thread-local
// cell, which neither allocates nor is dropped.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_allocation(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count_allocation(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count_allocation(size);
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}
