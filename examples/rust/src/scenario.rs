//! Runs examples/scenario.json; examples/README.md says what it is.

use std::{
    collections::HashMap,
    fs,
    io::{stdin, Write},
};

use prost_reflect::{DescriptorPool, DynamicMessage, ReflectMessage};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::api::{
    block::Kind, AppendEventsRequest, AppendEventsResponse, AssembleContextRequest, ContextHeader,
    Event, LogMark, ResolvePointerRequest,
};
use crate::context::{body_hash, hash_of, size_of, Client, HeldContext};
use crate::errors::Failure;
use crate::patience::Patience;

#[derive(Deserialize)]
struct Scenario {
    session: String,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Step {
    Append(Vec<Box<RawValue>>),
    Assemble(Box<RawValue>),
    ResolveFirstPointer(bool),
    Error(Expected),
    Daemon(String),
    Lost(Vec<Box<RawValue>>),
}

#[derive(Deserialize)]
struct Expected {
    append: Option<Box<RawValue>>,
    assemble: Option<Box<RawValue>>,
    code: String,
    field: String,
}

/// A line of the report. Members are written in the order they have here.
#[derive(Serialize)]
#[serde(untagged)]
enum Line {
    Appended {
        step: usize,
        appended: usize,
        duplicates: usize,
    },
    Assembled {
        step: usize,
        context_hash: String,
        prefix_hash: String,
        messages: usize,
        sent: usize,
        bytes: usize,
    },
    Resolved {
        step: usize,
        resolved_sha256: String,
    },
    Failed {
        step: usize,
        code: &'static str,
        field: String,
    },
    Daemon {
        step: usize,
        daemon: String,
    },
    Lost {
        step: usize,
        reason: String,
        field: String,
        appended: usize,
        duplicates: usize,
    },
}

struct Player {
    client: Client,
    session: String,
    pool: DescriptorPool,
    held: HashMap<i32, HeldContext>,
    newest: Option<ContextHeader>,
    /// The newest event that the program appended, by which a log that is lost is noticed.
    known: Option<LogMark>,
    /// All events, for a log that is lost.
    appended: Vec<Event>,
}

/// Runs the steps of a file and writes one line for each.
pub async fn run(client: Client, path: &str) -> Result<(), Failure> {
    let scenario: Scenario = serde_json::from_str(&fs::read_to_string(path)?)?;
    let descriptors = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
    let mut player = Player {
        client,
        session: format!("{}-rust", scenario.session),
        pool: DescriptorPool::decode(&descriptors[..]).map_err(|e| e.to_string())?,
        held: HashMap::new(),
        newest: None,
        known: None,
        appended: Vec::new(),
    };
    let mut out = std::io::stdout().lock();
    for (i, step) in scenario.steps.iter().enumerate() {
        let line = player
            .play(i, step)
            .await
            .map_err(|e| format!("step {i}: {e}"))?;
        writeln!(out, "{}", serde_json::to_string(&line)?)?;
        if let Line::Daemon { .. } = line {
            // The runner does something to the daemon.
            if stdin().read_line(&mut String::new())? == 0 {
                return Err("nobody answers".into());
            }
        }
    }
    Ok(())
}

impl Player {
    async fn play(&mut self, i: usize, step: &Step) -> Result<Line, Failure> {
        match step {
            Step::Append(events) => self.append(i, events).await,
            Step::Assemble(request) => self.assemble(i, request).await,
            Step::ResolveFirstPointer(true) => self.resolve(i).await,
            Step::ResolveFirstPointer(false) => Err("nothing to do".into()),
            Step::Error(expected) => self.fail(i, expected).await,
            Step::Daemon(what) => Ok(Line::Daemon {
                step: i,
                daemon: what.clone(),
            }),
            Step::Lost(events) => self.lose(i, events).await,
        }
    }

    async fn append(&mut self, step: usize, events: &[Box<RawValue>]) -> Result<Line, Failure> {
        let events = self.events(events)?;
        let (appended, duplicates) = self.send(events.clone()).await?;
        self.appended.extend(events);
        Ok(Line::Appended {
            step,
            appended,
            duplicates,
        })
    }

    fn events(&self, raw: &[Box<RawValue>]) -> Result<Vec<Event>, Failure> {
        raw.iter()
            .map(|e| self.parse("contextd.v1.Event", e))
            .collect()
    }

    /// Appends, and says how many events are new and how many were there.
    async fn send(&mut self, events: Vec<Event>) -> Result<(usize, usize), Failure> {
        let request = AppendEventsRequest {
            events,
            ..Default::default()
        };
        let response = self.send_request(request).await?;
        self.known = response.mark;
        let duplicates = response.receipts.iter().filter(|r| r.duplicate).count();
        Ok((response.receipts.len() - duplicates, duplicates))
    }

