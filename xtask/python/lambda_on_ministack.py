"""The real bootstrap, started by an emulator from a real stream: lambda_on_ministack.py ENDPOINT BOOTSTRAP TOLLGATE

Makes a table, a function of the bootstrap and a mapping from the table's stream to it; takes from a limit; and waits
until what was used is written down, which only the function does. Then it tells the function that an audit event has
expired, as DynamoDB would, and looks for it in the bucket of the archive.
"""

import gzip
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile

import boto3

TABLE = "limits-of-lambda"
ARCHIVE = "archive-of-lambda"
REGION = "us-east-1"
WITHIN_SECS = 90


def zipped(bootstrap):
    contents = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(contents, "w", zipfile.ZIP_DEFLATED) as archive:
        # With what debuggers want it is larger than Lambda takes.
        stripped = os.path.join(folder, "bootstrap")
        subprocess.run(["strip", "-o", stripped, bootstrap], check=True)
        archive.write(stripped, "bootstrap")
    return contents.getvalue()


def usage(dynamodb):
    pages = dynamodb.get_paginator("scan").paginate(
        TableName=TABLE, FilterExpression="begins_with(SK, :u)", ExpressionAttributeValues={":u": {"S": "#USAGE#"}}
    )
    items = [item for page in pages for item in page["Items"]]
    return {item["window"]["S"]: (int(item["rpm"]["N"]), int(item["total_events"]["N"])) for item in items}


def audit_event(dynamodb):
    pages = dynamodb.get_paginator("scan").paginate(
        TableName=TABLE, FilterExpression="begins_with(SK, :a)", ExpressionAttributeValues={":a": {"S": "#AUDIT#"}}
    )
    return next(item for page in pages for item in page["Items"])


def expiry(item):
    """The record of the stream for an item that DynamoDB has deleted because its time was over."""
    change = {
        "ApproximateCreationDateTime": 1794701100,
        "Keys": {name: item[name] for name in ("PK", "SK")},
        "OldImage": item,
        "SequenceNumber": "1",
        "SizeBytes": 1,
        "StreamViewType": "NEW_AND_OLD_IMAGES",
    }
    return {
        "eventID": "1",
        "eventName": "REMOVE",
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": REGION,
        "userIdentity": {"type": "Service", "principalId": "dynamodb.amazonaws.com"},
        "dynamodb": change,
    }


def check_archive(dynamodb, functions, s3):
    item = audit_event(dynamodb)
    event = json.dumps({"Records": [expiry(item)]}).encode()
    answer = json.load(functions.invoke(FunctionName="aggregator", Payload=event)["Payload"])
    if answer != {"batchItemFailures": []}:
        sys.exit(f"the function did not archive the event: {answer}")
    names = [found["Key"] for found in s3.list_objects_v2(Bucket=ARCHIVE, Prefix="audit/").get("Contents", [])]
    if len(names) != 1:
        sys.exit(f"the archive has the files {names}, and not one")
    lines = gzip.decompress(s3.get_object(Bucket=ARCHIVE, Key=names[0])["Body"].read()).splitlines()
    archived = [json.loads(line) for line in lines]
    if len(archived) != 1 or archived[0].get("action") != item["action"]["S"]:
        sys.exit(f"the archive has {archived}, and not the one event {item}")
    print("the function archived the event that expired:", names[0])


def main(endpoint, bootstrap, tollgate):
    secrets = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": REGION}
    client = lambda service: boto3.client(service, endpoint_url=endpoint, **secrets)
    dynamodb, functions, s3 = client("dynamodb"), client("lambda"), client("s3")
    s3.create_bucket(Bucket=ARCHIVE)
    store = f"dynamodb:{TABLE}?region={REGION}&endpoint={endpoint}&create=true"
    environment = {**os.environ, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "TOLLGATE_STORE": store}
    run = lambda *words: subprocess.run([tollgate, *words], check=True, env=environment, stdout=subprocess.DEVNULL)
    run("system", "set-defaults", "-l", "rpm:100")
    variables = {"TOLLGATE_TABLE": TABLE, "TOLLGATE_ARCHIVE": f"s3://{ARCHIVE}/audit", "AWS_ENDPOINT_URL": endpoint}
    functions.create_function(
        FunctionName="aggregator",
        Runtime="provided.al2023",
        Handler="bootstrap",
        Role="arn:aws:iam::000000000000:role/aggregator",
        Code={"ZipFile": zipped(bootstrap)},
        Timeout=30,
        Environment={"Variables": variables},
    )
    functions.create_event_source_mapping(
        EventSourceArn=dynamodb.describe_table(TableName=TABLE)["Table"]["LatestStreamArn"],
        FunctionName="aggregator",
        StartingPosition="TRIM_HORIZON",
        BatchSize=100,
        FunctionResponseTypes=["ReportBatchItemFailures"],
    )
    for amount in (1, 2):
        run("acquire", "user-1", "gpt-4", f"rpm={amount}")
    wanted = {"hourly": (3, 2), "daily": (3, 2), "monthly": (3, 2)}
    for _ in range(WITHIN_SECS):
        found = usage(dynamodb)
        if found == wanted:
            print("the function wrote down what was used:", found)
            return check_archive(dynamodb, functions, s3)
        time.sleep(1)
    sys.exit(f"after {WITHIN_SECS} s the function has written {found}, and not {wanted}")


if __name__ == "__main__":
    main(*sys.argv[1:])
