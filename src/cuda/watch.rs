//! Events around what is put into the streams of a GPU, while somebody watches.

use exactile_nvptx::{Context, Event, Stream};

use super::queues::Queues;
use super::{Gpu, failed};
use crate::error::Result;
use crate::profile::{Label, Span};
use crate::stream::DEFAULT;

/// What was put into streams since the beginning.
#[derive(Debug)]
pub(super) struct Watched {
    context: Context,
    begin: Event,
    spans: Vec<Placed>,
}

/// Work between two events.
#[derive(Debug)]
struct Placed {
    label: Label,
    stream: usize,
    start: Event,
    end: Event,
}

impl Watched {
    fn event(&self, stream: &Stream) -> Result<Event> {
        let event = self.context.event().map_err(failed)?;
        event.record(stream).map_err(failed)?;
        Ok(event)
    }
}

impl Queues {
    /// The beginning of work in a stream, if somebody watches.
    pub(super) fn begin_span(&self, number: usize) -> Result<Option<Event>> {
        let watched = self.watched.as_ref();
        watched
            .map(|watched| watched.event(self.line(number).stream()))
            .transpose()
    }

    /// The end of work that had a beginning.
    pub(super) fn end_span(
        &mut self,
        number: usize,
        start: Option<Event>,
        label: impl FnOnce() -> Label,
    ) -> Result<()> {
        let end = self.begin_span(number)?;
        if let (Some(watched), Some(start), Some(end)) = (&mut self.watched, start, end) {
            watched.spans.push(Placed {
                label: label(),
                stream: number,
                start,
                end,
            });
        }
        Ok(())
    }
}

impl Gpu {
    /// Begins to watch what is put into all streams, after the work before it.
    pub(crate) fn watch(&self) -> Result<()> {
        self.wait_for_all()?;
        let begin = self.context.event().map_err(failed)?;
        let mut queues = self.queues();
        begin
            .record(queues.line(DEFAULT).stream())
            .map_err(failed)?;
        queues.watched = Some(Watched {
            context: self.context.clone(),
            begin,
            spans: Vec::new(),
        });
        Ok(())
    }

    /// Ends to watch, and waits for what was put into streams meanwhile.
    pub(crate) fn watched(&self) -> Result<Vec<Span>> {
        let watched = self.queues().watched.take();
        let Some(watched) = watched else {
            return Ok(Vec::new());
        };
        let Watched { begin, spans, .. } = watched;
        let seconds = |from: &Event, to: &Event| -> Result<f64> {
            let time = to.milliseconds_since(from).map_err(failed)?;
            Ok(f64::from(time) / 1e3)
        };
        let span = |placed: Placed| {
            let (start, end) = (&placed.start, &placed.end);
            // Events must have been reached before they are asked.
            let took = seconds(start, end)?;
            let start = seconds(&begin, start)?;
            Ok(placed.label.span(placed.stream, start, took))
        };
        spans.into_iter().map(span).collect()
    }
}
