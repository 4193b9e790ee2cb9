//! The contract of [`LogStore`], as cases that every backend passes. A backend that loses all with
//! its process leaves out the cases that reopen, one without files those that tear.
#![expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "the suite panics where a backend breaks its contract"
)]

mod cases;
mod restarts;
mod upkeep;

use std::sync::Arc;

pub use cases::*;
pub use restarts::*;
pub use upkeep::*;

use crate::store::log::{Inspection, LogId, LogKind, Record, Removed};
use crate::store::seam::{LogStore, LogWriter};

/// A backend under test.
pub trait Subject: Send + Sync {
    /// The store.
    fn store(&self) -> Arc<dyn LogStore>;
}

/// A backend whose logs outlive its store.
pub trait Reopens: Subject {
    /// What a process that starts now finds.
    fn reopened(&self) -> Arc<dyn LogStore>;
}

/// A backend whose logs are files of their own.
pub trait Tears: Reopens {
    /// Adds whole lines to a log behind the store's back, whatever is in them.
    fn add(&self, log: &LogId, lines: &[u8]);

    /// Adds what is left of a line in which a crash came; gives how many bytes that is.
    fn tear(&self, log: &LogId, line: &[u8]) -> u64;
}

/// Makes one test of each case, for the subject that the expression makes.
#[macro_export]
macro_rules! store_contract {
    (every $subject:expr) => {
        $crate::store_contract!(@ $subject =>
            what_is_appended_is_read_back_byte_for_byte
            a_log_is_created_once
            a_log_begins_with_a_record
            batches_have_any_size
            reading_changes_nothing
            a_suffix_is_read_by_its_number
            revisions_tell_what_has_changed
            lists_skip_nothing_and_are_sorted
            a_log_has_one_writer
            a_failed_open_takes_nothing
            a_dropped_read_harms_nobody
            a_dropped_append_keeps_the_order
            a_live_log_is_read_as_far_as_acknowledged
            removing_and_restoring_are_inverse
            what_was_removed_is_read_where_it_is
            nothing_is_restored_over_a_log
            what_is_not_there_is_not_found
            all_of_a_sound_log_is_had_and_weighed
            all_of_a_removed_log_is_had
            a_removal_is_taken_over_under_its_key
            nothing_is_wrong_with_what_was_only_written
        );
    };
    (reopens $subject:expr) => {
        $crate::store_contract!(@ $subject =>
            what_was_acknowledged_is_there_after_a_restart
            what_was_removed_can_be_restored_after_a_restart
            a_store_dropped_with_appends_under_way_loses_none_of_the_acknowledged
        );
    };
    (tears $subject:expr) => {
        $crate::store_contract!(@ $subject =>
            a_torn_end_is_left_out_by_reading_and_cut_by_opening_once
            a_live_log_is_never_repaired
            a_damaged_record_is_named_by_its_line
            a_log_without_its_first_record_is_corrupt
            a_damaged_log_is_listed_and_can_be_removed
            of_a_damaged_log_all_else_is_had
        );
    };
    (@ $subject:expr => $($case:ident)+) => {
        $(
            #[tokio::test]
            async fn $case() {
                $crate::testing::store::contract::$case(&$subject).await;
            }
        )+
    };
}

/// Whether an operation was refused for the reason that the pattern names.
macro_rules! check_refused {
    ($outcome:expr, $why:pat) => {
        let outcome = $outcome;
        assert!(matches!(outcome, Err($why)), "{outcome:?}");
    };
}
use check_refused;

pub(super) async fn created(
    store: &Arc<dyn LogStore>,
    log: &LogId,
    batch: &[Record],
) -> Box<dyn LogWriter> {
    store.create(log, batch).await.expect("the log can be created")
}

pub(super) async fn read(store: &Arc<dyn LogStore>, log: &LogId) -> Arc<Inspection> {
    store.inspect(log).await.expect("the log can be read")
}

pub(super) async fn check_records(store: &Arc<dyn LogStore>, log: &LogId, expected: &[Record]) {
    let found = read(store, log).await;
    assert_eq!(found.records, expected);
    assert_eq!(Some(&found.first), expected.first());
    assert_eq!(found.torn, None);
    let text = store.scan(log).expect("the log can be scanned");
    assert_eq!(text.records().as_ref(), Ok(&found.records));
    assert_eq!((text.revision, text.torn), (found.revision, found.torn));
}

