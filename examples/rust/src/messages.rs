//! What of Anthropic's Messages API the loop uses. Content stays the bytes it came as.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::api::{block, event, Block, Event, Message, Role, Text, ToolCall};
use crate::context::HeldContext;
use crate::errors::Failure;

#[derive(Serialize)]
pub struct Request {
    pub model: String,
    pub max_tokens: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub system: Vec<Box<RawValue>>,
    pub messages: Vec<ApiMessage>,
}

#[derive(Serialize, Deserialize)]
pub struct ApiMessage {
    pub role: String,
    pub content: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
struct System {
    system: Vec<Box<RawValue>>,
}

/// What the model answers.
pub struct Response {
    pub model: String,
    pub text: String,
    pub calls: Vec<ToolUse>,
}

pub struct ToolUse {
    pub id: String,
    pub name: String,
    pub input: String,
}

/// The body of the provider's request for what is held. The cache marks are put on
/// copies: the messages that are held are what the daemon's hashes are over.
pub fn request(held: &HeldContext, model: &str) -> Result<Request, Failure> {
    let mut request = Request {
        model: model.to_string(),
        max_tokens: 1024,
        system: vec![],
        messages: vec![],
    };
    let marks = held
        .header
        .as_ref()
        .map_or(&[][..], |h| &h.cache_breakpoints);
    for m in &held.messages {
        let mut parsed = if m.system {
            let system: System = serde_json::from_slice(&m.json)?;
            ApiMessage {
                role: "system".to_string(),
                content: system.system,
            }
        } else {
            serde_json::from_slice(&m.json)?
        };
        for b in marks.iter().filter(|b| b.message_index == m.index) {
            let last = parsed.content.len().saturating_sub(1);
            let item = b.content_index.map_or(last, |i| i as usize);
            let marked = parsed
                .content
                .get_mut(item)
                .ok_or("a cache mark on no item")?;
            let object = marked
                .get()
                .strip_suffix('}')
                .ok_or("an item is no object")?;
            *marked = RawValue::from_string(format!(
                r#"{object},"cache_control":{{"type":"ephemeral"}}}}"#
            ))?;
        }
        if m.system {
            request.system = parsed.content;
        } else {
            request.messages.push(parsed);
        }
    }
    Ok(request)
}

impl Response {
    /// What the model said, for the log: the arguments as the bytes it wrote.
    pub fn event(&self, id: &str) -> Event {
        let mut blocks = vec![text(&self.text)];
        blocks.extend(self.calls.iter().map(|c| Block {
            kind: Some(block::Kind::ToolCall(ToolCall {
                call_id: c.id.clone(),
                name: c.name.clone(),
                arguments_json: c.input.clone().into_bytes(),
            })),
        }));
        let mut said = said(id, Role::Assistant, blocks);
        if let Some(event::Kind::Message(message)) = &mut said.kind {
            message.model = self.model.clone();
        }
        said
    }
}

pub fn said(id: &str, role: Role, blocks: Vec<Block>) -> Event {
    let message = Message {
        role: role as i32,
        blocks,
        ..Default::default()
    };
    Event {
        event_id: id.to_string(),
        kind: Some(event::Kind::Message(message)),
        ..Default::default()
    }
}

pub fn text(s: &str) -> Block {
    Block {
        kind: Some(block::Kind::Text(Text {
            text: s.to_string(),
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{CacheBreakpoint, ContextHeader, RenderedMessage};

    #[test]
    fn marks_go_on_copies() {
        let json = br#"{"role":"user","content":[{"a":1e400},{"b":2}]}"#.to_vec();
        let held = HeldContext {
            messages: vec![RenderedMessage {
                json: json.clone(),
                ..Default::default()
            }],
            header: Some(ContextHeader {
                cache_breakpoints: vec![CacheBreakpoint {
                    message_index: 0,
                    content_index: Some(0),
                }],
                ..Default::default()
            }),
        };
        let body = serde_json::to_string(&request(&held, "m").unwrap()).unwrap();
        assert_eq!(
            body,
            r#"{"model":"m","max_tokens":1024,"messages":[{"role":"user","content":[{"a":1e400,"cache_control":{"type":"ephemeral"}},{"b":2}]}]}"#
        );
        assert_eq!(held.messages[0].json, json);
    }
}
