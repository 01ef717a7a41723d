//! The certificates of the system, by which those of upstreams are checked.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

/// Refuses to start where the environment names certificates that cannot be read: pingora would panic over them.
pub(super) fn check() -> Result<()> {
    let read_file = |path: &Path| fs::read(path).map(drop);
    let read_folder = |path: &Path| fs::read_dir(path).map(drop);
    check_variable(
        "SSL_CERT_FILE",
        "a file with certificates in PEM",
        read_file,
    )?;
    check_variable("SSL_CERT_DIR", "a folder of certificates", read_folder)
}

fn check_variable(
    name: &str,
    wanted: &str,
    read: impl Fn(&Path) -> std::io::Result<()>,
) -> Result<()> {
    let Some(path) = std::env::var_os(name).map(OsString::into) else {
        return Ok(());
    };
    let path: std::path::PathBuf = path;
    read(&path).with_context(|| {
        let path = path.display();
        format!("{name} is {path}, which cannot be read; set it to {wanted}, or unset it")
    })
}
