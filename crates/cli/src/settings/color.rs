use std::fmt;

/// Whether output has colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Wherever it goes
    Always,
    /// Nowhere
    Never,
}

impl Color {
    const ALL: [Color; 3] = [Color::Auto, Color::Always, Color::Never];

    /// The one of this name.
    pub(crate) fn parse(name: &str) -> Result<Color, String> {
        let known = Color::ALL.into_iter().find(|color| color.name() == name);
        known.ok_or_else(|| "valid are auto, always and never".into())
    }

    fn name(self) -> &'static str {
        match self {
            Color::Auto => "auto",
            Color::Always => "always",
            Color::Never => "never",
        }
    }
}

impl fmt::Display for Color {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
