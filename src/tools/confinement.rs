//! The property that the tools for files are built for: a call that was found to be inside the
//! session's folder touches nothing outside, whatever links there are and whenever they appear.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::json;

use crate::domain::json::Json;
use crate::domain::permission::plan::{LocatedPath, Plan};
use crate::tools::edit_file::EditFile;
use crate::tools::list_dir::ListDir;
use crate::tools::read_file::ReadFile;
use crate::tools::rig::Rig;
use crate::tools::search::Search;
use crate::tools::tool::{Permit, Tool};
use crate::tools::write_file::WriteFile;

/// Something that is put into the tree, in place of what stood there.
#[derive(Clone, Debug)]
enum Put {
    File(PathBuf),
    Folder(PathBuf),
    Link(PathBuf, String),
}

/// Paths from a few names only, so that they often meet.
fn any_path() -> impl Strategy<Value = PathBuf> {
    proptest::collection::vec("[abc]", 1..4).prop_map(|names| names.iter().collect())
}

/// What a link may hold and a model may write. `<root>` stands for the folder around.
fn any_text() -> impl Strategy<Value = String> {
    let part = prop_oneof![4 => "[abc]", 2 => Just("..".to_owned()), 1 => Just(".".to_owned())];
    let start = prop_oneof![
        4 => Just(""), 1 => Just("<root>/in/"), 1 => Just("<root>/out/"), 1 => Just("../out/"),
    ];
    let parts = proptest::collection::vec(part, 1..5).prop_map(|parts| parts.join("/"));
    (start, parts).prop_map(|(start, parts)| format!("{start}{parts}"))
}

fn any_tree() -> impl Strategy<Value = Vec<Put>> {
    let put = prop_oneof![
        any_path().prop_map(Put::File),
        any_path().prop_map(Put::Folder),
        (any_path(), any_text()).prop_map(|(path, target)| Put::Link(path, target)),
    ];
    proptest::collection::vec(put, 0..8)
}

impl Put {
    /// Does it, unless something is in the way. Nothing is put through a link.
    fn apply(&self, rig: &Rig) {
        let (Self::File(path) | Self::Folder(path) | Self::Link(path, _)) = self;
        let mut folder = rig.path("");
        for name in path.parent().unwrap() {
            folder.push(name);
            if folder.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
                return;
            }
        }
        std::fs::create_dir_all(&folder).unwrap();
        let place = rig.path(path.to_str().unwrap());
        if place.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            std::fs::remove_dir_all(&place).unwrap();
        } else {
            drop(std::fs::remove_file(&place));
        }
        match self {
            Self::File(_) => std::fs::write(&place, "inside\n").unwrap(),
            Self::Folder(_) => std::fs::create_dir(&place).unwrap(),
            Self::Link(_, target) => {
                std::os::unix::fs::symlink(full(rig, target), &place).unwrap();
            }
        }
    }
}

/// Which name of the path of a call becomes a link when it has been judged, and to what.
fn any_swap() -> impl Strategy<Value = (usize, String)> {
    (0_usize..4, proptest::sample::select(vec!["out", "out/a", "out/b", "out/c", "in", "."]))
        .prop_map(|(at, target)| (at, format!("<root>/{target}")))
}

fn swap(rig: &Rig, path: &LocatedPath, at: usize, target: &str) {
    let names = Path::new(&path.resolved).strip_prefix(rig.path("")).unwrap();
    if at < names.iter().count() {
        let link: PathBuf = names.iter().take(at + 1).collect();
        Put::Link(link, target.to_owned()).apply(rig);
    }
}

fn full(rig: &Rig, text: &str) -> String {
    text.replace("<root>", rig.root().to_str().unwrap())
}

/// Everything outside: all names, and the contents of files.
fn outside(rig: &Rig) -> BTreeMap<PathBuf, Option<String>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![rig.root()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && path != rig.path("") {
                folders.push(path.clone());
            }
            found.insert(path.clone(), std::fs::read_to_string(path).ok());
        }
    }
    found
}

fn rig_with(tree: &[Put]) -> Rig {
    let rig = Rig::new();
    for file in ["c", "secret", "a/a", "a/b", "a/secret", "b/b/a", "b/c", "b/secret"] {
        let path = rig.root().join("out").join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "secret\n").unwrap();
    }
    for put in tree {
        put.apply(&rig);
    }
    rig
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_path_is_located_where_the_system_would_find_it(tree in any_tree(), text in any_text()) {
        let rig = rig_with(&tree);
        let text = full(&rig, &text);
        let plan = Plan { reads: vec![text.clone()], ..Plan::default() };
        let really = rig.path("").join(&text).canonicalize();
        if let Ok(located) = rig.workspace().locate(&plan) {
            let located = &located.reads[0];
            if let Ok(really) = really {
                prop_assert_eq!(Path::new(&located.resolved), really);
            }
            prop_assert_eq!(located.inside, Path::new(&located.resolved).starts_with(rig.path("")));
        } else {
            prop_assert!(really.is_err());
        }
    }

    #[test]
    fn a_call_inside_touches_nothing_outside(
        tree in any_tree(), path in any_text(), which in 0_usize..5,
        meanwhile in any_tree(), (at, target) in any_swap(),
    ) {
        let tools: [Box<dyn Tool>; 5] = [
            Box::new(WriteFile::new()),
            Box::new(EditFile::new()),
            Box::new(ReadFile::new()),
            Box::new(Search::new()),
            Box::new(ListDir::new()),
        ];
        let rig = rig_with(&tree);
        let path = full(&rig, &path);
        let input = [
            json!({ "path": path, "content": "written" }),
            json!({ "path": path, "old_text": "secret", "new_text": "written", "replace_all": true }),
            json!({ "path": path }),
            json!({ "path": path, "pattern": "secret" }),
            json!({ "path": path, "depth": 3 }),
        ];
        let (tool, input) = (tools[which].as_ref(), &input[which]);
        let plan = tool.plan(&Json::from_value(input)).unwrap();
        let Ok(plan) = rig.workspace().locate(&plan) else { return Ok(()) };
        if !plan.reads.iter().chain(&plan.writes).all(|path| path.inside) {
            return Ok(());
        }
        for put in &meanwhile {
            put.apply(&rig);
        }
        swap(&rig, plan.reads.iter().chain(&plan.writes).next().unwrap(), at, &target);
        let before = outside(&rig);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let ran = runtime.block_on(rig.run_with(tool, input, Permit::Allowed(plan)));
        prop_assert_eq!(before, outside(&rig));
        prop_assert!(!ran.text.contains("secret"), "{}", ran.text);
    }
}
