//! Third step: what was found, for people or as JSON.

use std::{
    fmt::Write as _,
    io::{self, Write as _},
};

use anyhow::{Context as _, Result};
use bifold_admission::{RULES, rules::Rule};
use comfy_table::{Table, presets};

use crate::{args::Output, check::Checked};

/// Prints what was found. A reader that has seen enough and closed the pipe is no error.
pub(crate) fn print(checked: &[Checked<'_>], documents: usize, output: Output) -> Result<()> {
    let text = match output {
        Output::Text => text(checked, documents),
        Output::Json => serde_json::to_string_pretty(checked)? + "\n",
    };
    write(&text)
}

/// Prints all rules in one table, or one of them in full.
pub(crate) fn rules(id: Option<&str>) -> Result<()> {
    let Some(id) = id else {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(["RULE", "DEFAULT", "FIRES WHEN"]);
        for rule in &RULES {
            table.add_row([rule.id.to_owned(), format!("{:?}", rule.default), rule.summary.to_owned()]);
        }
        return write(&format!("{}\n", table.trim_fmt()));
    };
    let rule = RULES.iter().find(|rule| rule.id == id);
    write(&one(rule.with_context(|| format!("there is no rule {id:?}; `kubectl bifold rules` lists them"))?))
}

fn one(rule: &Rule) -> String {
    let actions: Vec<String> = rule.actions.iter().map(|action| format!("{action:?}")).collect();
    format!(
        "{} fires when {}.\nDefault action: {:?} (of {}); a WindowsWorkloadPolicy may set another in spec.rules.\nMore: {}\n",
        rule.id,
        rule.summary,
        rule.default,
        actions.join(", "),
        rule.page()
    )
}

fn text(checked: &[Checked<'_>], documents: usize) -> String {
    let mut text = String::new();
    for Checked { file, line, kind, name, decision } in checked {
        for finding in &decision.findings {
            let _ = writeln!(
                text,
                "{file}:{line}: {kind} {name}: {:?} {}\n    {}: {}\n    {}",
                finding.action,
                finding.rule,
                finding.path,
                finding.message,
                finding.remedy.trim_end().replace('\n', "\n    ")
            );
        }
    }
    let refused = checked.iter().filter(|c| c.refused()).count();
    let _ = writeln!(
        text,
        "{documents} documents, {} with pods; {refused} would be refused on a cluster with Bifold",
        checked.len()
    );
    text
}

fn write(text: &str) -> Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("write to standard output"),
    }
}
