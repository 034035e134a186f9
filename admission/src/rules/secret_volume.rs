//! `secret-volume`: on Linux the files of a Secret are in memory, on Windows they are on the node's disk, in clear
//! text and readable by every local user.
//!
//! Every pod mounts a token: a projected volume `kube-api-access-…` without any Secret in it. It passes by that shape.
//! Its name says nothing: the API server takes any volume of such a name for its own, whatever is in it.

use super::{Basis, Hit};
use crate::{
    case::Case,
    evidence::Verdict,
    pod::{ContainerKind, SecretSource, Spec, text},
    question::Subject,
    shown::Shown,
};

pub(super) fn check(case: &Case<'_>, hits: &mut Vec<Hit>) {
    if case.os != Verdict::Windows {
        return;
    }
    for (index, volume) in case.spec.volumes.iter().flat_map(|v| v.iter()).enumerate() {
        let name = text(&volume.name);
        let sources = volume.projected.as_ref().and_then(|p| p.sources.as_deref()).unwrap_or_default();
        let projected = sources.iter().enumerate().filter_map(|(i, source)| {
            let secret = source.secret.as_ref()?;
            Some((format!("projected.sources[{i}].secret"), secret, text(&secret.name)))
        });
        let plain = volume.secret.iter().map(|s| ("secret".to_owned(), s, text(&s.secret_name)));
        for (field, source, secret) in plain.chain(projected) {
            let Some(container) = mounter(case, name) else { break };
            hits.push(Hit {
                path: format!("spec.volumes[{index}].{field}"),
                message: format!(
                    "volume \"{}\" writes Secret \"{}\" to the Windows node's disk in clear text",
                    Shown(name),
                    Shown(secret)
                ),
                remedy: remedy(container, secret, source),
                basis: Basis::Pod,
            });
        }
    }
}

/// The name of a container that mounts the volume. An update of ephemeral containers answers for those only.
fn mounter<'c>(case: &Case<'c>, volume: &str) -> Option<&'c str> {
    let spec: &'c Spec<'c> = case.spec;
    let only_ephemeral = case.request.subject == Subject::EphemeralContainers;
    let mut containers =
        spec.all_containers().filter(|(kind, ..)| !only_ephemeral || *kind == ContainerKind::Ephemeral);
    let mounts = |c: &crate::pod::Container<'_>| {
        c.volume_mounts.iter().flat_map(|m| m.iter()).any(|m| text(&m.name) == volume)
    };
    containers.find(|(_, _, c)| mounts(c)).map(|(_, _, c)| text(&c.name))
}

/// The YAML to write. Which keys there are is only known where the volume lists them.
fn remedy(container: &str, secret: &str, source: &SecretSource<'_>) -> String {
    let secret = Shown(secret);
    let entry = |key: &str| {
        let variable = variable(key);
        format!("{{name: {variable}, valueFrom: {{secretKeyRef: {{name: {secret}, key: {}}}}}}}", Shown(key))
    };
    let keys: Vec<&str> =
        source.items.iter().flat_map(|i| i.iter()).take(4).map(|item| text(&item.key)).collect();
    let container = Shown(container);
    if keys.is_empty() {
        format!(
            "in container \"{container}\" write env: [{}] for each key, or envFrom: [{{secretRef: {{name: {secret}}}}}]",
            entry("KEY")
        )
    } else {
        let entries: Vec<String> = keys.into_iter().map(entry).collect();
        format!("in container \"{container}\" write env: [{}]", entries.join(", "))
    }
}

/// A name for the environment variable of a key: `tls.key` becomes `TLS_KEY`.
fn variable(key: &str) -> String {
    let upper = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let first = if key.starts_with(|c: char| c.is_ascii_digit()) { "_" } else { "" };
    first.chars().chain(key.chars().take(64).map(upper)).collect()
}

#[cfg(test)]
mod tests {
    use crate::testing::{findings, windows};
    use bifold_crds::workload_policy::RuleAction;
    use serde_json::{Value, json};

    fn mounted(volume: &Value) -> Value {
        windows(&json!({
            "containers": [{ "name": "app", "image": "a", "volumeMounts": [{ "name": "v", "mountPath": "C:/v" }] }],
            "volumes": [volume]
        }))
    }

    #[test]
    fn a_mounted_secret_is_found_where_it_stands_and_nothing_else_is() {
        let table = [
            (
                "secret",
                json!({ "name": "v", "secret": { "secretName": "db" } }),
                Some("spec.volumes[0].secret"),
            ),
            (
                "projected secret",
                json!({ "name": "v", "projected": { "sources": [{ "configMap": {} }, { "secret": { "name": "db" } }] } }),
                Some("spec.volumes[0].projected.sources[1].secret"),
            ),
            (
                "a secret that calls itself a token volume",
                json!({ "name": "v", "projected": { "sources": [
                    { "serviceAccountToken": { "path": "token" } }, { "secret": { "name": "db" } }] } }),
                Some("spec.volumes[0].projected.sources[1].secret"),
            ),
            (
                "the token volume",
                json!({ "name": "v", "projected": { "sources": [
                    { "serviceAccountToken": { "path": "token", "expirationSeconds": 3607 } },
                    { "configMap": { "name": "kube-root-ca.crt" } }, { "configMap": { "name": "openshift-service-ca.crt" } },
                    { "downwardAPI": { "items": [] } }, { "clusterTrustBundle": {} }] } }),
                None,
            ),
            ("null", json!({ "name": "v", "secret": null, "projected": { "sources": null } }), None),
            ("config map", json!({ "name": "v", "configMap": { "name": "c" } }), None),
            ("CSI", json!({ "name": "v", "csi": { "driver": "secrets-store.csi.k8s.io" } }), None),
            ("not mounted", json!({ "name": "other", "secret": { "secretName": "db" } }), None),
        ];
        for (name, volume, expected) in table {
            let found = findings(&mounted(&volume));
            let paths: Vec<&str> =
                found.iter().filter(|f| f.rule == "secret-volume").map(|f| f.path.as_str()).collect();
            assert_eq!(paths, expected.into_iter().collect::<Vec<_>>(), "{name}");
        }
    }

    #[test]
    fn a_name_like_that_of_the_token_volume_does_not_help() {
        let pod = windows(&json!({
            "initContainers": [{ "name": "i", "volumeMounts": [{ "name": "kube-api-access-zzzzz" }] }],
            "volumes": [{ "name": "kube-api-access-zzzzz", "secret": { "secretName": "db" } }]
        }));
        assert_eq!(findings(&pod)[0].path, "spec.volumes[0].secret");
    }

    #[test]
    fn the_remedy_is_yaml_to_paste() {
        let volume = json!({ "name": "v", "secret": { "secretName": "db", "items": [{ "key": "tls.key", "path": "x" }] } });
        let found = findings(&mounted(&volume));
        assert_eq!(found[0].action, RuleAction::Deny);
        assert_eq!(
            found[0].remedy,
            "in container \"app\" write env: [{name: TLS_KEY, valueFrom: {secretKeyRef: {name: db, key: tls.key}}}]"
        );
        let found = findings(&mounted(&json!({ "name": "v", "secret": { "secretName": "db" } })));
        assert!(found[0].remedy.ends_with("or envFrom: [{secretRef: {name: db}}]"), "{}", found[0].remedy);
    }

    #[test]
    fn a_linux_pod_may_mount_secrets() {
        let mut pod = mounted(&json!({ "name": "v", "secret": { "secretName": "db" } }));
        pod["spec"]["nodeSelector"] = json!({ "kubernetes.io/os": "linux" });
        assert_eq!(findings(&pod), []);
    }
}
