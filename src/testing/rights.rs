//! Work to which the permissions of files apply, whoever runs the tests.

use std::thread;

/// Runs `work` on a thread of its own, of which neither it nor the processes that it starts may write
/// what permissions forbid: not even for the user who may everything.
///
/// # Panics
/// When the work does, or the system does not let go of the privilege.
pub fn within_permissions<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|threads| {
        let worker = threads.spawn(|| {
            give_up_privilege();
            work()
        });
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[cfg(target_os = "linux")]
fn give_up_privilege() {
    use rustix::thread::{
        CapabilitySet, capabilities, remove_capability_from_bounding_set, set_capabilities,
    };
    let privilege = CapabilitySet::DAC_OVERRIDE;
    let mut sets = capabilities(None).expect("every thread has some, or none");
    if sets.effective.contains(privilege) {
        // Of the processes that are started first, while that is still allowed.
        remove_capability_from_bounding_set(privilege).expect("less is always granted");
        sets.effective.remove(privilege);
        sets.permitted.remove(privilege);
        set_capabilities(None, sets).expect("less is always granted");
    }
}

#[cfg(not(target_os = "linux"))]
fn give_up_privilege() {}
