//! The graph of everything below: each part gets what it needs as an argument, and the configuration
//! is taken apart here, so that no part knows it.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;

use crate::agents::choice::{Chosen, DefaultModel};
use crate::agents::resolver::Resolver;
use crate::app::assemble::{StartError, Startup, WorkPlace};
use crate::app::providers::Providers;
use crate::app::storage::{Storage, sync_mode};
use crate::app::{Graph, Origins};
use crate::base::clock::Clock;
use crate::base::id::{EventIds, IdSource, Ids};
use crate::base::tasks::Tasks;
use crate::config::credential::KeySource;
use crate::config::environment::Environment;
use crate::config::layer::{AGENT_KEY, Loaded, MODEL_KEY};
use crate::config::schema;
use crate::config::value::VariableName;
use crate::domain::agent::ModelDescriptor;
use crate::mailbox::inbox::Inbox;
use crate::models::model::Model;
use crate::models::registry::{Choice, Models};
use crate::policy::built_in;
use crate::policy::checker::RuleChecker;
use crate::runtime::api::{FindModel, ModelGone};
use crate::runtime::context::ContextResolver;
use crate::runtime::hub::Hub;
use crate::runtime::{self, Parts, TurnRuntime};
use crate::sessions::waiting::Waiting;
use crate::sessions::{self, Sessions, SessionsParts};
use crate::store::cache::CacheBounds;
use crate::store::disk::{Disk, RealDisk};
use crate::store::jsonl;
use crate::store::repo::Repo;
use crate::store::scratch::Scratch;
use crate::store::session_repo::SessionRepo;
use crate::store::turn_repo::TurnRepo;
use crate::store::work_dir::WorkDir;
use crate::tools::registry::Registry;
use crate::tools::shell;

/// What everything else stands on.
struct Ground {
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    storage: Storage,
    session_logs: SessionRepo,
    turn_logs: TurnRepo,
    scratch: Scratch,
    waiting: Arc<dyn Waiting>,
    tasks: Tasks,
}

impl Ground {
    fn new(place: &WorkPlace, configured: schema::Storage, tasks: &Tasks) -> Self {
        let clock = place.clock();
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let sync = sync_mode(configured.sync);
        let parts = jsonl::Parts {
            disk: Arc::clone(&disk),
            clock: Arc::clone(&clock),
            entropy: place.entropy(),
            tasks: tasks.clone(),
            lock: place.lock(),
        };
        let storage = Storage::new(place.dir(), parts, configured);
        let inbox = Inbox::new(
            Arc::clone(&disk),
            place.dir().clone(),
            Arc::clone(&clock),
            tasks.clone(),
            sync,
        );
        Self {
            waiting: Arc::new(inbox),
            ids: Arc::new(Ids::new(Arc::clone(&clock), std::process::id())),
            clock,
            session_logs: Repo::new(
                Arc::clone(&storage.logs),
                tasks.clone(),
                CacheBounds::default(),
            ),
            turn_logs: Repo::new(Arc::clone(&storage.logs), tasks.clone(), CacheBounds::default()),
            storage,
            scratch: Scratch::new(disk, place.dir(), tasks.clone(), sync),
            tasks: tasks.clone(),
        }
    }
}

