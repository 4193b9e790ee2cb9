//! All tests that need more than one module, in one binary, since each binary links the whole tree.
#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "tests stop where they fail")]

mod conformance;
