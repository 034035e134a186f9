//! The cluster's own programs, built from published Go modules.
//!
//! `e2e/tools` has one module for each family: in one module, Go's version selection would mix their dependencies.
//! The programs are kept in the user's cache, in a directory named by what went into them, and are built again only
//! when that changes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::progress::Steps;
use crate::{paths, shell};

/// One directory of `e2e/tools`.
struct Family {
    name: &'static str,
    /// The module whose version is the family's version.
    module: &'static str,
    /// Linker flags that tell the programs which version they are; `{}` stands for `v1.2.3`.
    stamp: &'static str,
    what: &'static str,
}

const KUBERNETES: Family = Family {
    name: "kubernetes",
    module: "k8s.io/kubernetes",
    // Without these `/version` says v0.0.0, and Helm believes it. Major and minor follow in `link_flags`.
    stamp: "-X k8s.io/component-base/version.gitVersion={}",
    what: "API server, kubelet, four more",
};
const ETCD: Family = Family { name: "etcd", module: "go.etcd.io/etcd/server/v3", stamp: "", what: "etcd" };
const HELM: Family = Family {
    name: "helm",
    module: "helm.sh/helm/v4",
    stamp: "-X helm.sh/helm/v4/internal/version.version={}",
    what: "helm",
};
const KWOK: Family = Family { name: "kwok", module: "sigs.k8s.io/kwok", stamp: "", what: "simulated nodes" };

const FAMILIES: [&Family; 4] = [&ETCD, &KWOK, &HELM, &KUBERNETES];

/// Where the programs are.
#[derive(Debug, Clone)]
pub(crate) struct Tools {
    kubernetes: PathBuf,
    etcd: PathBuf,
    helm: PathBuf,
    kwok: PathBuf,
}

impl Tools {
    /// Where the programs are, or would be once they are built.
    pub(crate) fn locate() -> Result<Self> {
        Ok(Self {
            kubernetes: KUBERNETES.directory()?,
            etcd: ETCD.directory()?,
            helm: HELM.directory()?,
            kwok: KWOK.directory()?,
        })
    }

    /// Builds what is not in the cache. One family after the other: the Go compiler uses every core by itself.
    pub(crate) async fn build(steps: &Steps) -> Result<Self> {
        for family in FAMILIES {
            if !family.directory()?.exists() {
                let step =
                    format!("build {} {} ({}) from source", family.name, family.version()?, family.what);
                steps.run(&step, family.build()).await?;
            }
        }
        Self::locate()
    }

    /// One of the programs of Kubernetes itself, such as `kubelet`.
    pub(crate) fn kubernetes(&self, program: &str) -> PathBuf {
        self.kubernetes.join(program)
    }

    pub(crate) fn etcd(&self) -> PathBuf {
        // The module calls its main package `server`.
        self.etcd.join("server")
    }

    pub(crate) fn helm(&self) -> PathBuf {
        self.helm.join("helm")
    }

    pub(crate) fn kwok(&self) -> PathBuf {
        self.kwok.join("kwok")
    }

    /// The version of Kubernetes, such as `v1.36.3`.
    pub(crate) fn kubernetes_version() -> Result<String> {
        KUBERNETES.version()
    }
}

impl Family {
    fn source(&self) -> PathBuf {
        paths::e2e().join("tools").join(self.name)
    }

    fn read(&self, file: &str) -> Result<String> {
        let path = self.source().join(file);
        fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))
    }

    fn version(&self) -> Result<String> {
        let module = self.read("go.mod")?;
        let required = module.lines().find_map(|line| version_of(line, self.module));
        Ok(required
            .with_context(|| format!("tools/{}/go.mod requires no {}", self.name, self.module))?
            .to_owned())
    }

    fn link_flags(&self) -> Result<String> {
        let version = self.version()?;
        let mut flags = format!("-s -w {}", self.stamp.replace("{}", &version)).trim_end().to_owned();
        if self.name == KUBERNETES.name {
            let mut numbers = version.trim_start_matches('v').split('.');
            for part in ["gitMajor", "gitMinor"] {
                let number = numbers.next().unwrap_or_default();
                flags.extend([" -X k8s.io/component-base/version.", part, "=", number]);
            }
        }
        Ok(flags)
    }

    /// The cache directory: its name changes with anything that changes the programs.
    fn directory(&self) -> Result<PathBuf> {
        let (module, sums, flags) = (self.read("go.mod")?, self.read("go.sum")?, self.link_flags()?);
        let hash = paths::short_hash([module.as_bytes(), sums.as_bytes(), flags.as_bytes()]);
        Ok(paths::cache()?.join("tools").join(format!("{}-{hash}-linux-{}", self.name, go_arch())))
    }

    async fn build(&self) -> Result<()> {
        let directory = self.directory()?;
        let _lock = lock(&directory.with_extension("lock"))?;
        if directory.exists() {
            return Ok(());
        }
        // Built beside its place and renamed, so that a directory which exists is complete.
        let partial = directory.with_extension("partial");
        fs::create_dir_all(&partial)?;
        let mut build = shell::command("go");
        build
            .current_dir(self.source())
            .env("CGO_ENABLED", "0")
            // The go.mod files here are nobody's workspace, and need no version control stamp.
            .env("GOWORK", "off")
            .args(["build", "-trimpath", "-buildvcs=false", "-ldflags", &self.link_flags()?, "-o"])
            .arg(&partial)
            .arg("tool");
        shell::capture(&mut build).await?;
        fs::rename(&partial, &directory).with_context(|| format!("rename to {}", directory.display()))
    }
}

/// Held while a family is built, so that two runs do not build the same thing at once.
fn lock(path: &Path) -> Result<File> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let file = File::create(path).with_context(|| format!("create {}", path.display()))?;
    file.lock().with_context(|| format!("lock {}", path.display()))?;
    Ok(file)
}

fn version_of<'a>(line: &'a str, module: &str) -> Option<&'a str> {
    let mut words = line.trim().trim_start_matches("require ").split_whitespace();
    (words.next()? == module).then(|| words.next()).flatten().filter(|version| version.starts_with('v'))
}

fn go_arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Fails with what to do about it when a program has not been built.
pub(crate) fn built(program: PathBuf) -> Result<PathBuf> {
    if program.exists() {
        Ok(program)
    } else {
        bail!("{} is not built yet: `cargo e2e up` does it", program.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_in_both_forms_of_require() {
        assert_eq!(version_of("\tk8s.io/kubernetes v1.36.3", "k8s.io/kubernetes"), Some("v1.36.3"));
        assert_eq!(version_of("require k8s.io/kubernetes v1.36.3", "k8s.io/kubernetes"), Some("v1.36.3"));
        assert_eq!(version_of("tool k8s.io/kubernetes/cmd/kubelet", "k8s.io/kubernetes"), None);
    }

    #[test]
    fn every_family_has_a_version_and_a_place() {
        for family in FAMILIES {
            assert!(family.version().unwrap().starts_with('v'), "{}", family.name);
            assert!(family.directory().unwrap().to_string_lossy().contains(family.name));
        }
    }
}