/// Builds the graph.
///
/// # Errors
/// [`StartError`] names what of the configuration cannot be used.
pub(super) fn build(startup: Startup, tasks: &Tasks, hub: &Hub) -> Result<Graph, StartError> {
    let Startup { loaded, environment, place, redactions, guide_pace } = startup;
    let ground = Ground::new(&place, loaded.config.storage, tasks);
    let providers = Providers {
        loaded: &loaded,
        environment: &environment,
        redactions: &redactions,
        clock: place.clock(),
        entropy: place.entropy(),
        guide_pace,
    };
    let models = Arc::new(providers.models());
    let default_model = DefaultModel::new(first_choice(&models, &loaded.config.models));
    let settings = Settings {
        loaded: &loaded,
        environment: &environment,
        place: &place,
        models: &models,
        default_model: &default_model,
    };
    let runtime = runtime(&ground, hub, &settings)?;
    let here = environment.folder.clone();
    let sessions = Sessions::new(SessionsParts {
        repo: ground.session_logs.clone(),
        turn_logs: ground.turn_logs.clone(),
        turns: Arc::new(runtime.clone()),
        clock: Arc::clone(&ground.clock),
        ids: Arc::clone(&ground.ids),
        waiting: Arc::clone(&ground.waiting),
        event_ids: Arc::new(EventIds::new(Arc::clone(&ground.clock), place.entropy())),
        zone: TimeZone::system(),
        tasks: tasks.clone(),
        current_folder: here.unwrap_or_else(|| loaded.paths.home.clone()),
        options: sessions::Options {
            auto_title: loaded.config.agents.auto_title,
            auto_compact: loaded.config.agents.auto_compact,
        },
    });
    Ok(Graph {
        sessions,
        runtime,
        models,
        default_model,
        model_is_for_this_start: loaded.model_is_for_this_start(),
        default_agent: loaded.config.agents.default.clone(),
        origins: Origins { agent: loaded.origin(AGENT_KEY), model: loaded.origin(MODEL_KEY) },
        access: place.access(),
        tasks: ground.tasks,
        scratch_folders: loaded.paths.scratch(),
        keep_deleted_days: loaded.config.delete.keep_days.get(),
        scratch: ground.scratch,
        dir: place.dir().clone(),
        storage: ground.storage,
        session_logs: ground.session_logs,
        turn_logs: ground.turn_logs,
        clock: ground.clock,
        _lock: place.lock(),
        _guest: place.guest(),
    })
}

/// What the runtime is set up from.
struct Settings<'a> {
    loaded: &'a Loaded,
    environment: &'a Environment,
    place: &'a WorkPlace,
    models: &'a Arc<Models>,
    default_model: &'a DefaultModel,
}

fn runtime(ground: &Ground, hub: &Hub, with: &Settings<'_>) -> Result<TurnRuntime, StartError> {
    let Settings { loaded, environment, place, models, default_model } = *with;
    let config = &loaded.config;
    let tools = Registry::new(crate::tools::built_in(shell_options(config, environment)))?;
    let models: Arc<dyn FindModel> = Arc::new(Finder(Arc::clone(models)));
    // Rules are about where paths lead.
    let root = real(place.dir().root());
    let agents =
        Resolver::new(tools.clone(), Arc::clone(&models), DefaultModel::clone(default_model));
    let rules = built_in::Options {
        work_dir: root.clone(),
        configuration: vec![real(&loaded.paths.config_dir), real(&loaded.paths.config_file.path)],
        home: Some(real(&loaded.paths.home)),
    };
    Ok(TurnRuntime::new(Parts {
        turns: ground.turn_logs.clone(),
        live_text: Arc::clone(&ground.storage.live_text),
        clock: Arc::clone(&ground.clock),
        ids: Arc::clone(&ground.ids),
        agents: Arc::new(agents),
        models,
        tools,
        checker: Arc::new(RuleChecker::new(&rules)?),
        classifier: None,
        hub: hub.clone(),
        tasks: ground.tasks.clone(),
        context: ContextResolver::default(),
        options: runtime::Options {
            max_model_calls: config.agents.max_model_calls.get(),
            output_dir: root.join(WorkDir::OUTPUT),
            output_bytes_max: usize::try_from(config.tools.output_bytes_max.get())
                .unwrap_or(usize::MAX),
        },
    }))
}

