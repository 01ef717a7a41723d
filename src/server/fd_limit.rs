//! Every connection is a file to the system: as many may be open as it lets this process have.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Shells and service managers start every program with a limit that suits old ones, and let the others raise it.
/// Tells how many may be open from now on.
pub(crate) fn raise() -> usize {
    let (now, most) = match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok(limits) => limits,
        Err(error) => {
            log::warn!("how many connections may be open is not known: {error}");
            return usize::MAX;
        }
    };
    let allowed = match setrlimit(Resource::RLIMIT_NOFILE, most, most) {
        Ok(()) => most,
        Err(error) => {
            log::warn!("no more than {now} connections may be open: {error}");
            now
        }
    };
    usize::try_from(allowed).unwrap_or(usize::MAX)
}
