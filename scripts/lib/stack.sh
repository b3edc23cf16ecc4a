# Functions that the scripts for AWS share: the state of the stack.
# shellcheck shell=bash

# find_stack NAME: sets FOUND, the stack as JSON, which is `null` if there is no such stack.
find_stack() {
  local said
  if said=$(aws cloudformation describe-stacks --stack-name "$1" --output json 2>&1); then
    FOUND=$(jq '.Stacks[0]' <<<"$said")
  else
    [[ $said == *"does not exist"* ]] || die "$said"
    FOUND=null
  fi
}

# use_stack NAME: the same; fails if there is no such stack.
use_stack() {
  find_stack "$1"
  [[ $FOUND != null ]] || die "there is no stack $1"
}

# status: that of the stack, empty without one. parameter NAME: its value. output NAME: fails if there is none.
status() { jq -r '.StackStatus // empty' <<<"$FOUND"; }
parameter() { jq -r --arg name "$1" '.Parameters[]? | select(.ParameterKey == $name).ParameterValue' <<<"$FOUND"; }
output() {
  jq -er --arg name "$1" '.Outputs[]? | select(.OutputKey == $name).OutputValue' <<<"$FOUND" ||
    die "the stack has no output $1: is it one of infra/aws?"
}
