//! Image references, and what the names of well-known Windows images say.
//!
//! A name is only taken for a Windows image by words that nobody uses for anything else. `windows` alone is not such a
//! word (`dockurr/windows` and many cross compilers are Linux images), and a number such as `1809` or `10.0.17763` is
//! read as a build only where the name has already said Windows.

use bifold_crds::{WindowsBuild, WindowsVersion};

/// The parts of an image reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference<'a> {
    /// The registry; `docker.io` when none is named.
    pub registry: &'a str,
    /// The repository, without the registry.
    pub repository: &'a str,
    /// The tag.
    pub tag: Option<&'a str>,
    /// The digest, such as `sha256:…`.
    pub digest: Option<&'a str>,
}

/// What is known of an image by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowsImage {
    /// The build, when the name says exactly one.
    pub build: Option<WindowsBuild>,
}

const DEFAULT_REGISTRY: &str = "docker.io";

/// Repositories of Microsoft that hold Windows images only.
const WINDOWS_REPOSITORIES: [(&str, &str); 8] = [
    ("mcr.microsoft.com", "windows"),
    ("mcr.microsoft.com", "windows/*"),
    ("mcr.microsoft.com", "dotnet/framework/*"),
    ("mcr.microsoft.com", "oss/kubernetes/windows-host-process-containers-base-image"),
    (DEFAULT_REGISTRY, "microsoft/windowsservercore*"),
    (DEFAULT_REGISTRY, "microsoft/nanoserver*"),
    (DEFAULT_REGISTRY, "microsoft/dotnet-framework*"),
    (DEFAULT_REGISTRY, "microsoft/iis"),
];

/// Words in a repository or a tag that only Windows images have.
const WINDOWS_WORDS: [&str; 3] = ["nanoserver", "windowsservercore", "servercore"];

impl<'a> Reference<'a> {
    /// Takes `image` apart. Any text gives some reference; whether it exists is for a registry to say.
    #[must_use]
    pub fn parse(image: &'a str) -> Self {
        let (name, digest) = match image.split_once('@') {
            Some((name, digest)) => (name, Some(digest)),
            None => (image, None),
        };
        let path_start = name.rfind('/').map_or(0, |slash| slash + 1);
        let (name, tag) = match name[path_start..].find(':') {
            Some(colon) => (&name[..path_start + colon], Some(&name[path_start + colon + 1..])),
            None => (name, None),
        };
        // The rule of Docker: the first part is a registry if it could be a host name and not a name of the hub.
        let (registry, repository) = match name.split_once('/') {
            Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => (first, rest),
            _ => (DEFAULT_REGISTRY, name),
        };
        Self { registry, repository, tag, digest }
    }

    /// What the name says, if it is the name of a Windows image.
    #[must_use]
    pub fn windows(&self) -> Option<WindowsImage> {
        let by_repository = WINDOWS_REPOSITORIES
            .iter()
            .any(|(r, pattern)| *r == self.registry && crate::pattern::matches(pattern, self.repository));
        (by_repository || self.words().any(says_windows)).then(|| WindowsImage { build: self.build() })
    }

    fn words(&self) -> impl Iterator<Item = &'a str> {
        self.repository
            .split(['/', '-', '_', '.'])
            .chain(self.tag_parts().flat_map(|part| part.split(['.', '+'])))
    }

    /// The parts of the tag, in which versions are still whole.
    fn tag_parts(&self) -> impl Iterator<Item = &'a str> {
        self.tag.into_iter().flat_map(|tag| tag.split(['-', '_']))
    }

    /// The build of an image that is known to be one of Windows. An LTSC name says most, a bare number least.
    fn build(&self) -> Option<WindowsBuild> {
        let tag_words = || self.tag_parts().flat_map(|part| part.split(['.', '+']));
        let repository_words = || self.repository.split(['/', '-', '_']);
        only(tag_words().filter_map(ltsc))
            .or_else(|| only(repository_words().filter_map(ltsc)))
            .or_else(|| only(self.tag_parts().filter_map(version_or_word)))
            .or_else(|| only(repository_words().filter_map(WindowsBuild::from_tag_word)))
            .and_then(Result::ok)
    }
}

fn says_windows(word: &str) -> bool {
    WINDOWS_WORDS.iter().any(|w| word.eq_ignore_ascii_case(w)) || is_ltsc(word)
}

/// `ltsc` and a year. Years to come count: such an image is a Windows image even though its build is not known here.
fn is_ltsc(word: &str) -> bool {
    let bytes = word.as_bytes();
    bytes.len() == 8
        && bytes[..6].eq_ignore_ascii_case(b"ltsc20")
        && bytes[6..].iter().all(u8::is_ascii_digit)
}

fn ltsc(word: &str) -> Option<WindowsBuild> {
    is_ltsc(word).then(|| WindowsBuild::from_tag_word(word)).flatten()
}

fn version_or_word(part: &str) -> Option<WindowsBuild> {
    let version = part.parse::<WindowsVersion>().ok().map(|v| v.build);
    version.or_else(|| WindowsBuild::from_tag_word(part))
}

