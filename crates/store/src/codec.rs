//! Outcomes of calls as bytes, for stores that remember them.

use tollgate_core::Tick;

use crate::{StepOutcome, Taken};

const TAKEN: u8 = 1;
const SETTLED: u8 = 2;
const CHANGED: u8 = 3;
const RENEWED: u8 = 4;
const NOT_RENEWED: u8 = 5;

/// Encodes the outcome of the steps of a call.
pub fn encode_outcome(done: &[StepOutcome]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(13 * done.len());
    for done in done {
        match done {
            StepOutcome::Taken(Taken { at, warnings }) => {
                bytes.push(TAKEN);
                bytes.extend(at.as_micros().to_le_bytes());
                bytes.extend(warnings.to_le_bytes());
            }
            StepOutcome::Settled => bytes.push(SETTLED),
            StepOutcome::Changed => bytes.push(CHANGED),
            StepOutcome::Renewed(known) => bytes.push(if *known { RENEWED } else { NOT_RENEWED }),
        }
    }
    bytes
}

/// Decodes the outcome of the steps of a call; `None` if the bytes are no such outcome.
pub fn decode_outcome(mut bytes: &[u8]) -> Option<Vec<StepOutcome>> {
    let mut outcome = Vec::new();
    while let Some((kind, rest)) = bytes.split_first() {
        bytes = rest;
        outcome.push(match *kind {
            TAKEN => {
                let (at, rest) = bytes.split_first_chunk()?;
                let (warnings, rest) = rest.split_first_chunk()?;
                bytes = rest;
                let at = Tick::from_micros(u64::from_le_bytes(*at));
                StepOutcome::Taken(Taken { at, warnings: u32::from_le_bytes(*warnings) })
            }
            SETTLED => StepOutcome::Settled,
            CHANGED => StepOutcome::Changed,
            RENEWED => StepOutcome::Renewed(true),
            NOT_RENEWED => StepOutcome::Renewed(false),
            _ => return None,
        });
    }
    Some(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_of_a_call_is_read_as_it_was_written() {
        let taken = StepOutcome::Taken(Taken { at: Tick::MAX, warnings: u32::MAX });
        let done = [
            taken,
            StepOutcome::Settled,
            StepOutcome::Changed,
            StepOutcome::Renewed(true),
            StepOutcome::Renewed(false),
        ];
        let bytes = encode_outcome(&done);
        assert_eq!(decode_outcome(&bytes).unwrap(), done);
        assert_eq!(decode_outcome(&bytes[..5]), None);
        assert_eq!(decode_outcome(&[9]), None);
        assert_eq!(decode_outcome(&[]), Some(Vec::new()));
    }
}
