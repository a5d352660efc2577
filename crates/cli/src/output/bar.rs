/// Draws a share as a bar, in eighths of a column. A share above zero is never drawn as zero.
pub(crate) fn shown_bar(share: f64, columns: usize) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let share = share.clamp(0.0, 1.0);
    let eighths = ((share * (columns * 8) as f64).round() as usize).max(usize::from(share > 0.0));
    let mut bar = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.push(EIGHTHS[eighths % 8]);
    }
    bar.extend(std::iter::repeat_n('░', columns.saturating_sub(bar.chars().count())));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_share() {
        let bar = |share| shown_bar(share, 8);
        assert_eq!(bar(0.0), "░░░░░░░░");
        assert_eq!(bar(0.001), "▏░░░░░░░");
        assert_eq!(bar(0.5), "████░░░░");
        assert_eq!(bar(0.55), "████▍░░░");
        assert_eq!(bar(7.0), "████████");
    }
}
