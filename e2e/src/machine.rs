//! What this machine must have before anything is built or started.
//!
//! Everything is looked for first. On Debian and Ubuntu the missing packages are then installed; what is left is named
//! in one message.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::progress::Steps;
use crate::{paths, shell};

/// Programs that are run by name, and the Debian package that each comes from.
const PROGRAMS: [(&str, &str); 9] = [
    ("containerd", "containerd"),
    ("ctr", "containerd"),
    ("runc", "runc"),
    ("buildah", "buildah"),
    ("ip", "iproute2"),
    ("iptables", "iptables"),
    ("nft", "nftables"),
    ("musl-gcc", "musl-tools"),
    ("unshare", "util-linux"),
];

/// Where distributions put the CNI plugins.
const CNI_DIRECTORIES: [&str; 3] = ["/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"];
/// The plugins that the Linux node's network is made of.
const CNI_PLUGINS: [&str; 3] = ["ptp", "host-local", "portmap"];
const CNI_PACKAGE: &str = "containernetworking-plugins";

/// The Rust target of Bifold's images: static, so that they can be built `FROM scratch`.
pub(crate) fn image_target() -> String {
    format!("{}-unknown-linux-musl", std::env::consts::ARCH)
}

/// The Rust target that the node agent is checked for.
pub(crate) const WINDOWS_TARGET: &str = "x86_64-pc-windows-gnu";

/// Finds what is missing, installs what can be installed, and names the rest.
pub(crate) async fn prepare(steps: &Steps) -> Result<()> {
    if !nix::unistd::geteuid().is_root() {
        bail!("a cluster is made of network namespaces, mounts and control groups: run this as root");
    }
    let mut lacking = Vec::new();
    if let Some(why) = lacks_go().await {
        lacking.push(why);
    }
    let packages = missing_packages();
    if !packages.is_empty() {
        if is_debian() {
            steps.run(&format!("install {}", packages.join(", ")), install(&packages)).await?;
        } else {
            lacking.push(format!("the programs of the Debian packages {}", packages.join(", ")));
        }
    }
    for target in [image_target(), WINDOWS_TARGET.to_owned()] {
        if let Some(why) = lacks_target(steps, &target).await? {
            lacking.push(why);
        }
    }
    if lacking.is_empty() { Ok(()) } else { bail!("this machine lacks:\n  - {}", lacking.join("\n  - ")) }
}

/// The directory with the CNI plugins.
pub(crate) fn cni_plugins() -> Option<&'static Path> {
    let complete = |dir: &&Path| CNI_PLUGINS.iter().all(|plugin| dir.join(plugin).exists());
    CNI_DIRECTORIES.iter().map(|dir| Path::new(*dir)).find(complete)
}

fn missing_packages() -> Vec<&'static str> {
    let absent = PROGRAMS.iter().filter(|(program, _)| find(program).is_none()).map(|(_, package)| *package);
    let mut packages: Vec<_> = absent.chain(cni_plugins().is_none().then_some(CNI_PACKAGE)).collect();
    packages.dedup();
    packages
}

fn find(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&shell::search_path()).map(|dir| dir.join(program)).find(|path| path.is_file())
}

fn is_debian() -> bool {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let ids = release.lines().filter(|line| line.starts_with("ID=") || line.starts_with("ID_LIKE="));
    find("apt-get").is_some()
        && ids.into_iter().any(|line| line.contains("debian") || line.contains("ubuntu"))
}

async fn install(packages: &[&str]) -> Result<()> {
    shell::capture(apt().arg("update")).await?;
    // `--no-install-recommends`: containerd recommends nothing that we use, buildah a whole desktop's worth.
    shell::capture(apt().args(["install", "--yes", "--no-install-recommends"]).args(packages)).await?;
    let left = missing_packages();
    if left.is_empty() { Ok(()) } else { bail!("still missing after the installation: {}", left.join(", ")) }
}

fn apt() -> tokio::process::Command {
    let mut command = shell::command("apt-get");
    command.arg("--quiet").env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// Go older than the modules ask for would try to fetch a newer one; better to say it here.
async fn lacks_go() -> Option<String> {
    let wanted = go_directive(&paths::e2e().join("tools/kubernetes/go.mod"));
    let Ok(found) = shell::capture(shell::command("go").args(["env", "GOVERSION"])).await else {
        return Some(format!("Go {wanted} or later (https://go.dev/dl/)"));
    };
    let found = found.trim().trim_start_matches("go");
    (release(found) < release(&wanted))
        .then(|| format!("Go {wanted} or later; this is {found} (https://go.dev/dl/)"))
}

fn go_directive(module: &Path) -> String {
    let text = std::fs::read_to_string(module).unwrap_or_default();
    text.lines().find_map(|line| line.strip_prefix("go ")).unwrap_or("1").trim().to_owned()
}

/// The first two numbers of a Go version: patch releases and suffixes do not matter.
fn release(version: &str) -> (u32, u32) {
    let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

async fn lacks_target(steps: &Steps, target: &str) -> Result<Option<String>> {
    let printed =
        shell::capture(shell::command("rustc").args(["--print", "target-libdir", "--target", target]))
            .await?;
    if Path::new(printed.trim()).exists() {
        return Ok(None);
    }
    if find("rustup").is_none() {
        return Ok(Some(format!(
            "the Rust standard library for {target} (and rustup, which would install it)"
        )));
    }
    let mut add = shell::command("rustup");
    add.args(["target", "add", target]);
    steps.run(&format!("rustup target add {target}"), async { shell::capture(&mut add).await }).await?;
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_versions_are_compared_by_release() {
        assert!(release("1.26.8") >= release("1.26.0"));
        assert!(release("1.9.7") < release("1.26.0"));
        assert!(release("1.27rc1") > release("1.26.0"));
    }
}
