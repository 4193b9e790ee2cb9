//! All tests that need more than one module, in one binary, since each binary links the whole tree.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests stop where they fail"
)]

mod app_drafts;
mod app_folder;
mod app_inspect;
mod app_list;
mod app_open;
mod app_send;
mod app_start;
mod app_world;
mod cli_run;
mod cli_sessions;
mod cli_storage;
mod cli_world;
mod conformance;
mod domain_damage;
mod domain_entries;
mod domain_golden;
mod domain_lines_kept;
mod domain_lines_odd;
mod domain_lines_refused;
mod domain_live;
mod domain_properties;
mod domain_refusals;
mod domain_refusals_calls;
mod domain_refusals_tools;
mod domain_sessions;
mod domain_turn_state;
mod mailbox_crash;
mod mailbox_inbox;
mod openai_compatible;
mod runtime_any_cut;
mod runtime_audit;
mod runtime_cancel;
mod runtime_classifier;
mod runtime_context;
mod runtime_crash_buffer;
mod runtime_headless;
mod runtime_inputs;
mod runtime_live;
mod runtime_permissions;
mod runtime_plain;
mod runtime_recovery;
mod runtime_reports;
mod runtime_store;
mod runtime_tools;
mod scenarios;
mod sessions_compact;
mod sessions_delete;
mod sessions_destroy;
mod sessions_facts;
mod sessions_files;
mod sessions_fork;
mod sessions_gc;
mod sessions_index;
mod sessions_inputs;
mod sessions_log;
mod sessions_property;
mod sessions_queue;
mod sessions_queue_real;
mod sessions_races;
mod sessions_real;
mod sessions_real_index;
mod sessions_real_inputs;
mod sessions_real_send;
mod sessions_real_world;
mod sessions_send;
mod sessions_stop;
mod sessions_titles;
mod simulation;
mod stalled;
mod store_foreign;
mod store_format;
