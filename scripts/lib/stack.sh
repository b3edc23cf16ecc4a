# Functions that the scripts for AWS share: the stack and its outputs.
# shellcheck shell=bash

# use_stack NAME: sets OUTPUTS, a JSON object; fails if there is no such stack.
use_stack() {
  OUTPUTS=$(aws cloudformation describe-stacks --stack-name "$1" --output json |
    jq '.Stacks[0].Outputs // [] | map({key: .OutputKey, value: .OutputValue}) | from_entries')
}

# output NAME: one of them.
output() {
  jq -er --arg name "$1" '.[$name]' <<<"$OUTPUTS" || die "the stack has no output $1: is it one of infra/aws?"
}
