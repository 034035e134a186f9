//! `crds/manifests/*.yaml` is generated from the Rust types: this test compares, and with `BLESS=1` writes.

use std::{env, fs, path::Path};

use kube::CustomResourceExt as _;

const HEADER: &str =
    "# Generated from the Rust types in crds/src by `BLESS=1 cargo test -p bifold-crds --test manifests`.\n";

#[test]
fn the_manifests_are_those_of_the_types() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests");
    for definition in bifold_crds::definitions() {
        let path = dir.join(format!("{}.yaml", definition.spec.names.plural));
        // Through `Value`, whose maps are sorted: the order of the keys then says nothing about field order in Rust.
        let value = serde_json::to_value(&definition).unwrap();
        let wanted = format!("{HEADER}{}", serde_saphyr::to_string(&value).unwrap());
        if env::var_os("BLESS").is_some() {
            fs::write(&path, &wanted).unwrap();
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert!(found == wanted, "{} is stale: run the command in its first line", path.display());
    }
}

#[test]
fn every_field_is_described() {
    for definition in bifold_crds::definitions() {
        let value = serde_json::to_value(&definition).unwrap();
        let schema = &value["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        for part in ["spec", "status"] {
            assert_described(&schema["properties"][part], &format!("{}.{part}", definition.spec.names.kind));
        }
    }
}

/// Fails at the first property, however deep, that `kubectl explain` would show without a sentence.
fn assert_described(schema: &serde_json::Value, path: &str) {
    assert!(schema["description"].as_str().is_some_and(|d| d.len() > 8), "{path} has no description");
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        assert_described(property, &format!("{path}.{name}"));
    }
    for (name, property) in schema["items"]["properties"].as_object().into_iter().flatten() {
        assert_described(property, &format!("{path}[].{name}"));
    }
}

#[test]
fn names_are_short_and_shared_by_one_category() {
    let short_names: Vec<_> = bifold_crds::definitions()
        .into_iter()
        .map(|d| {
            assert_eq!(d.spec.names.categories, Some(vec!["bifold".to_owned()]));
            assert_eq!(d.spec.scope, "Cluster");
            d.spec.names.short_names.unwrap_or_default().join(",")
        })
        .collect();
    assert_eq!(short_names, ["wnp", "wwp", "wn"]);
    assert_eq!(bifold_crds::WindowsNodePool::crd_name(), "windowsnodepools.bifold.dev");
}
