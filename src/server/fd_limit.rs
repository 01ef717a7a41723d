//! Raises the limit of open file descriptors, as every connection takes one.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises the soft limit to the hard limit, and returns the limit that is now in force.
pub(crate) fn raise() -> usize {
    let (now, most) = match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok(limits) => limits,
        Err(error) => {
            log::warn!("the limit of open files (RLIMIT_NOFILE) cannot be read: {error}");
            return usize::MAX;
        }
    };
    let allowed = match setrlimit(Resource::RLIMIT_NOFILE, most, most) {
        Ok(()) => most,
        Err(error) => {
            log::warn!("the limit of open files stays at {now}: {error}");
            now
        }
    };
    usize::try_from(allowed).unwrap_or(usize::MAX)
}
