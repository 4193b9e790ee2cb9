//! The tools that there are, found by what a turn's log says of them.

use std::sync::Arc;

use crate::domain::agent::{Execution, ToolDescriptor};
use crate::tools::tool::Tool;

/// All tools of this program. Their order is the order in which a model is offered them.
#[derive(Clone, Default)]
pub struct Registry {
    tools: Vec<Arc<dyn Tool>>,
}

/// Why tools cannot stand in one registry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// Two tools have one id or one name.
    #[error("two tools are called {0:?}")]
    Twice(String),
    /// An id is not in `snake_case`, or a name is not what providers accept.
    #[error("{0:?} is no name for a tool; ids are snake_case, names letters, digits, `-` and `_`")]
    Malformed(String),
}

/// An agent wants a tool that there is not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no tool {0:?}")]
pub struct UnknownTool(pub String);

/// What providers accept as the name of a tool.
const NAME_BYTES_MAX: usize = 64;

impl Registry {
    /// A registry of these tools.
    ///
    /// # Errors
    /// [`RegistryError`] when ids or names clash or have the wrong form.
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Result<Self, RegistryError> {
        for (at, tool) in tools.iter().enumerate() {
            let ToolDescriptor { tool_id, name, .. } = tool.descriptor();
            if !is_name(tool_id) || tool_id.contains('-') {
                return Err(RegistryError::Malformed(tool_id.clone()));
            }
            if !is_name(name) {
                return Err(RegistryError::Malformed(name.clone()));
            }
            for other in tools.iter().take(at).map(|tool| tool.descriptor()) {
                if other.tool_id == *tool_id || other.name == *name {
                    return Err(RegistryError::Twice(name.clone()));
                }
            }
        }
        Ok(Self { tools })
    }

    /// The tool behind a stored descriptor. One that is executed in another way today is another
    /// tool.
    #[must_use]
    pub fn find(&self, tool_id: &str, execution: Execution) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| {
            let descriptor = tool.descriptor();
            descriptor.tool_id == tool_id && descriptor.execution == execution
        })
    }

    /// What a model is told of all tools.
    #[must_use]
    pub fn descriptors(&self) -> Vec<ToolDescriptor> {
        self.tools.iter().map(|tool| tool.descriptor().clone()).collect()
    }

    /// What a model is told of the tools that an agent wants, by their ids or their names, in the
    /// order of the registry.
    ///
    /// # Errors
    /// [`UnknownTool`]: the first that there is not.
    pub fn select(&self, wanted: &[String]) -> Result<Vec<ToolDescriptor>, UnknownTool> {
        let all = self.descriptors();
        let is_meant = |tool: &ToolDescriptor, by: &String| tool.tool_id == *by || tool.name == *by;
        let unknown = wanted.iter().find(|by| !all.iter().any(|tool| is_meant(tool, by)));
        match unknown {
            Some(name) => Err(UnknownTool(name.clone())),
            None => Ok(all
                .into_iter()
                .filter(|tool| wanted.iter().any(|by| is_meant(tool, by)))
                .collect()),
        }
    }
}

fn is_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    !text.is_empty() && text.len() <= NAME_BYTES_MAX && text.bytes().all(fits)
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ids = self.tools.iter().map(|tool| &tool.descriptor().tool_id);
        f.debug_list().entries(ids).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::json::Json;
    use crate::domain::permission::plan::Plan;
    use crate::tools::input::InputError;

    struct Named(ToolDescriptor);

    impl Tool for Named {
        fn descriptor(&self) -> &ToolDescriptor {
            &self.0
        }

        fn plan(&self, _: &Json) -> Result<Plan, InputError> {
            Ok(Plan::default())
        }
    }

    fn registry(names: &[(&str, &str)]) -> Result<Registry, RegistryError> {
        let tool = |&(tool_id, name): &(&str, &str)| -> Arc<dyn Tool> {
            Arc::new(Named(ToolDescriptor {
                tool_id: tool_id.to_owned(),
                name: name.to_owned(),
                description: String::new(),
                input_schema: Json::text(""),
                execution: Execution::Sync,
                requires_human: false,
            }))
        };
        Registry::new(names.iter().map(tool).collect())
    }

    #[test]
    fn a_tool_is_found_by_its_id_and_how_it_is_executed() {
        let registry = registry(&[("read_file", "read-file")]).unwrap();
        assert!(registry.find("read_file", Execution::Sync).is_some());
        assert!(registry.find("read_file", Execution::Async).is_none());
        assert!(registry.find("read-file", Execution::Sync).is_none());
    }

    #[test]
    fn an_agent_gets_the_tools_that_it_names_in_the_order_of_the_registry() {
        let registry = registry(&[("a_b", "a-b"), ("c", "c"), ("d_e", "d-e")]).unwrap();
        let select = |wanted: &[&str]| {
            let wanted: Vec<_> = wanted.iter().map(|&name| name.to_owned()).collect();
            let tools = registry.select(&wanted)?;
            Ok(tools.into_iter().map(|tool| tool.tool_id).collect::<Vec<_>>())
        };
        assert_eq!(select(&["d-e", "a_b"]), Ok(vec!["a_b".to_owned(), "d_e".to_owned()]));
        assert_eq!(select(&[]), Ok(Vec::new()));
        assert_eq!(select(&["c", "x"]), Err(UnknownTool("x".to_owned())));
    }

    #[test]
    fn ids_and_names_are_checked() {
        let check = |names, expected| assert_eq!(registry(names).err(), expected, "{names:?}");
        let twice = |name: &str| Some(RegistryError::Twice(name.to_owned()));
        let malformed = |name: &str| Some(RegistryError::Malformed(name.to_owned()));
        check(&[("a", "a"), ("b", "b")], None);
        check(&[("mcp__hub__get_x", "mcp__hub__get_x")], None);
        check(&[("a", "a"), ("a", "b")], twice("b"));
        check(&[("a", "a"), ("b", "a")], twice("a"));
        check(&[("a-b", "a")], malformed("a-b"));
        check(&[("a", "a b")], malformed("a b"));
        check(&[("", "a")], malformed(""));
    }
}
