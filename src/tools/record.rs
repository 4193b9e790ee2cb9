//! The output of a command while it comes in: what the model will get of it, and the whole in a
//! side file as soon as it is too long for that.

use std::path::{Path, PathBuf};

use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;

use crate::base::id::ToolCallId;
use crate::tools::files::sha256;
use crate::tools::output::HeadTail;

/// A command that writes more than this has run away; its first part says why as well as all of it.
const SIDE_FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// File names longer than this are not ours, and not portable.
const NAME_BYTES_MAX: usize = 100;

/// Output that is being recorded.
pub(crate) struct Recorder {
    kept: HeadTail,
    lines: usize,
    side: Side,
}

/// Where the whole goes.
enum Side {
    /// It still fits into what is kept.
    NotNeeded(PathBuf),
    /// Into this file, of which so much is written.
    Open { file: File, path: PathBuf, bytes: u64 },
    /// Nowhere any more, because of this.
    Lost(String),
}

/// Output that has been recorded.
pub(crate) struct Recorded {
    /// For the model.
    pub(crate) text: String,
    /// How many lines there were in all.
    pub(crate) lines: usize,
    /// The file with the whole, if the text is not the whole.
    pub(crate) whole: Option<PathBuf>,
}

impl Recorder {
    /// A record of the output of `call`, of which the model gets at most `bytes_max` bytes.
    pub(crate) fn new(output_dir: &Path, call: &ToolCallId, bytes_max: usize) -> Self {
        let side = Side::NotNeeded(output_dir.join(file_name(call)));
        Self { kept: HeadTail::new(bytes_max), lines: 0, side }
    }

    /// Takes in what comes next.
    pub(crate) async fn push(&mut self, chunk: &[u8]) {
        if !self.kept.has_room_for(chunk) {
            self.write_aside(chunk).await;
        }
        self.lines += memchr::memchr_iter(b'\n', chunk).count();
        self.kept.push(chunk);
    }

    /// The last lines so far.
    pub(crate) fn tail(&self, bytes_max: usize) -> String {
        self.kept.last(bytes_max)
    }

    async fn write_aside(&mut self, chunk: &[u8]) {
        if let Side::NotNeeded(path) = &self.side {
            self.side = match create(path).await {
                Ok(file) => Side::Open { file, path: path.clone(), bytes: 0 },
                Err(error) => Side::Lost(format!("{}: {error}", path.display())),
            };
            let so_far = self.kept.all();
            self.side.write(&so_far).await;
        }
        self.side.write(chunk).await;
    }

    /// All that came, ready for the model.
    pub(crate) async fn finish(mut self) -> Recorded {
        self.side.flush().await;
        let lines = self.lines + usize::from(!self.kept.ends_line());
        let (whole, place) = match self.side {
            Side::Open { path, bytes, .. } if bytes < SIDE_FILE_BYTES_MAX => {
                let place = format!("the whole is in {}", path.display());
                (Some(path), place)
            }
            Side::Open { path, bytes, .. } => {
                let place = format!("the first {bytes} bytes are in {}", path.display());
                (Some(path), place)
            }
            Side::Lost(why) => (None, format!("the whole could not be kept: {why}")),
            Side::NotNeeded(_) => (None, String::new()),
        };
        let text = self.kept.into_text(|cut| format!("[{cut} bytes are left out here; {place}]"));
        Recorded { text, lines, whole }
    }
}

impl Side {
    async fn write(&mut self, chunk: &[u8]) {
        let Self::Open { file, path, bytes } = self else { return };
        let room = usize::try_from(SIDE_FILE_BYTES_MAX - *bytes).unwrap_or(usize::MAX);
        let chunk = chunk.get(..room).unwrap_or(chunk);
        *bytes += chunk.len() as u64;
        if let Err(error) = file.write_all(chunk).await {
            *self = Self::Lost(format!("{}: {error}", path.display()));
        }
    }

    async fn flush(&mut self) {
        let Self::Open { file, path, .. } = self else { return };
        if let Err(error) = file.flush().await {
            *self = Self::Lost(format!("{}: {error}", path.display()));
        }
    }
}

/// A new private file in a private folder.
async fn create(path: &Path) -> std::io::Result<File> {
    if let Some(folder) = path.parent() {
        tokio::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).await?;
    }
    tokio::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).await
}

/// The id of the call, unless it is none of ours and no file name.
fn file_name(call: &ToolCallId) -> String {
    let id = call.as_str();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if !id.is_empty() && id.len() <= NAME_BYTES_MAX && id.bytes().all(is_plain) {
        format!("{id}.txt")
    } else {
        format!("{}.txt", sha256(id.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_call_id_cannot_lead_out_of_the_folder() {
        let check = |id: &str, expected: Option<&str>| {
            let name = file_name(&ToolCallId::from(id));
            let stem = name.strip_suffix(".txt").unwrap();
            let is_hash = stem.len() == 64 && stem.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(expected.map_or(is_hash, |expected| name == expected), "{id}: {name}");
        };
        let ours = "2025-11-11T04-36-29Z-0001234-000_1";
        check(ours, Some("2025-11-11T04-36-29Z-0001234-000_1.txt"));
        for foreign in ["", "..", "../../x", "a/b", "a\0b", ".hidden", &"x".repeat(101)] {
            check(foreign, None);
        }
    }
}
