//! Runs examples/scenario.json; examples/README.md says what it is.

use std::{collections::HashMap, fs, io::Write};

use prost_reflect::{DescriptorPool, DynamicMessage, ReflectMessage};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::api::{
    block::Kind, AppendEventsRequest, AssembleContextRequest, ContextHeader, Event,
    ResolvePointerRequest,
};
use crate::context::{body_hash, hash_of, size_of, Client, HeldContext};
use crate::errors::Failure;

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
}

struct Player {
    client: Client,
    session: String,
    pool: DescriptorPool,
    held: HashMap<i32, HeldContext>,
    newest: Option<ContextHeader>,
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
    };
    let mut out = std::io::stdout().lock();
    for (i, step) in scenario.steps.iter().enumerate() {
        let line = player
            .play(i, step)
            .await
            .map_err(|e| format!("step {i}: {e}"))?;
        writeln!(out, "{}", serde_json::to_string(&line)?)?;
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
        }
    }

    async fn append(&mut self, step: usize, events: &[Box<RawValue>]) -> Result<Line, Failure> {
        let events = events
            .iter()
            .map(|e| self.parse::<Event>("contextd.v1.Event", e))
            .collect::<Result<_, _>>()?;
        let request = AppendEventsRequest {
            session_id: self.session.clone(),
            events,
            ..Default::default()
        };
        let receipts = self
            .client
            .append_events(request)
            .await?
            .into_inner()
            .receipts;
        let duplicates = receipts.iter().filter(|r| r.duplicate).count();
        Ok(Line::Appended {
            step,
            appended: receipts.len() - duplicates,
            duplicates,
        })
    }

    async fn assemble(&mut self, step: usize, request: &RawValue) -> Result<Line, Failure> {
        let mut request: AssembleContextRequest =
            self.parse("contextd.v1.AssembleContextRequest", request)?;
        request.session_id = self.session.clone();
        let held = self.held.entry(request.format).or_default();
        let sent = held.assemble(&mut self.client, request).await?;
        self.newest = held.header.clone();
        Ok(Line::Assembled {
            step,
            context_hash: hash_of(&held.messages),
            prefix_hash: held
                .header
                .as_ref()
                .map_or_else(String::new, |h| h.prefix_hash.clone()),
            messages: held.messages.len(),
            sent,
            bytes: size_of(&held.messages),
        })
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
            let mut request: AppendEventsRequest =
                self.parse("contextd.v1.AppendEventsRequest", append)?;
            request.session_id = self.session.clone();
            self.client
                .append_events(request)
                .await
                .err()
                .map(Failure::from)
        } else {
            let raw = expected.assemble.as_ref().ok_or("nothing to do")?;
            let mut request: AssembleContextRequest =
                self.parse("contextd.v1.AssembleContextRequest", raw)?;
            request.session_id = self.session.clone();
            // Nothing is held of what fails.
            HeldContext::default()
                .assemble(&mut self.client, request)
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