fn shell_options(config: &schema::Config, environment: &Environment) -> shell::Options {
    let (keep, remove) = (&config.tools.env.keep, &config.tools.env.remove);
    // What opens a provider is not for commands, whatever it is called.
    let keys = config.providers.values().filter_map(|provider| match &provider.key {
        Some(KeySource::Env(name)) => Some(name),
        Some(KeySource::Command(_)) | None => None,
    });
    let keys = keys.filter(|name| !keep.contains(name));
    let removed: HashSet<&str> = remove.iter().chain(keys).map(VariableName::as_str).collect();
    let removed = |name: &OsStr| name.to_str().is_some_and(|name| removed.contains(name));
    let variables = environment.variables.iter().filter(|(name, _)| !removed(name));
    let variables = variables.map(|(name, value)| (name.clone(), value.clone()));
    shell::Options {
        timeout: Duration::from_secs(config.tools.shell_timeout_s.get()),
        keep: keep.iter().map(|name| name.as_str().to_owned()).collect(),
        ..shell::Options::new(variables.collect())
    }
}

/// Where a path leads, also when its last parts are not there yet.
fn real(path: &Path) -> PathBuf {
    let there = path.ancestors().find_map(|ancestor| {
        let rest = path.strip_prefix(ancestor).ok()?;
        Some(ancestor.canonicalize().ok()?.join(rest))
    });
    // `join` of nothing would put a slash behind a file.
    there.map_or_else(|| path.to_path_buf(), |there| there.components().collect())
}

/// A choice, as it is shown.
pub(super) fn chosen_of(choice: Choice) -> Chosen {
    Chosen { model: choice.model, why: choice.why.to_string() }
}

/// The model of the start. A configured name that leads nowhere stays what it is, and says so where
/// it is shown: whoever only looks is not refused, and [`App::require_answerer`] refuses the others.
///
/// [`App::require_answerer`]: crate::app::App::require_answerer
fn first_choice(models: &Models, config: &schema::Models) -> Chosen {
    models.default_model(None).map_or_else(
        |error| {
            let name = config.default.as_deref().unwrap_or_default();
            let (provider, model) = name.split_once('/').unwrap_or(("", name));
            let (provider, model) = (provider.to_owned(), model.to_owned());
            Chosen { model: ModelDescriptor { provider, model }, why: error.to_string() }
        },
        chosen_of,
    )
}

/// The registry as the runtime sees it.
struct Finder(Arc<Models>);

impl FindModel for Finder {
    fn find(&self, model: &ModelDescriptor) -> Result<Arc<dyn Model>, ModelGone> {
        self.0.model(model).map_err(|gone| ModelGone(gone.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_not_there_yet_leads_where_its_folder_leads() {
        let folder = tempfile::tempdir().expect("a folder");
        let there = folder.path().canonicalize().expect("a real path").join("there");
        std::fs::create_dir(&there).expect("a folder");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&there, &link).expect("a link");
        assert_eq!(real(&link), there);
        assert_eq!(real(&link.join("not/yet")), there.join("not/yet"));
    }

    #[test]
    fn a_command_gets_no_key_of_a_provider_unless_it_is_told_to() {
        let check = |keep: &str, passed: &[&str]| {
            let text = format!(
                "[providers.lab]\nkind = \"openai-compatible\"\nbase_url = \"http://h/v1\"\n\
                 key.env = \"LAB_PASS\"\n[tools.env]\nkeep = [{keep}]\nremove = [\"OTHER\"]\n"
            );
            let config: schema::Config = toml::from_str(&text).expect("a configuration");
            let variables = ["LAB_PASS", "OTHER", "PLAIN"].map(|name| (name.into(), "v".into()));
            let environment = Environment { variables: variables.into(), ..Environment::default() };
            let options = shell_options(&config, &environment);
            let names: Vec<_> = options.environment.iter().map(|(name, _)| name).collect();
            assert_eq!(names, passed);
        };
        check("", &["PLAIN"]);
        check("\"LAB_PASS\"", &["LAB_PASS", "PLAIN"]);
    }
}
