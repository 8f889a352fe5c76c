//! What a client keeps of one session's context in one format.

use sha2::{Digest, Sha256};
use tonic::transport::Channel;

use crate::api::{
    assemble_context_response::Part, context_service_client::ContextServiceClient,
    AssembleContextRequest, ContextHeader, ContextTrailer, Have, RenderedMessage, ToolResult,
};
use crate::errors::Failure;

/// The client of the API. Cloning it is cheap: clones share the connection.
pub type Client = ContextServiceClient<Channel>;

/// The messages that were received, with their bytes as they came.
#[derive(Default)]
pub struct HeldContext {
    pub messages: Vec<RenderedMessage>,
    /// Of the newest assembly.
    pub header: Option<ContextHeader>,
}

impl HeldContext {
    /// What the daemon need not send again. Messages after `prefix_messages` are gone /
    //next time, or joined with others.
    fn have(&self) -> Option<Have> {
        let n = self.header.as_ref()?.prefix_messages;
        (n > 0).then(|| Have {
            message_count: n,
            prefix_hash: hash_of(&self.messages[..n as usize]),
        })
    }

    /// Brings the messages up to date, checks them, and says how many were sent. What
    /// is held stays as it is where an error is returned.
    pub async fn assemble(
        &mut self,
        client: &mut Client,
        mut request: AssembleContextRequest,
    ) -> Result<usize, Failure> {
        request.have = self.have();
        let had = request.have.as_ref().map_or(0, |h| h.message_count);
        let mut stream = client.assemble_context(request).await?.into_inner();
        let (mut header, mut trailer, mut fresh) = (None, None, Vec::new());
        while let Some(response) = stream.message().await? {
            match response.part {
                Some(Part::Header(part)) => header = Some(part),
                Some(Part::Chunk(part)) => fresh.extend(part.messages),
                Some(Part::Trailer(part)) => trailer = Some(part),
                None => {}
            }
        }
        let (Some(header), Some(trailer)) = (header, trailer) else {
            return Err("the answer has no header or no trailer".into());
        };
        let sent = fresh.len();
        let skipped = header.skipped_messages as usize;
        if skipped > self.messages.len() {
            return Err(format!(
                "{skipped} messages are skipped, {} held",
                self.messages.len()
            )
            .into());
        }
        // What is not skipped was rewritten, and comes again.
        let mut messages = self.messages[..skipped].to_vec();
        messages.extend(fresh);
        check(&messages, had, &header, &trailer)?;
        self.messages = messages;
        self.header = Some(header);
        Ok(sent)
    }
}

/// Holds what was received to what the daemon says of it.
fn check(
    messages: &[RenderedMessage],
    had: u32,
    header: &ContextHeader,
    trailer: &ContextTrailer,
) -> Result<(), String> {
    let n = messages.len() as u32;
    if n != header.message_count || n != trailer.message_count {
        return Err(format!(
            "{n} messages; the header says {}",
            header.message_count
        ));
    }
    if let Some((i, m)) = (0u32..).zip(messages).find(|(i, m)| m.index != *i) {
        return Err(format!("message {i} says it is {}", m.index));
    }
    let hash = hash_of(messages);
    if hash != header.context_hash || hash != trailer.context_hash {
        return Err(format!(
            "the messages hash to {hash}; the header says {}",
            header.context_hash
        ));
    }
    if header.prefix_messages == n && header.prefix_hash != hash {
        return Err(format!(
            "nothing is injected, and the prefix hash is {}",
            header.prefix_hash
        ));
    }
    if header.have_broken.is_none() && header.skipped_messages != had {
        return Err(format!(
            "the prefix is unchanged, and {} of {had} are skipped",
            header.skipped_messages
        ));
    }
    Ok(())
}

/// contextd's hash over messages: of each its JSON and a newline.
pub fn hash_of(messages: &[RenderedMessage]) -> String {
    let mut hash = Sha256::new();
    for m in messages {
        hash.update(&m.json);
        hash.update(b"\n");
    }
    format!("sha256:{:x}", hash.finalize())
}

/// How many bytes `hash_of` covers.
pub fn size_of(messages: &[RenderedMessage]) -> usize {
    messages.iter().map(|m| m.json.len() + 1).sum()
}

/// The hash of a tool result's text, as a RedactionPointer has it.
pub fn body_hash(result: &ToolResult) -> String {
    use crate::api::block::Kind;
    let texts: Vec<&str> = result
        .content
        .iter()
        .filter_map(|b| match &b.kind {
            Some(Kind::Text(t)) => Some(t.text.as_str()),
            _ => None,
        })
        .collect();
    format!("sha256:{:x}", Sha256::digest(texts.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_holds_answers_to_their_hashes() {
        let messages = vec![RenderedMessage {
            json: br#"{"n":1.0}"#.to_vec(),
            ..Default::default()
        }];
        let hash = hash_of(&messages);
        let header = ContextHeader {
            message_count: 1,
            prefix_messages: 1,
            context_hash: hash.clone(),
            prefix_hash: hash.clone(),
            ..Default::default()
        };
        let trailer = ContextTrailer {
            message_count: 1,
            context_hash: hash,
        };
        assert_eq!(check(&messages, 0, &header, &trailer), Ok(()));
        assert!(check(&messages, 1, &header, &trailer)
            .unwrap_err()
            .contains("0 of 1"));
        let mut other = messages.clone();
        other[0].json = br#"{"n":1}"#.to_vec();
        assert!(check(&other, 0, &header, &trailer)
            .unwrap_err()
            .contains("hash to"));
    }
}
