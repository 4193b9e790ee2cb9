//! The seam to models and its real parts: everything that a provider speaks is translated here, and
//! nothing above this floor knows a provider.

pub mod context_block;
pub mod delta;
pub mod error;
pub mod estimate;
pub mod guide;
pub mod http;
pub mod model;
pub mod openai_compatible;
pub mod registry;
pub mod request;
