//! Starts nginx, if it is installed, as a proxy that checks the key and forwards.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use nix::unistd::Uid;

use crate::formats::KEY;
use crate::process::Process;

const PATHS: [&str; 3] = ["/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/sbin/nginx"];

/// Returns the path of nginx if it is installed.
pub fn find_program() -> Option<PathBuf> {
    let mut paths = PATHS.into_iter().map(PathBuf::from);
    paths.find(|path| path.exists())
}

pub async fn start(
    program: &Path,
    listen: SocketAddr,
    upstream: SocketAddr,
    directory: &Path,
) -> Result<Process> {
    let file = directory.join("nginx.conf");
    fs::write(&file, config(listen, upstream, directory))?;
    let mut command = Command::new(program);
    let log = directory.join("nginx-errors.log");
    command.arg("-p").arg(directory).arg("-e").arg(log);
    command.arg("-c").arg(file);
    let mut process = Process::start("nginx", &mut command, directory)?;
    process.wait_until_ready(listen, None).await?;
    Ok(process)
}

/// Encodes a config with keep-alive on both sides for the whole run, and without buffering to disk.
fn config(listen: SocketAddr, upstream: SocketAddr, directory: &Path) -> String {
    // Without this, workers switch to another user, who may not read the directory.
    let user = if Uid::effective().is_root() {
        "user root;\n"
    } else {
        ""
    };
    let directory = directory.display();
    let unlimited = 1_000_000_000;
    format!(
        "{user}daemon off;\nworker_processes 2;\npid {directory}/nginx.pid;\nworker_rlimit_nofile 16384;\n\
         events {{ worker_connections 8192; }}\n\
         http {{\n\
           access_log off;\n\
           client_body_temp_path {directory}/nginx-bodies;\n\
           proxy_temp_path {directory}/nginx-proxied;\n\
           fastcgi_temp_path {directory}/nginx-fastcgi;\n\
           uwsgi_temp_path {directory}/nginx-uwsgi;\n\
           scgi_temp_path {directory}/nginx-scgi;\n\
           client_max_body_size 64m;\n\
           keepalive_requests {unlimited};\n\
           keepalive_timeout 1h;\n\
           tcp_nodelay on;\n\
           upstream mock {{ server {upstream}; keepalive 4096; keepalive_requests {unlimited}; }}\n\
           server {{\n\
             listen {listen} backlog=4096;\n\
             location / {{\n\
               if ($http_authorization != \"Bearer {KEY}\") {{ return 401; }}\n\
               proxy_pass http://mock;\n\
               proxy_http_version 1.1;\n\
               proxy_set_header connection \"\";\n\
               proxy_buffering off;\n\
               proxy_request_buffering off;\n\
             }}\n\
           }}\n\
         }}\n"
    )
}
