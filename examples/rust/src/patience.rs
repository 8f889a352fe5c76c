//! For how long a call is repeated; docs/clients.md has the rules.

use std::{
    env,
    time::{Duration, Instant},
};

use crate::errors::Failure;

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// What one call still waits for. A call can be repeated because events have ids.
pub struct Patience {
    begun: Instant,
    limit: Duration,
    pause: Duration,
}

impl Patience {
    /// As CONTEXTD_PATIENCE says, from now on.
    pub fn begin() -> Result<Self, Failure> {
        Ok(Patience {
            begun: Instant::now(),
            limit: limit(&env::var("CONTEXTD_PATIENCE").unwrap_or_default())?,
            pause: FIRST_PAUSE,
        })
    }

    /// Waits until the next try, or gives the failure back where there is to be none.
    pub async fn wait(&mut self, failure: Failure) -> Result<(), Failure> {
        let delay = match failure.retry() {
            None if failure.unanswered() => {
                let pause = self.pause;
                self.pause = LONGEST_PAUSE.min(2 * pause);
                pause
            }
            None => return Err(failure),
            Some(delay) => delay,
        };
        if self.begun.elapsed() + delay > self.limit {
            return Err(failure);
        }
        tokio::time::sleep(delay).await;
        Ok(())
    }
}

/// Seconds (2, 0.5) or a duration such as 1m30s.
fn limit(text: &str) -> Result<Duration, Failure> {
    let wrong =
        || format!("CONTEXTD_PATIENCE: {text:?} is neither seconds nor a duration such as 1m30s");
    if text.is_empty() {
        return Ok(Duration::from_secs(30));
    }
    let mut rest = text.to_string();
    if rest.ends_with(|c: char| c.is_ascii_digit()) {
        rest.push('s');
    }
    let mut seconds = 0.0;
    let mut rest = rest.as_str();
    while !rest.is_empty() {
        let end = rest
            .find(|c: char| c.is_ascii_alphabetic())
            .ok_or_else(wrong)?;
        let number: f64 = rest[..end].parse().map_err(|_| wrong())?;
        rest = &rest[end..];
        let end = rest
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(rest.len());
        seconds += number
            * match &rest[..end] {
                "h" => 3600.0,
                "m" => 60.0,
                "s" => 1.0,
                "ms" => 0.001,
                _ => return Err(wrong().into()),
            };
        rest = &rest[end..];
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_is_seconds_or_a_duration() {
        for (text, ms) in [
            ("", 30_000),
            ("2", 2000),
            ("0.5", 500),
            ("1m30s", 90_000),
            ("250ms", 250),
            ("0", 0),
        ] {
            assert_eq!(limit(text).unwrap(), Duration::from_millis(ms), "{text}");
        }
        for text in ["long", "1x", "-1", "s"] {
            assert!(limit(text).is_err(), "{text}");
        }
    }
}
