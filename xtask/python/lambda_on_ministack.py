"""The real bootstrap, started by an emulator from a real stream: lambda_on_ministack.py ENDPOINT BOOTSTRAP TOLLGATE

Makes a table, a function of the bootstrap and a mapping from the table's stream to it; takes from a limit; and waits
until what was used is written down, which only the function does.
"""

import io
import os
import subprocess
import sys
import tempfile
import time
import zipfile

import boto3

TABLE = "limits-of-lambda"
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


def main(endpoint, bootstrap, tollgate):
    secrets = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": REGION}
    client = lambda service: boto3.client(service, endpoint_url=endpoint, **secrets)
    dynamodb, functions = client("dynamodb"), client("lambda")
    store = f"dynamodb:{TABLE}?region={REGION}&endpoint={endpoint}&create=true"
    environment = {**os.environ, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "TOLLGATE_STORE": store}
    run = lambda *words: subprocess.run([tollgate, *words], check=True, env=environment, stdout=subprocess.DEVNULL)
    run("system", "set-defaults", "-l", "rpm:100")
    functions.create_function(
        FunctionName="aggregator",
        Runtime="provided.al2023",
        Handler="bootstrap",
        Role="arn:aws:iam::000000000000:role/aggregator",
        Code={"ZipFile": zipped(bootstrap)},
        Timeout=30,
        Environment={"Variables": {"TOLLGATE_TABLE": TABLE, "AWS_ENDPOINT_URL": endpoint}},
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
            return
        time.sleep(1)
    sys.exit(f"after {WITHIN_SECS} s the function has written {found}, and not {wanted}")


if __name__ == "__main__":
    main(*sys.argv[1:])
