//! Container images, built from Dockerfiles by buildah: Bifold's own as they would be shipped, and the pause image.
//!
//! An image is `FROM scratch` with one static program. It is named by what is in it, so that an unchanged program is
//! neither built nor rolled out again, and kept as an archive in the user's cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use cargo_metadata::Message;

use crate::cluster::nodes::linux::PAUSE_IMAGE;
use crate::progress::Steps;
use crate::{machine, paths, shell};

/// The registry part of Bifold's image names. Nothing serves it: the images are imported.
pub(crate) const REGISTRY: &str = "bifold.local/bifold";
/// The crates that become images, by the name of the image: the program is `bifold-<image>`.
const IMAGES: [&str; 2] = ["webhook", "operator"];
/// Archives that no recent run has built are removed when a new one is.
const KEPT: Duration = Duration::from_hours(24);

/// An image in a file, as `ctr image import` reads it.
#[derive(Debug)]
pub(crate) struct Archive {
    pub(crate) path: PathBuf,
}

/// Bifold's images, all under one tag.
pub(crate) struct Bifold {
    pub(crate) tag: String,
    pub(crate) archives: Vec<Archive>,
}

/// The image that holds pods' namespaces.
pub(crate) async fn pause(steps: &Steps) -> Result<Archive> {
    let source = paths::e2e().join("images").join("pause");
    let (program, dockerfile) = (source.join("pause.c"), source.join("Dockerfile"));
    let tag = paths::short_hash([fs::read(&program)?.as_slice(), &fs::read(&dockerfile)?]);
    let archive = archive("pause", &tag)?;
    if !archive.path.exists() {
        let build = async {
            let context = tempfile::tempdir()?;
            let mut compile = shell::command("musl-gcc");
            compile.args(["-static", "-Os", "-s", "-o"]).arg(context.path().join("pause")).arg(&program);
            shell::capture(&mut compile).await?;
            build(PAUSE_IMAGE, &dockerfile, context.path(), &archive.path).await
        };
        steps.run("build the pause image", build).await?;
    }
    Ok(archive)
}

/// Bifold's images, from the checkout as it is.
pub(crate) async fn bifold(steps: &Steps) -> Result<Bifold> {
    let programs = steps.run("build Bifold's programs (static, release)", compile()).await?;
    let mut contents = Vec::new();
    for (image, program) in IMAGES.iter().zip(&programs) {
        contents.push(fs::read(program).with_context(|| format!("read {}", program.display()))?);
        contents.push(fs::read(dockerfile(image))?);
    }
    let tag = paths::short_hash(contents.iter().map(Vec::as_slice));
    let mut archives = Vec::new();
    for (image, program) in IMAGES.iter().zip(&programs) {
        let archive = archive(image, &tag)?;
        if !archive.path.exists() {
            let build = async {
                let context = tempfile::tempdir()?;
                fs::copy(program, context.path().join(program.file_name().context("name the program")?))?;
                build(&format!("{REGISTRY}/{image}:{tag}"), &dockerfile(image), context.path(), &archive.path)
                    .await
            };
            steps.run(&format!("build the image {image}"), build).await?;
        }
        archives.push(archive);
    }
    Ok(Bifold { tag, archives })
}

/// Compiles the programs and returns their files, in the order of [`IMAGES`].
async fn compile() -> Result<Vec<PathBuf>> {
    let target = machine::image_target();
    let mut cargo = shell::command("cargo");
    cargo
        .current_dir(paths::workspace())
        .args(["build", "--release", "--target", &target, "--message-format=json-render-diagnostics"])
        .env(format!("CC_{}", target.replace('-', "_")), "musl-gcc");
    for image in IMAGES {
        cargo.args(["--package", &format!("bifold-{image}")]);
    }
    let messages = shell::capture(&mut cargo).await?;
    let mut files = Vec::new();
    for message in Message::parse_stream(messages.as_bytes()) {
        if let Message::CompilerArtifact(artifact) = message?
            && let Some(file) = artifact.executable
        {
            files.push(file.into_std_path_buf());
        }
    }
    let built = |image: &&str| {
        let program = format!("bifold-{image}");
        let file = files.iter().find(|file| file.file_name().is_some_and(|name| name == program.as_str()));
        file.cloned().with_context(|| format!("cargo built no {program}"))
    };
    IMAGES.iter().map(built).collect()
}

fn dockerfile(image: &str) -> PathBuf {
    paths::workspace().join(image).join("Dockerfile")
}

fn archive(image: &str, tag: &str) -> Result<Archive> {
    let directory = paths::cache()?.join("images");
    fs::create_dir_all(&directory)?;
    Ok(Archive { path: directory.join(format!("{image}-{tag}.tar")) })
}

async fn build(name: &str, dockerfile: &Path, context: &Path, archive: &Path) -> Result<()> {
    // A store of its own, gone afterwards: whatever containers this machine has are none of our business.
    let store = tempfile::tempdir()?;
    let buildah = || {
        let mut command = shell::command("buildah");
        let place =
            |option: &str, directory: &str| format!("--{option}={}", store.path().join(directory).display());
        command.args(["--storage-driver=vfs", &place("root", "root"), &place("runroot", "run")]);
        command
    };
    let mut bud = buildah();
    bud.args(["bud", "--isolation=chroot", "--tag", name, "--file"]).arg(dockerfile).arg(context);
    shell::capture(&mut bud).await?;
    let partial = archive.with_extension("partial");
    let _ = fs::remove_file(&partial);
    shell::capture(buildah().args(["push", name, &format!("oci-archive:{}:{name}", partial.display())]))
        .await?;
    fs::rename(&partial, archive)?;
    remove_stale(archive)
}

fn remove_stale(fresh: &Path) -> Result<()> {
    let Some(directory) = fresh.parent() else { return Ok(()) };
    for entry in fs::read_dir(directory)?.flatten() {
        let age = entry.metadata()?.modified()?.elapsed().unwrap_or_default();
        if age > KEPT && entry.path() != fresh {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
