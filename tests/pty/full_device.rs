//! A device that is filled to the brim while a turn is under way: the program says what is held, and
//! when there is room again the turn goes on with nothing lost.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use turnstile::testing::folder::files;
use turnstile::testing::pty::{Home, Launch, Program};

use crate::person::{PROGRAM, dismiss_question, go_on, go_to_prompt, quit, say};

/// What a shell in namespaces of its own does with a folder as `$0` and a program behind it.
const MOUNT: &str = "mount -t tmpfs -o size=2m,mode=0700 none \"$0\" && exec \"$@\"";

fn unshared(folder: &Path, program: &str) -> Vec<String> {
    let folder = folder.to_str().expect("temporary folders are text");
    let words = ["--user", "--map-root-user", "--mount", "sh", "-c", MOUNT, folder, program];
    words.map(str::to_owned).into()
}

/// The work directory as the program sees it, in which alone it is mounted.
fn mounted(program: &Program, home: &Home) -> PathBuf {
    let root = PathBuf::from(format!("/proc/{}/root", program.pid().as_raw_nonzero()));
    root.join(home.work_dir().strip_prefix("/").expect("an absolute path"))
}

/// Leaves no byte free.
fn fill(ballast: &Path) {
    let mut file = File::create(ballast).expect("a file");
    for size in [64 * 1024, 4 * 1024, 64, 1] {
        let piece = vec![b'x'; size];
        while file.write_all(&piece).is_ok() {}
    }
}

/// A home with what is in this work directory, whose file system goes with its program.
fn kept(work_dir: &Path) -> Home {
    let home = Home::new();
    for file in files(work_dir) {
        let copy = home.work_dir().join(file.strip_prefix(work_dir).expect("it is below"));
        fs::create_dir_all(copy.parent().expect("a folder")).expect("a folder");
        fs::copy(file, copy).expect("a copy");
    }
    home
}

#[test]
#[expect(clippy::print_stdout, reason = "what was not tried must be said")]
fn what_a_full_device_holds_is_told_and_the_turn_goes_on_when_there_is_room() {
    let home = Home::new();
    fs::create_dir_all(home.work_dir()).expect("a folder");
    let tried = Command::new("unshare").args(unshared(&home.work_dir(), "true")).output();
    if !tried.is_ok_and(|ended| ended.status.success()) {
        println!("skipped: nobody may mount a file system here, so that none can be filled");
        return;
    }
    let words = unshared(&home.work_dir(), PROGRAM);
    let launch = Launch::new("unshare", &home).size(120, 40);
    let launch = words.iter().fold(launch, |launch, word| launch.argument(word));
    let mut program = launch.start();
    program.wait_for_text("guide/guide");
    say(&mut program, "hello");
    go_to_prompt(&mut program, "Allow write-file?");
    let work_dir = mounted(&program, &home);
    fill(&work_dir.join("ballast"));
    program.send("n");
    program.wait_for_text("storage stalled: No space left on device");
    program.wait_for_text("held");
    fs::remove_file(work_dir.join("ballast")).expect("it can go");
    program.wait_until_gone("storage stalled");
    dismiss_question(&mut program);
    let kept = kept(&work_dir);
    quit(program);

    let program = go_on(&kept);
    program.wait_for_text("✓ done");
    assert!(!program.screen().contains("damaged"), "{}", program.screen());
    quit(program);
}
