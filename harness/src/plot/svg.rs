//! Elements of an SVG.

use std::fmt::{Display, Write};

const STYLE: &str = "
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.title { font-size: 15px; font-weight: 600 } .small { font-size: 11px } .end { text-anchor: end } .middle { text-anchor: middle }
.axis { stroke: #8c959f; stroke-width: 1 } .grid { stroke: #d0d7de; stroke-width: .5 } .roof { stroke: #57606a; stroke-width: 2; fill: none }
.exact { fill: #0969da } .torch { fill: #cf222e } .triton { fill: #bf8700 } .peer { fill: #bf8700 } .rest { fill: #8c959f }
.mark { stroke: #cf222e; stroke-width: 1.5; stroke-dasharray: 4 3 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .axis { stroke: #7d8590 } .grid { stroke: #30363d } .roof { stroke: #9198a1 }
  .exact { fill: #58a6ff } .torch { fill: #f85149 } .triton { fill: #d29922 } .peer { fill: #d29922 } .rest { fill: #7d8590 }
  .mark { stroke: #f85149 }
}
";

/// An image under way, in pixels from the upper left corner.
pub(super) struct Svg {
    body: String,
    title: String,
}

/// Text with the signs of XML written out.
fn escaped(text: impl Display) -> String {
    let text = text.to_string();
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

impl Svg {
    /// An image with a title above.
    pub(super) fn new(title: &str) -> Self {
        let mut svg = Self {
            body: String::new(),
            title: title.to_string(),
        };
        svg.text("title", [12.0, 22.0], title);
        svg
    }

    fn add(&mut self, line: std::fmt::Arguments<'_>) {
        // Nothing fails to be appended to a text.
        let _ = self.body.write_fmt(line);
        self.body.push('\n');
    }

    pub(super) fn text(&mut self, class: &str, [x, y]: [f64; 2], text: impl Display) {
        let text = escaped(text);
        self.add(format_args!(
            r#"<text class="{class}" x="{x:.1}" y="{y:.1}">{text}</text>"#
        ));
    }

    pub(super) fn line(&mut self, class: &str, [x1, y1]: [f64; 2], [x2, y2]: [f64; 2]) {
        self.add(format_args!(
            r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#
        ));
    }

    /// A bar that tells `about` where a pointer rests.
    pub(super) fn bar(
        &mut self,
        class: &str,
        [x, y]: [f64; 2],
        [width, height]: [f64; 2],
        about: &str,
    ) {
        let about = escaped(about);
        self.add(format_args!(
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}"><title>{about}</title></rect>"#
        ));
    }

    /// A dot that tells `about` where a pointer rests.
    pub(super) fn dot(&mut self, class: &str, [x, y]: [f64; 2], about: &str) {
        let about = escaped(about);
        self.add(format_args!(
            r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="4"><title>{about}</title></circle>"#
        ));
    }

    /// The image.
    pub(super) fn finish(self, [width, height]: [f64; 2]) -> String {
        let (title, body) = (escaped(&self.title), self.body);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} \
             {height:.0}\" role=\"img\">\n<title>{title}</title>\n<style>{STYLE}</style>\n{body}</svg>\n"
        )
    }
}
