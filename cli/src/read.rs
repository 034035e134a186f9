//! First step: from files to documents, each with the place where it begins.

use std::{
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use bifold_admission::Policy;
use bifold_crds::WindowsWorkloadPolicy;
use serde_json::Value;

/// Stands for standard input.
const STANDARD_INPUT: &str = "-";
/// Endings of the files that are read from a directory.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// An object and where it was found.
#[derive(Debug)]
pub(crate) struct Document {
    /// The file, as given.
    pub(crate) file: String,
    /// The line of the file in which the document begins, from 1.
    pub(crate) line: usize,
    pub(crate) object: Value,
}

/// Reads every document of the files, and of the files below the directories. Lists are taken apart.
pub(crate) fn documents(paths: &[PathBuf]) -> Result<Vec<Document>> {
    let mut found = Vec::new();
    for path in paths {
        if path.as_os_str() == STANDARD_INPUT {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).context("read standard input")?;
            split("<stdin>", &text, &mut found)?;
            continue;
        }
        for file in files(path)? {
            let text = fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
            split(&file.display().to_string(), &text, &mut found)?;
        }
    }
    Ok(found)
}

/// Reads the one policy of a file.
pub(crate) fn policy(path: &Path) -> Result<Policy> {
    let text = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    let policy: WindowsWorkloadPolicy = serde_saphyr::from_str(&text)
        .with_context(|| format!("{}: not a WindowsWorkloadPolicy", path.display()))?;
    Ok(Policy::new(policy.metadata.name, &policy.spec))
}

/// The file itself, or those below the directory, in alphabetical order.
fn files(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = fs::read_dir(path).with_context(|| format!("read directory {}", path.display()))?;
    let mut entries: Vec<PathBuf> = entries.map(|e| Ok(e?.path())).collect::<io::Result<_>>()?;
    entries.sort();
    let mut found = Vec::new();
    for entry in entries {
        let readable = entry.extension().is_some_and(|e| ENDINGS.iter().any(|known| e == *known));
        if readable || entry.is_dir() {
            found.extend(files(&entry)?);
        }
    }
    Ok(found)
}

/// Takes a stream of documents apart at its markers: a line that begins with `---` is one wherever it stands (YAML
/// 1.2, §9.1.2), also in a block scalar.
fn split(file: &str, text: &str, found: &mut Vec<Document>) -> Result<()> {
    let mut begin = 1;
    let mut lines: Vec<&str> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.strip_prefix("---").is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t'])) {
            parse(file, begin, &lines, found)?;
            begin = number + 1;
            lines.clear();
        } else {
            lines.push(line);
        }
    }
    parse(file, begin, &lines, found)
}

fn parse(file: &str, begin: usize, lines: &[&str], found: &mut Vec<Document>) -> Result<()> {
    let means_something = |line: &&&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let Some(blank) = lines.iter().position(|line| means_something(&line)) else { return Ok(()) };
    // Positions in messages are then those of the file.
    let text = "\n".repeat(begin - 1) + &lines.join("\n");
    let object: Value =
        serde_saphyr::from_str(&text).with_context(|| format!("{file} is not YAML or JSON"))?;
    flatten(file, begin + blank, object, found);
    Ok(())
}

fn flatten(file: &str, line: usize, object: Value, found: &mut Vec<Document>) {
    let is_list = object["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
    match object {
        Value::Object(mut fields) if is_list => {
            if let Some(Value::Array(items)) = fields.remove("items") {
                for item in items {
                    flatten(file, line, item, found);
                }
            }
        }
        object => found.push(Document { file: file.to_owned(), line, object }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        split("f", text, &mut found).unwrap();
        found
            .iter()
            .map(|d| (d.line, d.object["metadata"]["name"].as_str().unwrap_or("").to_owned()))
            .collect()
    }

    #[test]
    fn documents_begin_where_they_begin() {
        let text = "# a comment\n---\nkind: Pod\nmetadata: {name: a}\n---\n# Source: x\n\nkind: Pod\nmetadata: {name: b}\n---\n";
        assert_eq!(read(text), [(3, "a".to_owned()), (8, "b".to_owned())]);
    }

    #[test]
    fn a_list_is_its_items() {
        let text = r#"{"kind": "List", "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]}"#;
        assert_eq!(read(text), [(1, "a".to_owned()), (1, "b".to_owned())]);
    }

    #[test]
    fn an_error_names_the_line_of_the_file() {
        let error = split("f.yaml", "kind: Pod\n---\nkind: Pod\n  bad: [\n", &mut Vec::new()).unwrap_err();
        let error = format!("{error:#}");
        assert!(error.starts_with("f.yaml is not YAML or JSON") && error.contains("line 4"), "{error}");
    }
}