    async fn send_request(
        &mut self,
        mut request: AppendEventsRequest,
    ) -> Result<AppendEventsResponse, Failure> {
        request.session_id = self.session.clone();
        request.known = self.known.clone();
        let mut patience = Patience::begin()?;
        loop {
            match self.client.append_events(request.clone()).await {
                Ok(response) => return Ok(response.into_inner()),
                Err(status) => patience.wait(status.into()).await?,
            }
        }
    }

    /// Appends to a log that was lost, and then all of the conversation again.
    async fn lose(&mut self, step: usize, events: &[Box<RawValue>]) -> Result<Line, Failure> {
        let events = self.events(events)?;
        let lost = match self.send(events.clone()).await {
            Err(failure) if failure.reason().0 == "LOG_LOST" => failure,
            Err(failure) => return Err(failure),
            Ok(_) => return Err("the loss of the log was not noticed".into()),
        };
        self.known = None;
        self.held.clear();
        self.appended.extend(events);
        let (appended, duplicates) = self.send(self.appended.clone()).await?;
        Ok(Line::Lost {
            step,
            reason: lost.reason().0,
            field: lost.field(),
            appended,
            duplicates,
        })
    }

    async fn assemble(&mut self, step: usize, request: &RawValue) -> Result<Line, Failure> {
        let request: AssembleContextRequest =
            self.parse("contextd.v1.AssembleContextRequest", request)?;
        let mut held = self.held.remove(&request.format).unwrap_or_default();
        let format = request.format;
        let sent = self.receive(&mut held, request).await?;
        self.newest = held.header.clone();
        let line = Line::Assembled {
            step,
            context_hash: hash_of(&held.messages),
            prefix_hash: held
                .header
                .as_ref()
                .map_or_else(String::new, |h| h.prefix_hash.clone()),
            messages: held.messages.len(),
            sent,
            bytes: size_of(&held.messages),
        };
        self.held.insert(format, held);
        Ok(line)
    }

    async fn receive(
        &mut self,
        held: &mut HeldContext,
        mut request: AssembleContextRequest,
    ) -> Result<usize, Failure> {
        request.session_id = self.session.clone();
        request.known = self.known.clone();
        let mut patience = Patience::begin()?;
        loop {
            match held.assemble(&mut self.client, request.clone()).await {
                Ok(sent) => return Ok(sent),
                Err(failure) => patience.wait(failure).await?,
            }
        }
    }

    async fn resolve(&mut self, step: usize) -> Result<Line, Failure> {
        let projection = self.newest.as_ref().and_then(|h| h.projection.as_ref());
        let pointer = projection
            .and_then(|p| p.redaction_pointers.first())
            .ok_or("the newest assembly has no pointer")?;
        let request = ResolvePointerRequest {
            session_id: self.session.clone(),
            pointer: pointer.pointer.clone(),
        };
        let block = self
            .client
            .resolve_pointer(request)
            .await?
            .into_inner()
            .block;
        let Some(Kind::ToolResult(result)) = block.and_then(|b| b.kind) else {
            return Err(format!("{} names no tool result", pointer.pointer).into());
        };
        let hash = body_hash(&result);
        if hash != pointer.content_hash {
            return Err(format!(
                "{} gives back {hash}, not {}",
                pointer.pointer, pointer.content_hash
            )
            .into());
        }
        Ok(Line::Resolved {
            step,
            resolved_sha256: hash,
        })
    }

    async fn fail(&mut self, step: usize, expected: &Expected) -> Result<Line, Failure> {
        let failure = if let Some(append) = &expected.append {
            let request = self.parse("contextd.v1.AppendEventsRequest", append)?;
            self.send_request(request).await.err()
        } else {
            let raw = expected.assemble.as_ref().ok_or("nothing to do")?;
            let request = self.parse("contextd.v1.AssembleContextRequest", raw)?;
            // Nothing is held of what fails.
            self.receive(&mut HeldContext::default(), request)
                .await
                .err()
        };
        let failure = failure.ok_or("it did not fail")?;
        if failure.code() != expected.code || failure.field() != expected.field {
            return Err(format!(
                "{failure} in {:?}, not {} in {:?}",
                failure.field(),
                expected.code,
                expected.field
            )
            .into());
        }
        Ok(Line::Failed {
            step,
            code: failure.code(),
            field: failure.field(),
        })
    }

    /// Reads protobuf's JSON form, which prost itself does not know.
    fn parse<M: prost::Message + Default>(&self, name: &str, raw: &RawValue) -> Result<M, Failure> {
        let descriptor = self
            .pool
            .get_message_by_name(name)
            .ok_or("no such message")?;
        let mut json = serde_json::Deserializer::from_str(raw.get());
        let message = DynamicMessage::deserialize(descriptor, &mut json)?;
        json.end()?;
        message
            .transcode_to()
            .map_err(|e| format!("{}: {e}", message.descriptor().name()).into())
    }
}