/// Two different builds in one name.
#[derive(Clone, Copy)]
struct Ambiguous;

/// The one build that is named, if any is.
fn only(builds: impl Iterator<Item = WindowsBuild>) -> Option<Result<WindowsBuild, Ambiguous>> {
    builds.fold(None, |found, build| match found {
        None => Some(Ok(build)),
        Some(Ok(first)) if first == build => found,
        Some(_) => Some(Err(Ambiguous)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_taken_apart_as_docker_does() {
        let table = [
            ("nginx", "docker.io", "nginx", None, None),
            ("nginx:1.27", "docker.io", "nginx", Some("1.27"), None),
            ("library/nginx", "docker.io", "library/nginx", None, None),
            ("localhost/app:1", "localhost", "app", Some("1"), None),
            ("host:5000/a/b:c", "host:5000", "a/b", Some("c"), None),
            ("host:5000/a/b", "host:5000", "a/b", None, None),
            ("mcr.microsoft.com/windows@sha256:ab", "mcr.microsoft.com", "windows", None, Some("sha256:ab")),
            ("q.io/a:t@sha256:ab", "q.io", "a", Some("t"), Some("sha256:ab")),
            ("", "docker.io", "", None, None),
            ("a.b/", "a.b", "", None, None),
            ("::", "docker.io", "", Some(":"), None),
        ];
        for (image, registry, repository, tag, digest) in table {
            assert_eq!(Reference::parse(image), Reference { registry, repository, tag, digest }, "{image}");
        }
    }

    #[test]
    fn windows_images_are_known_by_their_names_and_linux_images_are_not_taken_for_them() {
        // 0 stands for a build that the name does not say.
        let table: [(&str, Option<u32>); 40] = [
            ("mcr.microsoft.com/windows/servercore:ltsc2019", Some(17763)),
            ("mcr.microsoft.com/windows/nanoserver:1809", Some(17763)),
            ("mcr.microsoft.com/windows/nanoserver:1809-KB4493509", Some(17763)),
            ("mcr.microsoft.com/windows/nanoserver:10.0.17763.437", Some(17763)),
            ("mcr.microsoft.com/windows/server:ltsc2022", Some(20348)),
            ("mcr.microsoft.com/windows/nanoserver:ltsc2025-amd64", Some(26100)),
            ("mcr.microsoft.com/windows:20H2", Some(19042)),
            ("mcr.microsoft.com/windows/servercore/iis:windowsservercore-ltsc2022", Some(20348)),
            ("mcr.microsoft.com/windows/servercore@sha256:abcd", Some(0)),
            ("mcr.microsoft.com/windows/servercore:ltsc2028", Some(0)),
            ("mcr.microsoft.com/dotnet/framework/aspnet:4.8-windowsservercore-ltsc2022", Some(20348)),
            (
                "mcr.microsoft.com/dotnet/framework/aspnet:4.8-20240910-windowsservercore-ltsc2019",
                Some(17763),
            ),
            ("mcr.microsoft.com/dotnet/framework/runtime:4.8", Some(0)),
            ("mcr.microsoft.com/dotnet/aspnet:8.0-nanoserver-ltsc2022", Some(20348)),
            ("mcr.microsoft.com/dotnet/runtime:6.0-nanoserver-1809", Some(17763)),
            ("mcr.microsoft.com/powershell:lts-nanoserver-1809", Some(17763)),
            ("golang:1.23-windowsservercore-ltsc2022", Some(20348)),
            ("golang:1.23-windowsservercore", Some(0)),
            ("registry.local/mirror/servercore:LTSC2019", Some(17763)),
            ("team/app:v1.2.3-ltsc2022", Some(20348)),
            ("team/nanoserver-1809/app:2.0", Some(17763)),
            ("team/app-ltsc2019:2004", Some(17763)),
            ("team/pause:3.9-ltsc2019-ltsc2022", Some(0)),
            ("mcr.microsoft.com/oss/kubernetes/windows-host-process-containers-base-image:v1.0.0", Some(0)),
            ("microsoft/nanoserver:sac2016", Some(0)),
            ("python:3.12-windowsservercore-1809", Some(17763)),
            ("nginx", None),
            ("app:1809", None),
            ("app:2004", None),
            ("app:10.0.17763", None),
            ("app:10.0.20348.1", None),
            ("dockurr/windows:latest", None),
            ("cross/builder:1.20-windows", None),
            ("jenkins/jenkins:lts-jdk17", None),
            ("mcr.microsoft.com/dotnet/aspnet:8.0", None),
            ("mcr.microsoft.com/mssql/server:2022-latest", None),
            ("mcr.microsoft.com/windowsish:1", None),
            ("example.com/windows/servicebus:1", None),
            ("app:ltsc20xx", None),
            ("", None),
        ];
        for (image, expected) in table {
            let found = Reference::parse(image).windows().map(|w| w.build.map_or(0, WindowsBuild::number));
            assert_eq!(found, expected, "{image}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_can_be_taken_apart(image in "\\PC*") {
            let _ = Reference::parse(&image).windows();
        }
    }
}
