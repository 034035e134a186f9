//! What the images of a pod say, by the patterns of the policy and then by well-known names.

use bifold_crds::{WindowsBuild, workload_policy::Os};

use super::{Evidence, Source, Strength};
use crate::{
    image::Reference,
    pattern,
    pod::{ContainerKind, Spec, text},
    policy::Policy,
};

/// The image of a container and what is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Image<'c> {
    /// Which list the container is in.
    pub kind: ContainerKind,
    /// Its place there.
    pub index: usize,
    /// The image as written.
    pub reference: &'c str,
    /// The OS it is for, and whether the policy says so.
    pub os: Option<(Os, Source)>,
    /// Its Windows build.
    pub build: Option<WindowsBuild>,
}

impl Image<'_> {
    /// The path of its field.
    #[must_use]
    pub fn path(&self) -> String {
        format!("spec.{}[{}].image", self.kind.field(), self.index)
    }
}

/// Looks at the image of every container.
#[must_use]
pub fn images<'c>(spec: &'c Spec<'c>, policy: &Policy) -> Vec<Image<'c>> {
    let looked_at = spec.all_containers().map(|(kind, index, container)| {
        let reference = text(&container.image);
        let (os, build) = look(reference, policy);
        Image { kind, index, reference, os, build }
    });
    looked_at.collect()
}

fn look(reference: &str, policy: &Policy) -> (Option<(Os, Source)>, Option<WindowsBuild>) {
    let by_name = || Reference::parse(reference).windows();
    if let Some(p) = policy.images.iter().find(|p| pattern::matches(&p.pattern, reference)) {
        // The policy says it is a Windows image; a build may still be read from its name.
        let build = match p.os {
            Os::Windows => p.build.or_else(|| by_name()?.build),
            Os::Linux => None,
        };
        return (Some((p.os, Source::PolicyImage)), build);
    }
    match by_name() {
        Some(image) => (Some((Os::Windows, Source::KnownImage)), image.build),
        None => (None, None),
    }
}

/// One piece of evidence for each OS and source, however many containers there are.
pub(super) fn speak(images: &[Image<'_>], found: &mut Vec<Evidence>) {
    for image in images {
        let Some((os, source)) = image.os else { continue };
        if !found.iter().any(|e| e.source == source && e.os == os) {
            found.push(Evidence::new(os, Strength::Fair, source, image.path(), image.reference));
        }
    }
}
