//! The agent as its user runs it, on recorded hosts.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by ending")]

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use serde_json::{Value, json};

fn agent(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bifold-node-agent")).args(args).output().unwrap()
}

fn recording(name: &str) -> String {
    format!("{}/tests/hosts/{name}.json", env!("CARGO_MANIFEST_DIR"))
}

fn facts(name: &str) -> Value {
    let out = agent(&["facts", "-o", "json", "--replay", &recording(name)]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

#[test]
fn a_host_of_the_docker_era() {
    let expected = json!({
        "host": {"build": "10.0.17763", "revision": 5329, "product": "Windows Server 2019 Datacenter",
                 "edition": "ServerDatacenter", "installationType": "Server"},
        "runtime": {"name": "docker", "version": ""},
        "services": [{"name": "docker", "command": r#""C:\Program Files\Docker\dockerd.exe" --run-service"#}],
        "gaps": [],
    });
    assert_eq!(facts("ws2019-docker"), expected);
}

#[test]
fn a_runtime_behind_a_service_wrapper() {
    let expected = json!({
        "host": {"build": "10.0.20348", "revision": 2762, "product": "Windows Server 2022 Datacenter",
                 "edition": "ServerDatacenter", "installationType": "Server Core"},
        "runtime": {"name": "containerd", "version": "", "endpoint": "npipe:////./pipe/containerd-containerd"},
        "services": [{"name": "containerd", "command": r#""C:\Program Files\containerd\containerd.exe" --address \\.\pipe\containerd-containerd --config C:\ProgramData\containerd\config.toml"#}],
        "gaps": [],
    });
    assert_eq!(facts("ws2022-nssm"), expected);
}

#[test]
fn containerd_comes_before_a_docker_that_is_installed_too() {
    let found = facts("ws2025-containerd");
    assert_eq!(found["host"]["build"], "10.0.26100");
    assert_eq!(found["runtime"], json!({"name": "containerd", "version": ""}));
    assert_eq!(found["services"].as_array().unwrap().len(), 2);
}

#[test]
fn what_is_missing_or_of_another_type_is_named_and_the_rest_is_told() {
    let key = |value: &str| format!(r"SOFTWARE\Microsoft\Windows NT\CurrentVersion\{value}");
    let expected = json!({
        "host": {"build": "10.0.20348"},
        "services": [],
        "gaps": [
            {"value": r"SYSTEM\CurrentControlSet\Services\containerd\Parameters\Application", "why": "is not there"},
            {"value": r"SYSTEM\CurrentControlSet\Services\docker\ImagePath", "why": "is the number 1 instead of a text"},
            {"value": key("UBR"), "why": r#"is the text "2762" instead of a number"#},
            {"value": key("ProductName"), "why": "is not there"},
            {"value": key("EditionID"), "why": "cannot be read: Access is denied."},
            {"value": key("InstallationType"), "why": "is REG_BINARY instead of a text"},
        ],
    });
    assert_eq!(facts("damaged"), expected);
}

#[test]
fn a_registry_that_tells_nothing_is_still_reported() {
    let found = facts("empty");
    assert_eq!((&found["host"], &found["runtime"]), (&Value::Null, &Value::Null));
    assert_eq!(found["gaps"].as_array().unwrap().len(), 5);
}

#[test]
fn the_text_says_the_same() {
    let out = agent(&["facts", "--replay", &recording("damaged")]);
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.starts_with("Build         10.0.20348\nProduct       not known\n"), "{text}");
    assert!(text.contains("Runtime       none is installed as a service\n"), "{text}");
    assert!(text.contains(
        r"Gap           HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion\ProductName is not there"
    ));
}

/// Whatever an answer is replaced by, the agent reports.
#[test]
fn no_answer_of_a_host_makes_the_agent_fail() {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for (name, value) in [
        ("text", json!({"text": "\"unfinished"})),
        ("empty-text", json!({"text": ""})),
        ("huge", json!({"number": u64::MAX})),
        ("other", json!({"other": "REG_MULTI_SZ"})),
        ("refused", json!({"refused": ""})),
    ] {
        let mut host: Value = serde_json::from_slice(&fs::read(recording("ws2022-nssm")).unwrap()).unwrap();
        for values in host["registry"].as_object_mut().unwrap().values_mut() {
            for answer in values.as_object_mut().unwrap().values_mut() {
                *answer = value.clone();
            }
        }
        let file = scratch.join(format!("{name}.json"));
        fs::write(&file, host.to_string()).unwrap();
        for form in ["json", "text"] {
            let out = agent(&["facts", "-o", form, "--replay", file.to_str().unwrap()]);
            assert!(out.status.success(), "{name}: {}", String::from_utf8_lossy(&out.stderr));
        }
    }
}

#[test]
fn a_file_that_is_no_recording_is_refused_with_its_name() {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for (name, content, says) in [
        ("garbage", "{", "is not a recorded host"),
        ("later", r#"{"bifoldHost": 2, "hns": {}}"#, "is a recording of form 2"),
        ("field", r#"{"bifoldHost": 1, "origin": "", "registry": {}, "hns": {}}"#, "unknown field `hns`"),
    ] {
        let file = scratch.join(format!("{name}.json"));
        fs::write(&file, content).unwrap();
        let out = agent(&["facts", "--replay", file.to_str().unwrap()]);
        let said = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(1), "{said}");
        assert!(said.contains(says) && said.contains(name), "{said}");
    }
    let out = agent(&["facts", "--replay", "no-such-file"]);
    assert!(String::from_utf8(out.stderr).unwrap().contains("no-such-file"));
}

#[cfg(not(windows))]
#[test]
fn elsewhere_it_says_that_it_reads_windows_hosts_and_how_to_replay() {
    for args in [&["facts"][..], &["record", "host.json"]] {
        let out = agent(args);
        let said = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(1), "{said}");
        assert!(said.contains("reads Windows hosts only") && said.contains("facts --replay FILE"), "{said}");
        assert!(!Path::new("host.json").exists());
    }
}
