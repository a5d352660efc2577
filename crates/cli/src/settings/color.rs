use std::fmt;

/// Whether output is coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Color {
    const ALL: [Color; 3] = [Color::Auto, Color::Always, Color::Never];

    /// Parses a choice by its name.
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
