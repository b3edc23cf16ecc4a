#!/usr/bin/env python3
"""Deploys a SAM template to moto (AWS_ENDPOINT_URL), as far as moto knows its resources.

    moto_stack.py reduce TEMPLATE                      prints what of it moto's CloudFormation makes
    moto_stack.py deploy TEMPLATE STACK [NAME=VALUE..] deploys it; a transformed template is taken as it is
    moto_stack.py resolve TEMPLATE STACK [NAME=VALUE..] prints the resources of the deployed stack, with every
                                                       intrinsic function resolved; AWS::Region=.. is another

moto's CloudFormation makes buckets, queues, roles, functions, log groups, topics and dashboards. What it does not make
but has an API for (bucket and queue policies, schedules, alarms, function URLs) is made with that API here. The CDN is
only resolved: its properties are shaped differently in its API.
"""

import io
import json
import os
import re
import sys
import zipfile

import boto3
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator
from samtranslator.yaml_helper import yaml_parse

from intrinsics import Stack

REGION = os.environ.get("AWS_DEFAULT_REGION", "us-east-1")
CODE_BUCKET, CODE_KEY = "functions", "function.zip"
KNOWN_TO_MOTO = re.compile(
    "AWS::(S3::Bucket|SQS::Queue|SNS::Topic|IAM::Role|Logs::LogGroup|CloudWatch::Dashboard"
    "|Lambda::(Function|Permission|EventSourceMapping))"
)
PSEUDO = {
    "AWS::AccountId": "123456789012",
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::URLSuffix": "amazonaws.com",
}


def client(service):
    return boto3.client(service, region_name=REGION)


def transform(path):
    with open(path) as file:
        template = yaml_parse(file.read())
    if "Transform" not in template:
        return template
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            resource["Properties"]["CodeUri"] = f"s3://{CODE_BUCKET}/{CODE_KEY}"
    session = boto3.Session(region_name=REGION)
    return Translator({}, Parser(), boto_session=session).translate(template, {})


def is_known(resource):
    return bool(KNOWN_TO_MOTO.fullmatch(resource["Type"]))


def stand_in(name, attribute=None):
    """What a resource is called that is never made."""
    return f"{name}.{attribute}".lower() if attribute else name


def for_moto(template):
    """The template without what moto's CloudFormation cannot make, and without references to it."""
    others = {name for name, resource in template["Resources"].items() if not is_known(resource)}

    def walk(node):
        if isinstance(node, list):
            return [walk(child) for child in node]
        if isinstance(node, str):
            return re.sub(r"\$\{(%s)\}" % "|".join(others), lambda match: stand_in(match[1]), node)
        if not isinstance(node, dict):
            return node
        if node.keys() == {"Ref"} and node["Ref"] in others:
            return stand_in(node["Ref"])
        if node.keys() == {"Fn::GetAtt"} and node["Fn::GetAtt"][0] in others:
            return stand_in(*node["Fn::GetAtt"])
        return {key: walk(child) for key, child in node.items()}

    made = {name: resource for name, resource in template["Resources"].items() if is_known(resource)}
    return walk({**template, "Resources": made})


def upload_code():
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        archive.writestr("bootstrap", "")
    s3 = client("s3")
    s3.create_bucket(Bucket=CODE_BUCKET)
    s3.put_object(Bucket=CODE_BUCKET, Key=CODE_KEY, Body=body.getvalue())


def create(template, stack, parameters):
    upload_code()
    client("cloudformation").create_stack(
        StackName=stack,
        TemplateBody=json.dumps(for_moto(template)),
        Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()],
        Capabilities=["CAPABILITY_IAM"],
    )


def deployed(template, stack, parameters):
    """The resolver for the stack that `create` has made."""
    found = client("cloudformation").describe_stack_resources(StackName=stack)["StackResources"]
    refs = {name: stand_in(name) for name in template["Resources"]}
    refs |= {each["LogicalResourceId"]: each["PhysicalResourceId"] for each in found if "PhysicalResourceId" in each}
    refs |= PSEUDO | {name: value for name, value in parameters.items() if name in PSEUDO}
    refs["AWS::StackName"] = stack

    def attribute(name, wanted):
        kind, physical = template["Resources"][name]["Type"], refs[name]
        match kind, wanted:
            case "AWS::S3::Bucket", "Arn":
                return f"arn:aws:s3:::{physical}"
            case "AWS::S3::Bucket", "RegionalDomainName":
                return f"{physical}.s3.{REGION}.amazonaws.com"
            case "AWS::SQS::Queue", "Arn":
                return f"arn:aws:sqs:{REGION}:{PSEUDO['AWS::AccountId']}:{physical.rsplit('/', 1)[1]}"
            case "AWS::SQS::Queue", "QueueName":
                return physical.rsplit("/", 1)[1]
            case "AWS::IAM::Role", "Arn":
                return client("iam").get_role(RoleName=physical)["Role"]["Arn"]
            case "AWS::Lambda::Function", "Arn":
                return client("lambda").get_function(FunctionName=physical)["Configuration"]["FunctionArn"]
            case "AWS::Lambda::Url", "FunctionUrl":
                return f"https://{name.lower()}.lambda-url.{REGION}.on.aws/"
        return stand_in(name, wanted)

    return Stack(template, parameters, refs, attribute)


def resolved(template, stack):
    """The resources whose condition holds, resolved."""
    conditional = {name: resource.get("Condition") for name, resource in template["Resources"].items()}
    return {
        name: {
            "Type": resource["Type"],
            "Id": stack.refs[name],
            "Properties": stack.value(resource.get("Properties", {})),
        }
        for name, resource in template["Resources"].items()
        if conditional[name] is None or stack.holds(conditional[name])
    }


def make_the_rest(resources):
    for name, resource in resources.items():
        properties = resource["Properties"]
        match resource["Type"]:
            case "AWS::S3::BucketPolicy":
                document = json.dumps(properties["PolicyDocument"])
                client("s3").put_bucket_policy(Bucket=properties["Bucket"], Policy=document)
            case "AWS::SQS::QueuePolicy":
                for queue in properties["Queues"]:
                    document = json.dumps(properties["PolicyDocument"])
                    client("sqs").set_queue_attributes(QueueUrl=queue, Attributes={"Policy": document})
            case "AWS::Scheduler::Schedule":
                client("scheduler").create_schedule(**{"Name": name, **properties})
            case "AWS::Lambda::Url":
                function = properties.pop("TargetFunctionArn")
                client("lambda").create_function_url_config(FunctionName=function, **properties)
            case "AWS::CloudWatch::Alarm":
                client("cloudwatch").put_metric_alarm(AlarmName=name, **numbers(properties))


def numbers(properties):
    """Parameters are texts, which CloudFormation converts and botocore does not."""
    wanted = {"Period": int, "EvaluationPeriods": int, "Threshold": float}
    return {key: wanted.get(key, lambda value: value)(value) for key, value in properties.items()}


def main(command, path, stack=None, *pairs):
    template = transform(path)
    parameters = dict(pair.split("=", 1) for pair in pairs)
    if command == "reduce":
        upload_code()
        return for_moto(template)
    if command == "deploy":
        create(template, stack, parameters)
    resources = resolved(template, deployed(template, stack, parameters))
    if command == "deploy":
        make_the_rest(json.loads(json.dumps(resources)))
    return resources


if __name__ == "__main__":
    json.dump(main(*sys.argv[1:]), sys.stdout, indent=1)
