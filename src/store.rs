//! The durability seam and its real parts: logs in files, in a database or in memory, the crash buffer
//! of a turn, the lock on the work directory, and small private files.
//!
//! A **log** is an append-only sequence of records, one JSON object each, with a kind and an id.
//! [`seam`] says what every backend promises; [`jsonl`], [`sqlite`] and [`memory`] keep it. What records
//! mean is known only to [`repo`], which reads and writes them as events of [`domain`](crate::domain).
//!
//! From below: [`disk`] is every file operation, so that a test can make any of them fail; [`log`] and
//! [`error`] are the words; [`seam`] the traits; then the backends; then [`coordinate`], a store around
//! another whose writers do not give up; then the typed repositories. Beside them stand [`live_text`],
//! [`scratch`], [`lock`], [`work_dir`] and [`mod@format`], which keeps the logs of a work directory in
//! one form.
//!
//! How more fits in:
//!
//! - **Another encoding in files** beside lines and [`frames`] differs in how records become bytes, how
//!   bytes become records and a torn end, and in the suffix of the names: an arm in each function of
//!   [`jsonl::Encoding`]. Lists, publication, removal, ownership and the proof of what is on the device
//!   stay as they are: an end ([`jsonl`]'s `append`) takes whole encoded batches.
//! - **What looks after the logs** needs nothing of a backend beyond the seam: [`verify`] reads
//!   everything, [`salvage`] saves what a damage left, [`convert`] copies all logs into another form,
//!   and [`mod@stats`] weighs them. [`conversion`] is what a work directory remembers of a conversion.

pub(crate) mod atomic;
pub(crate) mod blocking;
pub mod cache;
pub mod conversion;
pub mod convert;
pub mod coordinate;
pub(crate) mod destroy;
pub mod disk;
pub mod error;
pub mod file_system;
pub mod format;
pub mod frames;
pub mod jsonl;
pub mod live_text;
pub mod lock;
pub mod log;
pub mod memory;
pub mod parts;
pub mod progress;
pub mod remnant;
pub mod repo;
pub mod salvage;
pub mod scratch;
pub mod seam;
pub mod session_repo;
pub mod sqlite;
pub mod stats;
pub mod turn_repo;
pub mod verify;
pub mod work_dir;
