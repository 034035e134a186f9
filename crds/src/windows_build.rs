//! Windows builds, the products they are, and which image runs on which host.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A build of Windows, `10.0.<n>`: the value of the label `node.kubernetes.io/windows-build`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WindowsBuild(u32);

/// A build with the revision (UBR) that cumulative updates raise: `10.0.<n>.<revision>`, as in
/// `status.nodeInfo.kernelVersion` of a Windows node or `os.version` of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WindowsVersion {
    /// The build.
    pub build: WindowsBuild,
    /// The revision, where it is known.
    pub revision: Option<u32>,
}

/// Why a text is no Windows build.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseBuildError {
    /// Not of the form.
    #[error("a Windows build has the form 10.0.<number>, such as 10.0.20348")]
    Form,
    /// `10.0.<n>.<revision>` where only the build is wanted.
    #[error("a Windows build has no revision: write 10.0.{0}")]
    HasRevision(u32),
}

/// How a container is kept apart from its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// On the host's own kernel (containerd's `runhcs-wcow-process`).
    Process,
    /// In a utility VM with the image's kernel (containerd's `runhcs-wcow-hypervisor`).
    HyperV,
    /// A HostProcess container: a process of the host, of whatever build its image is.
    HostProcess,
}

/// A Windows Server release that can be a node.
struct Release {
    build: u32,
    product: &'static str,
    /// Tags of Microsoft's base images of this build.
    tags: &'static [&'static str],
    /// Long-term servicing channel: the releases that containerd's compatibility rule counts.
    ltsc: bool,
}

/// Oldest first. Source: Microsoft, "Windows Server release information" and "Base image servicing lifecycles".
const RELEASES: [Release; 11] = [
    Release { build: 14393, product: "Windows Server 2016", tags: &["ltsc2016", "1607"], ltsc: true },
    Release { build: 16299, product: "Windows Server, version 1709", tags: &["1709"], ltsc: false },
    Release { build: 17134, product: "Windows Server, version 1803", tags: &["1803"], ltsc: false },
    Release { build: 17763, product: "Windows Server 2019", tags: &["ltsc2019", "1809"], ltsc: true },
    Release { build: 18362, product: "Windows Server, version 1903", tags: &["1903"], ltsc: false },
    Release { build: 18363, product: "Windows Server, version 1909", tags: &["1909"], ltsc: false },
    Release { build: 19041, product: "Windows Server, version 2004", tags: &["2004"], ltsc: false },
    Release { build: 19042, product: "Windows Server, version 20H2", tags: &["20h2"], ltsc: false },
    Release { build: 20348, product: "Windows Server 2022", tags: &["ltsc2022"], ltsc: true },
    Release { build: 25398, product: "Windows Server, version 23H2", tags: &["23h2"], ltsc: false },
    Release { build: 26100, product: "Windows Server 2025", tags: &["ltsc2025"], ltsc: true },
];

/// From this build on a host runs images of older builds in process isolation ("stable ABI").
const STABLE_ABI: u32 = 20348;

impl WindowsBuild {
    /// Windows Server 2019.
    pub const WS2019: Self = Self(17763);
    /// Windows Server 2022.
    pub const WS2022: Self = Self(20348);
    /// Windows Server 2025.
    pub const WS2025: Self = Self(26100);

    /// The build `10.0.<number>`; `None` unless it has five digits, as every build of Windows 10 and later has.
    #[must_use]
    pub const fn from_number(number: u32) -> Option<Self> {
        if number >= 10_000 && number <= 99_999 { Some(Self(number)) } else { None }
    }

    /// The third number of `10.0.<n>`.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The Windows Server release of exactly this build.
    #[must_use]
    pub fn product(self) -> Option<&'static str> {
        RELEASES.iter().find(|r| r.build == self.0).map(|r| r.product)
    }

    /// The builds of all Windows Server releases that can be a node, oldest first.
    pub fn releases() -> impl Iterator<Item = Self> {
        RELEASES.iter().map(|r| Self(r.build))
    }

    /// The build that a word of an image tag names: `ltsc2022`, `1809`, `20H2`. Case does not count.
    #[must_use]
    pub fn from_tag_word(word: &str) -> Option<Self> {
        RELEASES.iter().find(|r| r.tags.iter().any(|t| t.eq_ignore_ascii_case(word))).map(|r| Self(r.build))
    }

    /// Whether a host of this build runs an image of `image` under `isolation`.
    ///
    /// Process isolation is containerd's rule (`containerd/platforms`, `platform_windows_compat.go`): below 20348 the
    /// builds are equal; from there on a host runs images from the LTSC before its own up to its own build.
    /// Hyper-V isolation runs every image that is not newer than the host. A HostProcess container is not checked.
    #[must_use]
    pub fn runs(self, image: Self, isolation: Isolation) -> bool {
        match isolation {
            Isolation::HostProcess => true,
            Isolation::HyperV => image <= self,
            Isolation::Process if self.0 < STABLE_ABI => image == self,
            Isolation::Process => (self.oldest_image()..=self).contains(&image),
        }
    }

    /// The oldest build that a host with the stable ABI runs in process isolation.
    fn oldest_image(self) -> Self {
        let ltsc = RELEASES.iter().filter(|r| r.ltsc && (STABLE_ABI..=self.0).contains(&r.build));
        let mut newest_first = ltsc.rev().map(|r| Self(r.build));
        let own = newest_first.next().unwrap_or(self);
        newest_first.next().unwrap_or(own)
    }
}

