//! Buckets and records in a DynamoDB table.
