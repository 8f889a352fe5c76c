//! Finds the daemon, or starts one on loopback that keeps its data in memory.

use std::{env, process::Stdio};

use serde::Deserialize;
use tokio::{
    io::{copy, sink, AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use crate::errors::Failure;

/// A daemon, and the process if it was started here. Stop it at the end.
pub struct Sidecar {
    address: String,
    child: Option<Child>,
}

#[derive(Deserialize)]
struct Entry {
    msg: String,
    #[serde(default)]
    address: String,
}

impl Sidecar {
    /// Takes CONTEXTD_ADDR, or starts CONTEXTD_BINARY or `contextd`.
    pub async fn find() -> Result<Self, Failure> {
        if let Some(address) = env::var("CONTEXTD_ADDR").ok().filter(|a| !a.is_empty()) {
            return Ok(Sidecar {
                address,
                child: None,
            });
        }
        let binary = env::var("CONTEXTD_BINARY").unwrap_or_else(|_| "contextd".to_string());
        let mut child = Command::new(binary)
            .args([
                "serve",
                "--store",
                "memory",
                "--listen",
                "127.0.0.1:0",
                "--log-format",
                "json",
            ])
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut lines = BufReader::new(child.stderr.take().ok_or("the daemon has no log")?).lines();
        while let Some(line) = lines.next_line().await? {
            let Ok(entry) = serde_json::from_str::<Entry>(&line) else {
                continue;
            };
            if entry.msg == "listening" {
                // The daemon must not block on a log that nobody reads.
                tokio::spawn(async move { copy(&mut lines.into_inner(), &mut sink()).await });
                return Ok(Sidecar {
                    address: entry.address,
                    child: Some(child),
                });
            }
        }
        Err("the daemon ended before it listened".into())
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// Ends the daemon that was started, and waits for its end.
    pub async fn stop(mut self) {
        if let Some(child) = &mut self.child {
            // It keeps nothing on disk, so nothing is lost.
            let _ = child.kill().await;
        }
    }
}
