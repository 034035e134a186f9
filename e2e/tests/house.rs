//! The house rules that a compiler does not check: who imports whom, and what the pure crates must not reach.

#![allow(clippy::unwrap_used, reason = "a test's helpers may fail as a test does")]

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use cargo_metadata::{Metadata, MetadataCommand};

/// Every crate of the workspace and the crates of the workspace that it may import. Nothing else.
const MAY_IMPORT: [(&str, &[&str]); 8] = [
    ("bifold-crds", &[]),
    ("bifold-admission", &["bifold-crds"]),
    ("bifold-runtime", &[]),
    ("bifold-webhook", &["bifold-crds", "bifold-admission", "bifold-runtime"]),
    ("bifold-operator", &["bifold-crds", "bifold-admission", "bifold-runtime"]),
    ("bifold-node-agent", &["bifold-crds", "bifold-runtime"]),
    ("kubectl-bifold", &["bifold-crds", "bifold-admission"]),
    ("bifold-e2e", &["bifold-crds"]),
];

/// Crates that decide and do nothing else.
const PURE: [&str; 2] = ["bifold-crds", "bifold-admission"];

/// What a pure crate must not reach, however indirectly: run times, clients, sockets.
const IMPURE: [&str; 8] =
    ["tokio", "kube-client", "kube-runtime", "hyper", "rustls", "axum", "reqwest", "mio"];

fn metadata() -> Metadata {
    MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
        .exec()
        .unwrap()
}

#[test]
fn no_crate_imports_what_it_may_not() {
    let allowed: BTreeMap<&str, &[&str]> = MAY_IMPORT.into_iter().collect();
    let metadata = metadata();
    let members = metadata.workspace_packages();
    assert_eq!(
        members.iter().map(|p| p.name.as_str()).collect::<BTreeSet<_>>(),
        allowed.keys().copied().collect(),
        "a crate was added or removed: say here whom it may import"
    );
    for package in &members {
        let may = allowed[package.name.as_str()];
        for dependency in &package.dependencies {
            let ours = allowed.contains_key(dependency.name.as_str());
            assert!(
                !ours || may.contains(&dependency.name.as_str()),
                "{} must not import {}",
                package.name,
                dependency.name
            );
        }
    }
}

/// `cargo metadata` resolves the workspace as one, where the binaries switch on features of shared crates; so this
/// asks for each pure crate's own tree.
#[test]
fn the_pure_crates_cannot_do_io() {
    for name in PURE {
        let tree = Command::new(env!("CARGO"))
            .args(["tree", "--package", name, "--edges", "normal", "--prefix", "none", "--format", "{lib}"])
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
            .output()
            .unwrap();
        assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
        let reached: BTreeSet<String> =
            String::from_utf8(tree.stdout).unwrap().lines().map(|l| l.trim().replace('_', "-")).collect();
        assert!(reached.contains("serde"), "the tree of {name} was not understood: {reached:?}");
        for impure in IMPURE {
            assert!(!reached.contains(impure), "{name} reaches {impure}");
        }
    }
}

/// Two copies of one of these would not accept each other's types.
#[test]
fn the_libraries_that_the_crates_share_are_there_once() {
    let metadata = metadata();
    for name in ["kube-core", "k8s-openapi", "json-patch", "rustls"] {
        let versions: Vec<_> =
            metadata.packages.iter().filter(|p| p.name == name).map(|p| p.version.to_string()).collect();
        assert_eq!(versions.len(), 1, "{name}: {versions:?}");
    }
}
