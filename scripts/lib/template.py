#!/usr/bin/env python3
"""Transforms a template of SAM or CloudFormation.

    template.py reduce TEMPLATE                  prints what of it moto's CloudFormation makes
    template.py resolve TEMPLATE FOLDER <STACKS  writes its resources with every intrinsic function resolved, to FOLDER/STACK.json

STACKS has a line for each stack: `STACK [NAME=VALUE...]`. NAME is a parameter, such as AWS::Region too, or a resource, which otherwise
is called as in the template. Its attributes are called NAME.ATTRIBUTE.
"""

import copy
import functools
import json
import os
import re
import sys

import boto3
from moto.cloudformation.parsing import LazyDict, clean_json, parse_condition
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator
from samtranslator.yaml_helper import yaml_parse

REGION = "us-east-1"
KNOWN_TO_MOTO = re.compile(
    "AWS::(S3::Bucket|SQS::Queue|SNS::Topic|IAM::Role|Logs::LogGroup|CloudWatch::Dashboard"
    "|Lambda::(Function|Permission|EventSourceMapping))"
)
PSEUDO = {
    "AWS::AccountId": "123456789012",
    "AWS::NoValue": None,
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::StackName": "catalog-mirror",
    "AWS::URLSuffix": "amazonaws.com",
}


def transform(path):
    with open(path) as file:
        template = yaml_parse(file.read())
    if "Transform" not in template:
        return template
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            resource["Properties"]["CodeUri"] = "s3://functions/function.zip"
    session = boto3.Session(region_name=REGION)
    return Translator({}, Parser(), boto_session=session).translate(template, {})


def attribute(name, wanted):
    # Its host is cut out of the URL.
    return f"https://{name}.on.aws/" if wanted == "FunctionUrl" else f"{name}.{wanted}"


def reduced(template):
    """The template without what moto's CloudFormation cannot make, and without references to it."""
    made = {name: resource for name, resource in template["Resources"].items() if KNOWN_TO_MOTO.fullmatch(resource["Type"])}
    # moto does not know RetainExceptOnCreate, and finds no number in a mapping.
    made["Bucket"] = made["Bucket"] | {"DeletionPolicy": "Retain"}
    template["Parameters"]["PollerTimeout"] = {"Type": "String", "Default": "300"}
    others = template["Resources"].keys() - made.keys()

    def walk(node):
        match node:
            case list():
                return [walk(child) for child in node]
            case str():
                return re.sub(r"\$\{(%s)\}" % "|".join(others), r"\1", node)
            case {"Ref": name} if name in others:
                return name
            case {"Fn::GetAtt": [name, wanted]} if name in others:
                return attribute(name, wanted)
            case dict():
                return {key: walk(child) for key, child in node.items()}
        return node

    return walk({**template, "Resources": made})


class Resource:
    """A resource as moto's resolver takes it: called as in the template, or as a parameter says."""

    def __init__(self, name, known):
        self.physical_resource_id, self.get_cfn_attribute = known, functools.partial(attribute, name)


class Names(dict):
    """What moto's resolver finds by its name: parameters, mappings and resources."""

    def __init__(self, template, given):
        super().__init__(PSEUDO | template.get("Mappings", {}) | given)
        for name, parameter in template.get("Parameters", {}).items():
            value = str(given.get(name, parameter.get("Default", "")))
            self[name] = value.split(",") if parameter["Type"] == "CommaDelimitedList" else value
        for name in template["Resources"]:
            self[name] = Resource(name, given.get(name, name))
        self.lazy_condition_map = LazyDict()
        for name, condition in template.get("Conditions", {}).items():
            self.lazy_condition_map[name] = functools.partial(parse_condition, condition, self, self.lazy_condition_map)


def without_none(node):
    """Lists keep what moto makes of AWS::NoValue."""
    match node:
        case list():
            return [without_none(child) for child in node if child is not None]
        case dict():
            return {key: without_none(child) for key, child in node.items()}
    return node


def resolved(template, given):
    """The resources whose condition holds, resolved."""
    names = Names(template, given)
    return {
        name: {"Type": resource["Type"], "Properties": without_none(clean_json(resource.get("Properties", {}), names))}
        for name, resource in template["Resources"].items()
        if "Condition" not in resource or names.lazy_condition_map[resource["Condition"]]
    }


def main(command, path, folder=None):
    template = transform(path)
    if command == "reduce":
        json.dump(reduced(template), sys.stdout, indent=1)
        return
    for line in sys.stdin:
        stack, *pairs = line.split()
        given = dict(pair.split("=", 1) for pair in pairs)
        # What resolves a template changes it.
        resources = resolved(copy.deepcopy(template), given)
        with open(os.path.join(folder, f"{stack}.json"), "w") as file:
            json.dump(resources, file, indent=1)


if __name__ == "__main__":
    main(*sys.argv[1:])
