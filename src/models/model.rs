//! The seam: what a model is to whoever calls it.

use futures_util::stream::BoxStream;
use tokio_util::sync::CancellationToken;

use crate::domain::agent::ModelDescriptor;
use crate::models::delta::ModelDelta;
use crate::models::error::ModelError;
use crate::models::request::ModelRequest;

/// An answer on its way.
pub type DeltaStream = BoxStream<'static, Result<ModelDelta, ModelError>>;

/// A model of some provider.
///
/// The stream of an answer keeps these rules, whatever the provider does
/// (`testing::stream_rules::check_stream` holds every model to them):
///
/// - It ends in exactly one of [`ModelDelta::Finish`] and an error; nothing follows either.
/// - Blocks do not nest: a start, its pieces, its end, then the next block. An error may leave the
///   last block open; what came of it stands.
/// - The pieces of the blocks, joined, are the texts of the finished answer; the tool calls that
///   were told are its tool calls, in the same order.
/// - When the token is cancelled it ends with [`ModelError`] of
///   [`Failure::Cancelled`](crate::models::error::Failure::Cancelled); dropping it is as good. Either
///   way the connection is closed.
/// - Nothing happens before the stream is polled.
pub trait Model: Send + Sync {
    /// Which model this is.
    fn descriptor(&self) -> &ModelDescriptor;

    /// Sends a request and gives the answer as it comes.
    fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> DeltaStream;
}
