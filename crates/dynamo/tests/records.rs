//! Records in a table of the embedded engine are as those in memory.

mod common;

use common::{open, open_with_faults};
use tollgate_conformance::records;
use tollgate_dynamo_local::FaultRates;

#[test]
fn records_are_as_those_in_memory() {
    records::run(common::elsewhere::traces(3), open);
}

#[test]
fn records_are_right_whatever_goes_wrong_on_the_way() {
    records::run(2, |clock| open_with_faults(clock, 7, FaultRates::survivable(30)));
}
