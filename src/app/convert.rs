//! Bringing the logs of a work directory into another form, and letting the old ones go.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use crate::app::assemble::WorkPlace;
use crate::app::storage::{self, Plain};
use crate::base::tasks::Tasks;
use crate::config::schema;
use crate::store::conversion::{self, Conversion, ConversionError, Stage};
use crate::store::convert::{self, Copied, Copier, CopyError, Left};
use crate::store::disk::{Disk, RealDisk};
use crate::store::error::{IoFailure, StoreError};
use crate::store::format::{self, Claim, Claimant, Format, FormatError};
use crate::store::lock::{LockError, NoGuests};
use crate::store::log::LogId;
use crate::store::parts::Parts;
use crate::store::progress::Told;
use crate::store::seam::SyncMode;

/// What is done about logs that are damaged, so that they cannot be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damaged {
    /// The old form stays in use.
    Refused,
    /// They stay in the old form, and the others go.
    Left,
}

/// What came of a conversion.
#[derive(Debug)]
pub enum Converted {
    /// All logs are in the new form, and the old ones are kept.
    Done {
        /// The old form.
        from: Format,
        /// What was copied, and what was left.
        copied: Copied,
    },
    /// They were in that form already.
    Already {
        /// The form whose logs are kept since the last conversion.
        kept: Option<Format>,
    },
    /// The logs of this form, which an unfinished conversion had begun, are gone again.
    Abandoned(Format),
}

/// What is done about old logs that are not in the new form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// All old ones stay.
    Refused,
    /// They go with the others: they were destroyed since.
    Destroyed,
}

/// What came of going back to the old form.
#[derive(Debug)]
pub enum Undone {
    /// The old form is in use again.
    Back {
        /// The form in use.
        now: Format,
        /// The form that is kept.
        kept: Format,
    },
    /// There is no old form.
    Nothing,
    /// The conversion has not been finished.
    Unfinished(Conversion),
    /// A part of the old form is gone already.
    Going(Format),
}

/// What came of letting the old logs go.
#[derive(Debug)]
pub enum Confirmed {
    /// They are gone.
    Gone(Format),
    /// So many damaged ones stay, which were not copied.
    Left(Format, usize),
    /// There are none.
    Nothing,
    /// The conversion has not been finished.
    Unfinished(Conversion),
}

