//! DynamoDB with no AWS.
