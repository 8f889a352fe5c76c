//! A small agent loop: what happens goes into the log, and before each model call the
//! context is assembled from it.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::api::{
    block, event, AppendEventsRequest, AssembleContextRequest, Budget, Event, Format,
    ReadEventsRequest, RedactionPointer, ResolvePointerRequest, Role,
};
use crate::context::{body_hash, Client, HeldContext};
use crate::errors::Failure;
use crate::messages::{request, said, text};
use crate::model::{tool, Model, MODEL};
use crate::patience::Patience;

struct Agent {
    client: Client,
    session: String,
    /// The newest event that the agent knows of.
    head: u64,
    /// In tokens.
    budget: u64,
    context: HeldContext,
    pointer: Option<RedactionPointer>,
}

/// Asks a model that reads files, until it answers.
pub async fn run(client: Client) -> Result<(), Failure> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_nanos());
    // The budget is too small at first, to show what the daemon says then.
    let mut a = Agent {
        client,
        session: format!("agent-rust-{now}"),
        head: 0,
        budget: 16,
        context: HeldContext::default(),
        pointer: None,
    };
    a.append(vec![
        said(
            "system",
            Role::System,
            vec![text("You find faults in programs.")],
        ),
        said(
            "question",
            Role::User,
            vec![text("Why is the last flag not obeyed?")],
        ),
    ])
    .await?;
    let mut model = Model::default();
    loop {
        a.assemble().await?;
        let response = model.call(&request(&a.context, MODEL)?)?;
        if model.turns == 2 {
            // What the user says meanwhile goes into the log from elsewhere.
            a.interject("It worked last week.").await?;
        }
        a.append(vec![response.event(&format!("reply-{}", model.turns))])
            .await?;
        if response.calls.is_empty() {
            println!("answer: {}", response.text);
            return a.resolve().await;
        }
        a.append(response.calls.iter().map(tool).collect()).await?;
    }
}

impl Agent {
    /// Appends after what the agent knows of. Where the log has grown meanwhile, reads /
    //what came and appends after it. Can be repeated because events have ids.
    async fn append(&mut self, events: Vec<Event>) -> Result<(), Failure> {
        let mut patience = Patience::begin()?;
        loop {
            let request = AppendEventsRequest {
                session_id: self.session.clone(),
                events: events.clone(),
                expected_head: Some(self.head),
                ..Default::default()
            };
            let failure = match self.client.append_events(request).await {
                Ok(response) => {
                    self.head = response.into_inner().last_seq;
                    return Ok(());
                }
                Err(status) => Failure::from(status),
            };
            let (reason, metadata) = failure.reason();
            let head = metadata.get("head_seq").and_then(|h| h.parse().ok());
            match head {
                Some(head) if reason == "HEAD_MISMATCH" && head > self.head => {
                    self.catch_up(head).await?
                }
                _ => patience.wait(failure).await?,
            }
        }
    }

    /// Reads what others appended.
    async fn catch_up(&mut self, head: u64) -> Result<(), Failure> {
        let request = ReadEventsRequest {
            session_id: self.session.clone(),
            from_seq: self.head + 1,
            to_seq: head,
            ..Default::default()
        };
        let mut stream = self.client.read_events(request).await?.into_inner();
        while let Some(response) = stream.message().await? {
            for e in response.events {
                self.head = e.seq;
                println!("meanwhile, event {}: {}", e.seq, first_text(&e));
            }
        }
        Ok(())
    }

    async fn interject(&mut self, what: &str) -> Result<(), Failure> {
        let request = AppendEventsRequest {
            session_id: self.session.clone(),
            events: vec![said("", Role::User, vec![text(what)])],
            ..Default::default()
        };
        self.client.append_events(request).await?;
        Ok(())
    }

    /// Brings the context up to date. Where it cannot be made to fit, says what is in
    /// the way and takes a larger budget.
    async fn assemble(&mut self) -> Result<(), Failure> {
        let mut patience = Patience::begin()?;
        loop {
            let request = AssembleContextRequest {
                session_id: self.session.clone(),
                format: Format::Anthropic as i32,
                budget: Some(Budget {
                    max_tokens: self.budget,
                    ..Default::default()
                }),
                ..Default::default()
            };
            match self.context.assemble(&mut self.client, request).await {
                Ok(sent) => {
                    self.report(sent);
                    return Ok(());
                }
                Err(failure) => match failure.budget_exceeded() {
                    Some(exceeded) if self.budget < 2400 => {
                        for part in exceeded.parts {
                            println!(
                                "{} tokens are too few: {} takes {}",
                                self.budget, part.what, part.tokens
                            );
                        }
                        self.budget = 2400;
                    }
                    _ => patience.wait(failure).await?,
                },
            }
        }
    }

    fn report(&mut self, sent: usize) {
        let Some(header) = &self.context.header else {
            return;
        };
        let pointers = header
            .projection
            .as_ref()
            .map_or(&[][..], |p| &p.redaction_pointers);
        if let Some(pointer) = pointers.first() {
            self.pointer = Some(pointer.clone());
        }
        if let Some(b) = &header.have_broken {
            println!(
                "rewritten from message {} on by {}: {}",
                b.index, b.reducer, b.reason
            );
        }
        let tokens = header.budget.as_ref().map_or(0, |b| b.projected_tokens);
        println!(
            "{} messages, {sent} of them new, {tokens} tokens",
            self.context.messages.len()
        );
    }

    /// Gets back a body that gave way to a pointer.
    async fn resolve(&mut self) -> Result<(), Failure> {
        let pointer = self.pointer.take().ok_or("no body gave way to a pointer")?;
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
        let Some(block::Kind::ToolResult(result)) = block.and_then(|b| b.kind) else {
            return Err(format!("{} names no tool result", pointer.pointer).into());
        };
        if body_hash(&result) != pointer.content_hash {
            return Err(format!("{} gives back another body", pointer.pointer).into());
        }
        println!(
            "{} is still there: {} characters",
            pointer.pointer, pointer.content_chars
        );
        Ok(())
    }
}

fn first_text(e: &Event) -> &str {
    let Some(event::Kind::Message(m)) = &e.kind else {
        return "";
    };
    match m.blocks.first().and_then(|b| b.kind.as_ref()) {
        Some(block::Kind::Text(t)) => &t.text,
        _ => "",
    }
}