/// Why logs cannot be converted.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// Copying ended.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// Some are damaged. The others are copied, and nothing else was changed.
    #[error("damaged, and not to be brought into another form: {}", .0.len())]
    Damaged(Vec<Left>),
    /// There are logs in the new form already, of which nobody knows where they come from.
    #[error(
        "there are logs kept as {format} already, such as {}; move them away, or save what they hold \
         with `turnstile storage salvage` first", path.display()
    )]
    Beside {
        /// The form.
        format: Format,
        /// One of them.
        path: PathBuf,
    },
    /// The old logs of the last conversion are still kept.
    #[error(
        "the logs of the last conversion are still kept as {0}; look whether all is well, and let them \
         go first with `turnstile storage convert --confirm`, or use them again with `--undo`"
    )]
    Unconfirmed(Format),
    /// Some of the old logs are not whole in the new form.
    #[error("logs of the old form that are not whole in the new one: {}; nothing was changed", .0.len())]
    NotThere(Vec<LogId>),
    /// Somebody writes turns of its own.
    #[error(transparent)]
    Guests(#[from] LockError),
    /// What is remembered of a conversion cannot be had.
    #[error(transparent)]
    Conversion(#[from] ConversionError),
    /// What says in which form the logs are cannot be had.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system refused.
    #[error(transparent)]
    Io(#[from] IoFailure),
}

/// The logs of a work directory that is held for this, in whatever form.
pub struct Converter {
    place: WorkPlace,
    tasks: Tasks,
    configured: schema::Storage,
}

impl Converter {
    /// Of a work directory with full access, whose logs are in the form that `configured` says
    /// ([`WorkPlace::adopt_format`]).
    #[must_use]
    pub fn new(place: WorkPlace, configured: schema::Storage) -> Self {
        // Whatever else is configured: the old logs may go when the new ones are safe.
        let configured = schema::Storage { sync: schema::SyncMode::Barrier, ..configured };
        Self { place, tasks: Tasks::new(), configured }
    }

    fn current(&self) -> Format {
        storage::format(self.configured.format)
    }

    /// What is remembered of a conversion.
    ///
    /// # Errors
    /// [`ConversionError`].
    pub fn remembered(&self) -> Result<Option<Conversion>, ConversionError> {
        Conversion::read(&RealDisk, self.place.dir())
    }

    /// Brings all logs into another form. Can be broken off anywhere, and goes on from there when it is
    /// called again; until it is done the old form stays in use.
    ///
    /// # Errors
    /// [`ConvertError`].
    pub async fn convert(
        &self,
        to: Format,
        damaged: Damaged,
        told: Told<'_>,
    ) -> Result<Converted, ConvertError> {
        let _alone = NoGuests::keep(&RealDisk, self.place.dir())?;
        let from = self.current();
        let resumed = match self.remembered()? {
            Some(note) if let Some(kept) = note.kept(from) => {
                if to == from {
                    return Ok(Converted::Already { kept: Some(kept) });
                }
                return Err(ConvertError::Unconfirmed(kept));
            }
            Some(note) if note.from == from && note.to == to => true,
            Some(note) if note.from == from => {
                self.clear(note.to, &BTreeSet::new()).await?;
                Conversion::forget(&RealDisk, self.place.dir())?;
                if to == from {
                    return Ok(Converted::Abandoned(note.to));
                }
                self.check_begin(to)?;
                false
            }
            Some(_) | None if to == from => return Ok(Converted::Already { kept: None }),
            Some(_) | None => {
                self.check_begin(to)?;
                false
            }
        };
        let (stage, left) = (Stage::Copying, BTreeSet::new());
        Conversion { from, to, stage, left }.write(&RealDisk, self.place.dir())?;
        let copied = match self.copy(to, told).await {
            // What stands there was copied by an earlier attempt: nothing else did when that began.
            Err(CopyError::Stale) if resumed => {
                self.clear(to, &BTreeSet::new()).await?;
                self.copy(to, told).await?
            }
            copied => copied?,
        };
        if damaged == Damaged::Refused && !copied.left.is_empty() {
            return Err(ConvertError::Damaged(copied.left));
        }
        self.make_safe(to).await?;
        let left = copied.left.iter().map(|left| left.name.clone()).collect();
        // What is left is known before the new form is in use, also over a crash.
        let mut conversion = Conversion { from, to, stage, left };
        conversion.write(&RealDisk, self.place.dir())?;
        self.use_from_now_on(to)?;
        conversion.stage = Stage::Kept;
        conversion.write(&RealDisk, self.place.dir())?;
        Ok(Converted::Done { from, copied })
    }

    /// Refuses a form in which there are logs already, or cannot be here.
    fn check_begin(&self, format: Format) -> Result<(), ConvertError> {
        format::check_begin(&RealDisk, self.place.dir(), format)?;
        match format::find(&RealDisk, self.place.dir(), format)? {
            Some(path) => Err(ConvertError::Beside { format, path }),
            None => Ok(()),
        }
    }

    async fn make_safe(&self, format: Format) -> Result<(), ConvertError> {
        let logs = self.open(format).logs;
        let place: (&dyn Disk, _) = (&RealDisk, self.place.dir());
        Ok(conversion::make_safe(&*logs, format.suffix(), place).await?)
    }

    /// Uses the old form of the last conversion again, as it was then. What was made since stays in the
    /// other one, which is kept now.
    ///
    /// # Errors
    /// [`ConvertError`].
    pub fn undo(&self) -> Result<Undone, ConvertError> {
        let _alone = NoGuests::keep(&RealDisk, self.place.dir())?;
        let Some(note) = self.remembered()? else { return Ok(Undone::Nothing) };
        let in_use = self.current();
        let Some(now) = note.kept(in_use) else { return Ok(Undone::Unfinished(note)) };
        match note.stage {
            Stage::Going => return Ok(Undone::Going(now)),
            Stage::Copying | Stage::Kept => {}
        }
        // The mark says which is in use only once both are known to be kept.
        Conversion { stage: Stage::Kept, ..note }.write(&RealDisk, self.place.dir())?;
        self.use_from_now_on(now)?;
        Ok(Undone::Back { now, kept: in_use })
    }

    /// From here on this form is in use.
    fn use_from_now_on(&self, asked: Format) -> Result<(), ConvertError> {
        let dir = self.place.dir();
        let claim = Claim {
            asked,
            claimant: Claimant::Holder,
            sync: SyncMode::Always,
            process: std::process::id(),
        };
        claim.say(&RealDisk, dir)?;
        // Before anything of the old form may go.
        let storage = dir.storage();
        RealDisk.sync_folder(&storage).map_err(IoFailure::of("sync the folder", &storage))?;
        Ok(())
    }

    async fn copy(&self, to: Format, told: Told<'_>) -> Result<Copied, CopyError> {
        let (old, new) = (self.open(self.current()), self.open(to));
        let is_database = |format| format == Format::Sqlite;
        // What streams into files is beside them in either encoding.
        let live_text = (is_database(self.current()) != is_database(to))
            .then(|| [Arc::clone(&old.live_text), Arc::clone(&new.live_text)]);
        let copier = Copier { from: old.logs, to: new.logs, live_text, tasks: self.tasks.clone() };
        copier.run(told).await
    }

    fn open(&self, format: Format) -> Plain {
        let parts = Parts {
            disk: Arc::new(RealDisk),
            clock: self.place.clock(),
            entropy: self.place.entropy(),
            tasks: self.tasks.clone(),
            lock: self.place.lock(),
        };
        let configured = schema::Storage { format: storage::configured(format), ..self.configured };
        Plain::new(self.place.dir(), parts, configured)
    }

    /// Lets the old logs of the last conversion go, if all of them are whole in the new form.
    ///
    /// # Errors
    /// [`ConvertError::NotThere`] with those that are not, and nothing was changed; else the rest is for
    /// the next time.
    pub async fn confirm(&self, missing: Missing) -> Result<Confirmed, ConvertError> {
        let _alone = NoGuests::keep(&RealDisk, self.place.dir())?;
        let Some(note) = self.remembered()? else { return Ok(Confirmed::Nothing) };
        let in_use = self.current();
        let Some(kept) = note.kept(in_use) else { return Ok(Confirmed::Unfinished(note)) };
        let left = note.left_in(kept);
        self.make_safe(in_use).await?;
        let (old, new) = (self.open(kept).logs, self.open(in_use).logs);
        let not_there = convert::not_there(&old, &new, &left, &self.tasks).await?;
        drop((old, new));
        if missing == Missing::Refused && !not_there.is_empty() {
            return Err(ConvertError::NotThere(not_there));
        }
        // From here on nobody goes back to it.
        Conversion { stage: Stage::Going, ..note }.write(&RealDisk, self.place.dir())?;
        self.clear(kept, &left).await?;
        Conversion::forget(&RealDisk, self.place.dir())?;
        Ok(match left.len() {
            0 => Confirmed::Gone(kept),
            left => Confirmed::Left(kept, left),
        })
    }

    /// Destroys the logs of a form that is not in use, but for what is left.
    async fn clear(&self, format: Format, left: &BTreeSet<String>) -> Result<(), ConvertError> {
        let dir = self.place.dir();
        match format {
            Format::Jsonl | Format::JsonlZst => {
                let (old, suffix) = (self.open(format), format.suffix().unwrap_or_default());
                if self.current() == Format::Sqlite {
                    // Of files in another encoding this would be what streams into the new ones.
                    conversion::clear_live_text(&*old.logs, &*old.live_text, left).await?;
                }
                let old = old.logs;
                Ok(conversion::clear_files(&*old, suffix, (&RealDisk, dir), left).await?)
            }
            // A part of it cannot go alone.
            Format::Sqlite if !left.is_empty() => Ok(()),
            Format::Sqlite => Ok(conversion::clear_database(&RealDisk, dir)?),
        }
    }
}