pub(super) async fn check_list(store: &Arc<dyn LogStore>, expected: &[LogId]) {
    assert_eq!(store.list(LogKind::Turn).await.expect("listed"), expected);
}

pub(super) async fn check_removed(store: &Arc<dyn LogStore>, expected: &[Removed]) {
    assert_eq!(store.removed().await.expect("listed"), expected);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::jsonl::Encoding;
    use crate::store::seam::SyncMode;
    use crate::store::{jsonl, memory, sqlite};
    use crate::testing::store::{Home, encoded, memory_store, torn};
    use std::fs::OpenOptions;
    use std::io::Write as _;

    impl Subject for memory::Store {
        fn store(&self) -> Arc<dyn LogStore> {
            Arc::new(self.clone())
        }
    }

    struct Jsonl(Home, jsonl::Options);

    impl Subject for Jsonl {
        fn store(&self) -> Arc<dyn LogStore> {
            Arc::new(self.0.store(self.1))
        }
    }

    impl Reopens for Jsonl {
        fn reopened(&self) -> Arc<dyn LogStore> {
            self.store()
        }
    }

    impl Tears for Jsonl {
        fn add(&self, log: &LogId, lines: &[u8]) {
            self.write(log, &encoded(self.1.encoding, lines));
        }

        fn tear(&self, log: &LogId, line: &[u8]) -> u64 {
            let bytes = torn(self.1.encoding, line);
            self.write(log, &bytes);
            bytes.len() as u64
        }
    }

    impl Jsonl {
        fn write(&self, log: &LogId, bytes: &[u8]) {
            let path = self.0.file_in(self.1.encoding, log);
            let file = OpenOptions::new().append(true).create(true).open(path);
            file.expect("the file can be opened").write_all(bytes).expect("and written");
        }
    }

    fn jsonl(encoding: Encoding, sync: SyncMode) -> Jsonl {
        Jsonl(Home::new(), jsonl::Options { encoding, sync, ..jsonl::Options::default() })
    }

    struct Sqlite(Home, sqlite::Options);

    impl Subject for Sqlite {
        fn store(&self) -> Arc<dyn LogStore> {
            Arc::new(self.0.database(self.1))
        }
    }

    impl Reopens for Sqlite {
        fn reopened(&self) -> Arc<dyn LogStore> {
            self.store()
        }
    }

    fn sqlite(sync: SyncMode) -> Sqlite {
        Sqlite(Home::new(), sqlite::Options { sync, ..sqlite::Options::default() })
    }

    mod in_memory {
        use super::*;
        store_contract!(every memory_store());
    }

    mod in_files {
        use super::*;
        store_contract!(every jsonl(Encoding::Lines, SyncMode::Barrier));
        store_contract!(reopens jsonl(Encoding::Lines, SyncMode::Barrier));
        store_contract!(tears jsonl(Encoding::Lines, SyncMode::Barrier));
    }

    mod in_files_that_are_never_synced {
        use super::*;
        store_contract!(every jsonl(Encoding::Lines, SyncMode::Never));
        store_contract!(tears jsonl(Encoding::Lines, SyncMode::Never));
    }

    mod in_files_that_are_always_synced {
        use super::*;
        store_contract!(every jsonl(Encoding::Lines, SyncMode::Always));
    }

    mod in_frames {
        use super::*;
        store_contract!(every jsonl(Encoding::Frames, SyncMode::Barrier));
        store_contract!(reopens jsonl(Encoding::Frames, SyncMode::Barrier));
        store_contract!(tears jsonl(Encoding::Frames, SyncMode::Barrier));
    }

    mod in_frames_that_are_never_synced {
        use super::*;
        store_contract!(every jsonl(Encoding::Frames, SyncMode::Never));
        store_contract!(tears jsonl(Encoding::Frames, SyncMode::Never));
    }

    mod in_frames_that_are_always_synced {
        use super::*;
        store_contract!(every jsonl(Encoding::Frames, SyncMode::Always));
    }

    mod in_sqlite {
        use super::*;
        store_contract!(every sqlite(SyncMode::Barrier));
        store_contract!(reopens sqlite(SyncMode::Barrier));
    }

    mod in_sqlite_that_is_never_synced {
        use super::*;
        store_contract!(every sqlite(SyncMode::Never));
        store_contract!(reopens sqlite(SyncMode::Never));
    }

    mod in_sqlite_that_is_always_synced {
        use super::*;
        store_contract!(every sqlite(SyncMode::Always));
        store_contract!(reopens sqlite(SyncMode::Always));
    }
}
