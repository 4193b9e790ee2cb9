//! The table of what must be tested, `tests/scenarios.txt`, against the tests that there are.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const TABLE: &str = include_str!("../scenarios.txt");

/// How many scenarios each part of the documents has: none goes missing unnoticed.
const COUNTS: [(&str, usize); 23] = [
    ("CASES Durability", 18),
    ("CASES Opening and resuming", 6),
    ("CASES Queued messages", 5),
    ("CASES Writers and ownership", 10),
    ("SL 13.1", 3),
    ("SL 13.2", 4),
    ("SL 13.3", 6),
    ("SL 13.4", 2),
    ("SL 13.5", 5),
    ("SL 13.6", 4),
    ("SL 13.7", 2),
    ("SL 13.8", 1),
    ("SL 16.1", 1),
    ("SL 16.2", 1),
    ("SL 16.3", 1),
    ("SL 16.4", 1),
    ("SL 16.5", 1),
    ("SL 16.6", 1),
    ("SL 16.7", 1),
    ("SL 16.8", 1),
    ("SL 16.9", 1),
    ("SS", 7),
    ("TR 14", 18),
];

/// A scenario, and the tests that hold it.
struct Scenario {
    source: &'static str,
    text: &'static str,
    tests: Vec<&'static str>,
}

fn scenarios() -> Vec<Scenario> {
    let mut scenarios: Vec<Scenario> = Vec::new();
    for line in TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(test) = line.strip_prefix("    ") {
            scenarios.last_mut().expect("a test has a scenario above it").tests.push(test);
        } else {
            let (source, text) = line.split_once(" | ").expect("where it stands, what it says");
            scenarios.push(Scenario { source, text, tests: Vec::new() });
        }
    }
    scenarios
}

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names of the functions in a file that are run as tests: not those that are ignored.
fn tests_in(source: &str) -> BTreeSet<&str> {
    let mut tests = BTreeSet::new();
    let (mut is_test, mut is_ignored) = (false, false);
    for line in source.lines().map(str::trim_start) {
        is_test |= ["#[test]", "#[tokio::test"].iter().any(|it| line.starts_with(it));
        let on_condition = line.starts_with("#[cfg_attr(") && line.contains("ignore");
        is_ignored |= line.starts_with("#[ignore") || on_condition;
        let function = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
        if let Some(function) = function {
            let name = function.split(['(', '<']).next().unwrap_or_default();
            if is_test && !is_ignored {
                tests.insert(name);
            }
            (is_test, is_ignored) = (false, false);
        }
    }
    tests
}

#[test]
fn a_test_is_what_is_run_as_one() {
    let source = [
        "#[test]\nfn one() {}",
        "fn two() {}",
        "#[tokio::test(start_paused = true)]\n#[expect(lint)]\nasync fn three() {}",
        "#[test]\n#[ignore]\nfn four() {}",
        "#[ignore = \"slow\"]\n#[test]\nfn five() {}",
        "#[cfg_attr(debug_assertions, ignore)]\n#[test]\nfn six() {}",
        "#[test]\nfn seven() {}",
    ]
    .join("\n");
    assert_eq!(tests_in(&source), BTreeSet::from(["one", "three", "seven"]));
}

#[test]
fn every_part_of_the_documents_has_all_its_scenarios() {
    let mut counts = BTreeMap::new();
    for scenario in scenarios() {
        *counts.entry(scenario.source).or_insert(0) += 1;
    }
    assert_eq!(counts, BTreeMap::from(COUNTS));
}

#[test]
fn every_scenario_has_tests_and_every_test_is_there() {
    let (mut files, mut seen) = (BTreeMap::new(), BTreeSet::new());
    for Scenario { source, text, tests } in scenarios() {
        assert!(seen.insert((source, text)), "it stands here twice: {text}");
        assert!(!tests.is_empty(), "nothing tests it: {source}: {text}");
        for test in tests {
            let (file, name) = test.split_once("::").expect("a file and a test");
            let content: &String = files.entry(file).or_insert_with(|| read(file));
            assert!(tests_in(content).contains(name), "there is no such test: {test}");
        }
    }
}

#[test]
fn every_test_with_the_number_of_a_scenario_stands_below_one_of_that_number() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all");
    let scenarios = scenarios();
    for file in fs::read_dir(folder).expect("it can be listed") {
        let name = file.expect("readable").file_name().into_string().expect("text");
        let path = format!("tests/all/{name}");
        for test in tests_in(&read(&path)) {
            let Some(numbered) = test.strip_prefix("s13_") else { continue };
            let number = numbered.split('_').next().unwrap_or_default();
            let (source, test) = (format!("SL 13.{number}"), format!("{path}::{test}"));
            let stands = |it: &Scenario| it.source == source && it.tests.contains(&test.as_str());
            assert!(scenarios.iter().any(stands), "{test} stands below no scenario of {source}");
        }
    }
}

#[test]
fn what_the_session_layer_does_is_tried_on_both_runtimes() {
    let of_a_call = ["SL 13.3", "SL 13.4", "SL 13.5", "SL 13.6", "SL 13.7", "SL 13.8"];
    for Scenario { text, tests, .. } in
        scenarios().into_iter().filter(|it| of_a_call.contains(&it.source))
    {
        let (real, scripted): (Vec<&str>, Vec<&str>) =
            tests.into_iter().partition(|test| test.contains("/sessions_real"));
        assert!(!real.is_empty(), "not on the real runtime: {text}");
        assert!(!scripted.is_empty(), "not on the scripted runtime: {text}");
    }
}
