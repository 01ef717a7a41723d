//! Credentials that a program prints.

use std::io::Read as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::new_credential::NewCredential;
use super::token_response::TokenResponse;
use crate::config::CommandSource;

/// Tokens are a few KiB.
const OUTPUT_LIMIT: u64 = 64 << 10;
/// How often it is looked whether a program has ended that has closed its output.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Reads the token that a program prints: as it is, or as JSON with `access_token` and `expires_in`.
pub(super) async fn fetch(source: &CommandSource) -> Result<NewCredential, String> {
    let program = &source.program;
    let output = run(program, &source.arguments).await?;
    let output = output.trim_ascii();
    if output.starts_with(b"{") {
        return TokenResponse::decode(output)?.into_credential(Some(source.ttl));
    }
    let token = str::from_utf8(output).unwrap_or_default();
    if token.is_empty() {
        return Err(format!("{program} printed no token"));
    }
    NewCredential::bearer(token, source.ttl)
}

/// Runs a program, without a shell, and returns what it prints.
pub(super) async fn run(program: &str, arguments: &[String]) -> Result<Vec<u8>, String> {
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        // It may hold secrets, and is for whoever runs the program by hand.
        .stderr(Stdio::null())
        .spawn();
    let child = child.map_err(|error| format!("{program} cannot be started: {error}"))?;
    let mut running = RunningProgram(child);
    let output = running.output().await;
    let output = output.map_err(|error| format!("the output of {program} is lost: {error}"))?;
    let status = running.status().await;
    let status = status.map_err(|error| format!("{program} cannot be waited for: {error}"))?;
    match status.success() {
        true => Ok(output),
        false => Err(format!("{program} ended with {status}")),
    }
}

/// A program that is ended if nobody waits for it any more.
struct RunningProgram(Child);

impl RunningProgram {
    async fn output(&mut self) -> Result<Vec<u8>, String> {
        let stdout = self.0.stdout.take();
        let reading = spawn_blocking(move || {
            let mut output = Vec::new();
            if let Some(stdout) = stdout {
                stdout.take(OUTPUT_LIMIT).read_to_end(&mut output)?;
            }
            Ok::<_, std::io::Error>(output)
        });
        let read = reading.await.map_err(|error| error.to_string())?;
        read.map_err(|error| error.to_string())
    }

    async fn status(&mut self) -> Result<ExitStatus, std::io::Error> {
        loop {
            if let Some(status) = self.0.try_wait()? {
                return Ok(status);
            }
            sleep(POLL_INTERVAL).await;
        }
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            // Both fail only for a program that has ended.
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn printed(script: &str) -> Result<(String, Duration), String> {
        let source = CommandSource {
            program: "/bin/sh".to_owned(),
            arguments: vec!["-c".to_owned(), script.to_owned()],
            ttl: Duration::from_secs(900),
        };
        let new = fetch(&source).await?;
        let secret = new.value.secrets()[0].to_vec();
        Ok((String::from_utf8(secret).expect("text"), new.life))
    }

    #[tokio::test]
    async fn a_token_is_read_from_what_a_program_prints() {
        let token = |token: &str, seconds| Ok((token.to_owned(), Duration::from_secs(seconds)));
        assert_eq!(printed("echo tok").await, token("tok", 900));
        let json = r#"echo '{"access_token":"tok","expires_in":60}'"#;
        assert_eq!(printed(json).await, token("tok", 60));
        for (script, expected) in [
            ("exit 3", "exit status: 3"),
            ("true", "printed no token"),
            ("echo a b", "no header can hold it"),
            ("echo '{\"a\":1}'", "no access_token"),
            // The limit; a program that goes on writing is told so.
            ("yes | tr -d '\\n'", "ended with"),
        ] {
            let error = printed(script).await.expect_err(script);
            assert!(error.contains(expected), "{script}: {error}");
        }
    }

    #[tokio::test]
    async fn a_program_that_hangs_is_ended() {
        let waited = tokio::time::timeout(Duration::from_millis(50), printed("exec sleep 600"));
        assert!(waited.await.is_err());
    }
}
