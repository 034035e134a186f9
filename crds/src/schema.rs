//! Pieces of OpenAPI schema that several kinds share, with the bounds that the API server needs to price CEL rules.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::windows_build::WindowsBuild;

/// CEL: the keys of a map are label keys (a name of at most 63 characters, with an optional DNS prefix).
pub(crate) const LABEL_KEYS: &str = r"self.all(k, k.matches('^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))";
/// CEL: the key of a taint or of a requirement has the form of a label key.
pub(crate) const LABEL_KEY: &str = r"self.matches('^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')";
/// What [`LABEL_KEYS`] says when it fails.
pub(crate) const LABEL_KEYS_MESSAGE: &str = "every key must be a label key: letters, digits, '-', '_' and '.', at most 63 characters, optionally after a DNS prefix and '/'";
/// What [`LABEL_KEY`] says when it fails.
pub(crate) const LABEL_KEY_MESSAGE: &str = "must have the form of a label key: letters, digits, '-', '_' and '.', at most 63 characters, optionally after a DNS prefix and '/'";

/// Pattern of a label value (`metav1` validation): empty, or at most 63 characters that begin and end alphanumerically.
const LABEL_VALUE: &str = "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$";

/// A map of at most 32 labels.
pub(crate) fn labels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 32,
        "additionalProperties": { "type": "string", "maxLength": 63, "pattern": LABEL_VALUE },
    })
}

/// One label value.
pub(crate) fn label_value(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "maxLength": 63, "pattern": LABEL_VALUE })
}

/// At most 32 label values.
pub(crate) fn label_values(generate: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "maxItems": 32, "items": label_value(generate) })
}

/// A map of resource quantities, such as `{memory: 512Mi}`.
pub(crate) fn quantities(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 16,
        "additionalProperties": {
            "x-kubernetes-int-or-string": true,
            "pattern": r"^[0-9]+(\.[0-9]+)?(([KMGTPE]i)|[numkMGTPE]|([eE][+-]?[0-9]+))?$",
        },
    })
}

impl JsonSchema for WindowsBuild {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "WindowsBuild".into()
    }

    /// The form is checked by a CEL rule and not by a pattern, for the sake of its message.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "maxLength": 16,
            "x-kubernetes-validations": [{
                "rule": r"self.matches('^10\\.0\\.[1-9][0-9]{4}$')",
                "message": "must have the form 10.0.<number>, such as 10.0.20348 (without a revision)",
            }],
        })
    }
}
