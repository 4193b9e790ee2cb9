//! The durability seam and its real parts: logs in files or in memory, the crash buffer of a turn,
//! the lock on the work directory, and small private files.
//!
//! A **log** is an append-only sequence of records, one JSON object each, with a kind and an id.
//! [`seam`] says what every backend promises; [`jsonl`] and [`memory`] keep it. What records mean is
//! known only to [`repo`], which reads and writes them as events of [`domain`](crate::domain).
//!
//! From below: [`disk`] is every file operation, so that a test can make any of them fail; [`log`] and
//! [`error`] are the words; [`seam`] the traits; then the backends; then the typed repositories.
//! Beside them stand [`live_text`], [`scratch`], [`lock`] and [`work_dir`].
//!
//! How more fits in:
//!
//! - **Another format in files** (frames that are compressed and checked) differs in how records
//!   become bytes, how bytes become records and a torn end, and in the suffix of the names. Lists,
//!   publication, removal, ownership and the proof of what is on the device stay as they are: an end
//!   ([`jsonl`]'s `append`) takes whole encoded batches.
//! - **A database** is a backend of its own beside [`memory`]: `locate` gives `None`, a revision is
//!   the database's identity, the log's incarnation and a counter, `removed` are rows, and
//!   [`scan`](seam::LogStore::scan) reads on a connection of the calling thread.
//! - **A coordinator** (one queue for each log, batches that wait join, what failed is held and tried
//!   again) is a [`LogStore`](seam::LogStore) around another. It rests on two promises: a failed append
//!   left nothing, and the same batch may be given again.
//! - **Conversion, search and salvage** read by [`inspect`](seam::LogStore::inspect) and
//!   [`snapshots`](seam::LogStore::snapshots), and need nothing of a backend.

pub(crate) mod atomic;
pub(crate) mod blocking;
pub mod cache;
pub(crate) mod destroy;
pub mod disk;
pub mod error;
pub mod jsonl;
pub mod live_text;
pub mod lock;
pub mod log;
pub mod memory;
pub mod repo;
pub mod scratch;
pub mod seam;
pub mod session_repo;
pub mod turn_repo;
pub mod work_dir;
