//! The number of workers, as written. Knows no other key of a pool.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::value::{Auto, Count, Size, Value, WordOr, number_in_quotes};

/// One worker for each core, a number, or a range.
pub type NumberOfWorkers = WordOr<Auto, WorkerRange>;

/// The memory for all workers.
pub type MemoryOfWorkers = Size<33_554_432, 1_099_511_627_776>;

/// The number of workers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct WorkerRange {
    /// The least number of workers. `0`: the pool has no process while it has no requests, and the first request starts a
    /// worker and waits for it (`wake_timeout`).
    pub min: Count<0, 1024>,
    /// The greatest number of workers.
    #[schemars(with = "Count<1, 1024>", extend("x-default" = "one for each core"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Count<1, 1024>>,
}

impl Default for WorkerRange {
    fn default() -> Self {
        Self { min: Count(1), max: None }
    }
}

impl Value for WorkerRange {
    fn expects() -> String {
        "a whole number from 1 to 1024 or a table such as { min = 0, max = 4 }".into()
    }

    /// A fixed number.
    fn of_number(number: i64) -> Option<Result<Self, String>> {
        let fixed = |count: Count<1, 1024>| Self { min: Count(count.0), max: Some(count) };
        Some(Count::checked(number).map(fixed))
    }

    fn schemas() -> Vec<Json> {
        vec![number_in_quotes(), json!({ "type": "integer", "minimum": 1, "maximum": 1024 })]
    }

    fn kinds() -> Vec<String> {
        vec!["number, 1 to 1024".into()]
    }
}
