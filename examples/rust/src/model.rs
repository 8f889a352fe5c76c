//! Stands for the provider and for the tools: reads files until all are seen.

use std::collections::HashSet;

use serde::Deserialize;

use crate::api::{block, Block, Event, Role, ToolResult};
use crate::messages::{said, text, Request, Response, ToolUse};

pub const MODEL: &str = "claude-sonnet-4-5";

#[derive(Default)]
pub struct Model {
    pub turns: u32,
}

#[derive(Deserialize)]
struct Item {
    #[serde(rename = "type")]
    kind: String,
    id: Option<String>,
    tool_use_id: Option<String>,
}

impl Model {
    /// Answers, or refuses what the provider would refuse.
    pub fn call(&mut self, request: &Request) -> Result<Response, String> {
        well_formed(request)?;
        self.turns += 1;
        let turn = self.turns;
        if turn > 6 {
            let text = "The flag is parsed twice; the second time wins.".to_string();
            return Ok(Response {
                model: MODEL.to_string(),
                text,
                calls: vec![],
            });
        }
        let calls = (0..=turn % 2)
            .map(|part| ToolUse {
                id: format!("toolu_{turn}_{part}"),
                name: "read".to_string(),
                input: format!(
                    r#"{{"path": "src/part{turn}.go", "from": {}.0}}"#,
                    part * 20
                ),
            })
            .collect();
        Ok(Response {
            model: MODEL.to_string(),
            text: format!("I read part {turn}."),
            calls,
        })
    }
}

/// A small part of the provider's rules: roles alternate, and each call is answered at
/// once.
fn well_formed(request: &Request) -> Result<(), String> {
    let (mut open, mut role) = (HashSet::new(), "assistant");
    for (i, m) in request.messages.iter().enumerate() {
        if m.role == role || (m.role != "user" && m.role != "assistant") {
            return Err(format!("message {i}: {} after {role}", m.role));
        }
        role = &m.role;
        for raw in &m.content {
            let item: Item = serde_json::from_str(raw.get()).map_err(|e| e.to_string())?;
            match (item.kind.as_str(), item.id, item.tool_use_id) {
                ("tool_use", Some(id), _) => drop(open.insert(id)),
                ("tool_result", _, Some(id)) if !open.remove(&id) => {
                    return Err(format!("message {i} answers {id}, which is not open"));
                }
                _ => {}
            }
        }
        if role == "user" && !open.is_empty() {
            return Err(format!("message {i} leaves {} calls open", open.len()));
        }
    }
    if role == "user" {
        Ok(())
    } else {
        Err("the last message must be the user's".to_string())
    }
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
    from: f64,
}

/// Answers a call: the result's event, for the log.
pub fn tool(call: &ToolUse) -> Event {
    let (body, is_error) = match serde_json::from_str::<Arguments>(&call.input) {
        Err(err) => (err.to_string(), true),
        Ok(args) => {
            let line = |i: u64| {
                format!(
                    "{}:{}: flags.Bool(\"flag{i}\", false, \"what it does\")\n",
                    args.path,
                    args.from as u64 + i
                )
            };
            ((0..60).map(line).collect(), false)
        }
    };
    let result = ToolResult {
        call_id: call.id.clone(),
        content: vec![text(&body)],
        is_error,
        ..Default::default()
    };
    let blocks = vec![Block {
        kind: Some(block::Kind::ToolResult(result)),
    }];
    said(&format!("result-{}", call.id), Role::Tool, blocks)
}
