//! What an error of the API says; docs/api-errors.md lists the reasons.

use std::{collections::HashMap, error::Error, fmt, time::Duration};

use prost::Message;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::api::BudgetExceeded;

/// Why something could not be done.
#[derive(Debug)]
pub enum Failure {
    /// The daemon's answer.
    Api(Box<Status>),
    /// What the client itself found.
    Client(String),
}

impl Failure {
    /// The code as google.rpc.Code names it.
    pub fn code(&self) -> &'static str {
        match self {
            Failure::Client(_) => "UNKNOWN",
            Failure::Api(status) => match status.code() {
                Code::Ok => "OK",
                Code::Cancelled => "CANCELLED",
                Code::Unknown => "UNKNOWN",
                Code::InvalidArgument => "INVALID_ARGUMENT",
                Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
                Code::NotFound => "NOT_FOUND",
                Code::AlreadyExists => "ALREADY_EXISTS",
                Code::PermissionDenied => "PERMISSION_DENIED",
                Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
                Code::FailedPrecondition => "FAILED_PRECONDITION",
                Code::Aborted => "ABORTED",
                Code::OutOfRange => "OUT_OF_RANGE",
                Code::Unimplemented => "UNIMPLEMENTED",
                Code::Internal => "INTERNAL",
                Code::Unavailable => "UNAVAILABLE",
                Code::DataLoss => "DATA_LOSS",
                Code::Unauthenticated => "UNAUTHENTICATED",
            },
        }
    }

    /// The first field at fault, or nothing.
    pub fn field(&self) -> String {
        self.status()
            .and_then(|s| s.get_details_bad_request())
            .and_then(|d| d.field_violations.into_iter().next())
            .map_or_else(String::new, |v| v.field)
    }

    /// The stable word for what happened, and its metadata.
    pub fn reason(&self) -> (String, HashMap<String, String>) {
        self.status()
            .and_then(|s| s.get_details_error_info())
            .map_or_else(Default::default, |d| (d.reason, d.metadata))
    }

    /// How long to wait before trying again. None: waiting does not help.
    pub fn retry(&self) -> Option<Duration> {
        self.status()?.get_details_retry_info()?.retry_delay
    }

    /// No daemon answered, which would have given a reason. tonic calls a connection that broke
    /// in the middle of an answer by several codes.
    pub fn unanswered(&self) -> bool {
        self.status().is_some_and(|s| {
            (s.code() == Code::Unavailable || s.source().is_some()) && self.reason().0.is_empty()
        })
    }

    /// What of a context cannot be reduced.
    pub fn budget_exceeded(&self) -> Option<BudgetExceeded> {
        // The details that are not google.rpc's own are unpacked by hand.
        let status = tonic_types::pb::Status::decode(self.status()?.details()).ok()?;
        let any = status
            .details
            .iter()
            .find(|d| d.type_url.ends_with("/contextd.v1.BudgetExceeded"))?;
        BudgetExceeded::decode(any.value.as_slice()).ok()
    }

    fn status(&self) -> Option<&Status> {
        match self {
            Failure::Api(status) => Some(status),
            Failure::Client(_) => None,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Api(status) => write!(f, "{}: {}", self.code(), status.message()),
            Failure::Client(what) => f.write_str(what),
        }
    }
}

impl Error for Failure {}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Failure::Api(Box::new(status))
    }
}

impl From<String> for Failure {
    fn from(what: String) -> Self {
        Failure::Client(what)
    }
}

impl From<&str> for Failure {
    fn from(what: &str) -> Self {
        Failure::Client(what.to_string())
    }
}

impl From<serde_json::Error> for Failure {
    fn from(err: serde_json::Error) -> Self {
        Failure::Client(err.to_string())
    }
}

impl From<std::io::Error> for Failure {
    fn from(err: std::io::Error) -> Self {
        Failure::Client(err.to_string())
    }
}