impl fmt::Display for WindowsBuild {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "10.0.{}", self.0)
    }
}

impl FromStr for WindowsBuild {
    type Err = ParseBuildError;

    fn from_str(text: &str) -> Result<Self, ParseBuildError> {
        let version: WindowsVersion = text.parse()?;
        match version.revision {
            None => Ok(version.build),
            Some(_) => Err(ParseBuildError::HasRevision(version.build.0)),
        }
    }
}

impl FromStr for WindowsVersion {
    type Err = ParseBuildError;

    fn from_str(text: &str) -> Result<Self, ParseBuildError> {
        let rest = text.strip_prefix("10.0.").ok_or(ParseBuildError::Form)?;
        let (build, revision) = match rest.split_once('.') {
            Some((build, revision)) => (build, Some(number(revision)?)),
            None => (rest, None),
        };
        let build = WindowsBuild::from_number(number(build)?).ok_or(ParseBuildError::Form)?;
        Ok(Self { build, revision })
    }
}

/// Digits only: `u32::from_str` would also take a sign.
fn number(text: &str) -> Result<u32, ParseBuildError> {
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(ParseBuildError::Form);
    }
    text.parse().map_err(|_| ParseBuildError::Form)
}

impl fmt::Display for WindowsVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.revision {
            Some(revision) => write!(f, "{}.{revision}", self.build),
            None => self.build.fmt(f),
        }
    }
}

impl Serialize for WindowsBuild {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for WindowsBuild {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(number: u32) -> WindowsBuild {
        WindowsBuild::from_number(number).unwrap()
    }

    #[test]
    fn process_isolation_follows_containerd() {
        let images = [14393, 17763, 19042, 20348, 25398, 26100];
        let table: [(u32, &[u32]); 8] = [
            (14393, &[14393]),
            (17763, &[17763]),
            (19042, &[19042]),
            (20348, &[20348]),
            (22621, &[20348]),
            (25398, &[20348, 25398]),
            (26100, &[20348, 25398, 26100]),
            (26300, &[20348, 25398, 26100]),
        ];
        for (host, runs) in table {
            let found: Vec<u32> =
                images.into_iter().filter(|i| build(host).runs(build(*i), Isolation::Process)).collect();
            assert_eq!(found, runs, "host {host}");
        }
    }

    #[test]
    fn hyper_v_runs_what_is_not_newer_and_host_process_runs_all() {
        assert!(WindowsBuild::WS2022.runs(WindowsBuild::WS2019, Isolation::HyperV));
        assert!(!WindowsBuild::WS2022.runs(WindowsBuild::WS2025, Isolation::HyperV));
        assert!(WindowsBuild::WS2019.runs(WindowsBuild::WS2025, Isolation::HostProcess));
    }

    #[test]
    fn a_build_is_what_the_kubelet_writes() {
        assert_eq!("10.0.20348".parse(), Ok(WindowsBuild::WS2022));
        assert_eq!("10.0.20348.2762".parse::<WindowsBuild>(), Err(ParseBuildError::HasRevision(20348)));
        let version: WindowsVersion = "10.0.20348.2762".parse().unwrap();
        assert_eq!((version.build, version.revision), (WindowsBuild::WS2022, Some(2762)));
        assert_eq!(version.to_string(), "10.0.20348.2762");
    }

    #[test]
    fn what_is_no_build_is_refused() {
        for text in
            ["", "20348", "10.0", "10.0.", "10.0.x", "10.1.20348", "10.0.+20348", "10.0.1", "10.0.20348.1.2"]
        {
            assert!(text.parse::<WindowsVersion>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_tag_word_names_its_build_in_any_case() {
        assert_eq!(WindowsBuild::from_tag_word("LTSC2022"), Some(WindowsBuild::WS2022));
        assert_eq!(WindowsBuild::from_tag_word("1809"), Some(WindowsBuild::WS2019));
        assert_eq!(WindowsBuild::from_tag_word("20H2"), Some(build(19042)));
        assert_eq!(WindowsBuild::from_tag_word("latest"), None);
    }
}
