//! The operations of the service.

/// What an operation does with items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperationKind {
    /// Reads items.
    Read,
    /// Writes items.
    Write,
    /// Concerns tables or streams.
    Other,
}

/// An operation that the engine supports.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    pub(crate) name: &'static str,
    pub(crate) kind: OperationKind,
}

const TARGETS: [&str; 2] = ["DynamoDB_20120810.", "DynamoDBStreams_20120810."];

const fn reads(name: &'static str) -> Operation {
    Operation { name, kind: OperationKind::Read }
}

const fn writes(name: &'static str) -> Operation {
    Operation { name, kind: OperationKind::Write }
}

const fn other(name: &'static str) -> Operation {
    Operation { name, kind: OperationKind::Other }
}

pub(crate) static OPERATIONS: [Operation; 24] = [
    reads("GetItem"),
    reads("BatchGetItem"),
    reads("TransactGetItems"),
    reads("Query"),
    reads("Scan"),
    writes("PutItem"),
    writes("UpdateItem"),
    writes("DeleteItem"),
    writes("BatchWriteItem"),
    writes("TransactWriteItems"),
    other("CreateTable"),
    other("DeleteTable"),
    other("DescribeTable"),
    other("ListTables"),
    other("UpdateTable"),
    other("UpdateTimeToLive"),
    other("DescribeTimeToLive"),
    other("TagResource"),
    other("UntagResource"),
    other("ListTagsOfResource"),
    other("ListStreams"),
    other("DescribeStream"),
    other("GetShardIterator"),
    other("GetRecords"),
];

/// Returns the name of the operation in a target, without the version of the service.
pub(crate) fn name_in(target: &str) -> &str {
    TARGETS.iter().find_map(|prefix| target.strip_prefix(prefix)).unwrap_or_default()
}

/// Returns the operation of a target, if the engine supports it.
pub(crate) fn of_target(target: &str) -> Option<&'static Operation> {
    let name = name_in(target);
    OPERATIONS.iter().find(|operation| operation.name == name)
}
