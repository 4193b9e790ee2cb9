//! What agents can do: the seam that every tool fills, the registry, and the built-in tools. They
//! know nothing of permissions but what their call was allowed, and nothing of turns or screens.

use std::sync::Arc;

pub mod ask_human;
mod change;
#[cfg(test)]
mod confinement;
pub mod edit_file;
pub mod files;
pub mod input;
mod lines;
pub mod list_dir;
pub mod output;
pub mod process;
pub mod read_file;
mod record;
pub mod registry;
#[cfg(test)]
mod rig;
pub mod search;
pub mod shell;
pub mod tool;
mod walk;
pub mod workspace;
pub mod write_file;

/// The built-in tools, in the order in which agents are offered them.
#[must_use]
pub fn built_in(shell: shell::Options) -> Vec<Arc<dyn tool::Tool>> {
    vec![
        Arc::new(read_file::ReadFile::new()),
        Arc::new(list_dir::ListDir::new()),
        Arc::new(search::Search::new()),
        Arc::new(edit_file::EditFile::new()),
        Arc::new(write_file::WriteFile::new()),
        Arc::new(shell::Shell::new(shell)),
        Arc::new(ask_human::AskHuman::new()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::json::Json;
    use crate::tools::registry::Registry;

    #[test]
    fn what_models_are_told_of_the_tools_changes_only_on_purpose() {
        let registry = Registry::new(built_in(shell::Options::new(Vec::new()))).unwrap();
        let lines = registry.descriptors();
        let lines: Vec<_> = lines.iter().map(|tool| Json::of(tool).get().to_owned()).collect();
        let told = lines.join("\n") + "\n";
        assert_eq!(told, include_str!("../tests/golden/tools.jsonl"));
    }
}
